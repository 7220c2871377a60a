"""The world behind the tools: records that keep their values, and values made from schema and seed.

A record is what one set of identifying arguments names (`order_id=7`). Once a field was shown it
stays; a write stores its arguments and outputs; reads after it agree. A field shown under two names of
one record (the parcel's number and its owner's) is one field: a write under either changes both. A
read's outputs that have an argument's name echo the request and settle nothing.

Values come from the output's schema and a hash of seed, record and field, so an episode is the same on
every machine. Values that make a comparison of the script differ are preferred, so that its
branches are reachable.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from nemo_tau2.agentscript.expressions import Compare, Literal, reference, walk
from nemo_tau2.agentscript.graph import Action, Effect, WorkflowGraph

_IDENTIFIER = re.compile(
    r"(^|_)(id|ids|number|no|code|key|email|phone|username|reference|sku|vin|pin|token|name)$"
    r"|(^|_)address$|birth|dob|last_four|postcode|zip|ssn"
)
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jade")


def snake(name: str) -> str:
    """`orderId` → `order_id`."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def is_identifier(name: str) -> bool:
    """Whether a parameter of this name points at a record or a person."""
    return bool(_IDENTIFIER.search(snake(name)))


def writes(action: Action) -> bool:
    """Unknown effects count as writes."""
    return action.effect.effect is not Effect.READ


def normal(value: Any) -> str:
    """A scalar as text without case, spaces and punctuation, for comparison."""
    return re.sub(r"[\s\-./,()]+", "", str(value)).casefold()


def choices_of(graph: WorkflowGraph) -> dict[str, tuple[Any, ...]]:
    """Values that make conditions differ, by the output fields that feed a variable and its name.

    The strings that guards and edges compare it with; for a number a value on either side of the literal.
    """
    literals: dict[str, set[Any]] = {}
    expressions = [t.guard for n in graph.nodes.values() for t in n.tools.values() if t.guard]
    expressions += [e.condition for e in graph.edges if e.condition]
    for part in (p for e in expressions for p in walk(e)):
        if isinstance(part, Compare):
            turned = part.operator.translate(str.maketrans("<>", "><"))
            sides = ((part.left, part.operator, part.right), (part.right, turned, part.left))
            for a, operator, b in sides:
                found = reference(a)
                if found and isinstance(b, Literal):
                    literals.setdefault(found.name, set()).update(_telling(operator, b.value))
    for node in graph.nodes.values():
        for update in (u for t in node.tools.values() for u in t.updates):
            source = reference(update.value)
            if source and source.namespace == "outputs" and update.variable in literals:
                literals.setdefault(source.name, set()).update(literals[update.variable])
    return {name: tuple(sorted(v, key=repr)) for name, v in literals.items() if v}


def _telling(operator: str, literal: Any) -> tuple[Any, ...]:
    """Values on either side of a comparison with a literal."""
    if isinstance(literal, str):
        return (literal,) if literal and operator == "==" else ()
    if isinstance(literal, int | float) and not isinstance(literal, bool):
        below = operator in ("<", ">=")
        sides = (literal - 1, literal) if below else (literal, literal + 1)
        return tuple(side for side in sides if side >= min(0, literal))
    return ()


def sample(schema: dict[str, Any], name: str, seed: str, choices: Sequence[Any] = ()) -> Any:
    """A value of a schema, the same for the same seed. Booleans are true: the world agrees."""
    n = int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=6).digest())
    kind = schema.get("type")
    fitting = [c for c in choices if isinstance(c, str) == (kind not in ("integer", "number"))]
    if kind == "integer":
        fitting = [c for c in fitting if isinstance(c, int)]
    match kind:
        case "boolean":
            return True
        case "integer" | "number" if fitting:
            return fitting[n % len(fitting)]
        case "integer":
            return 10 + n % 990
        case "number":
            return round(10 + n % 99_000 / 100, 2)
        case "array":
            return [sample(schema.get("items", {}), name, f"{seed}/{i}") for i in range(2)]
        case "object":
            return {"name": f"{_WORDS[n % 10]}-{n % 1000:03d}", "value": n % 1000}
    if fitting:
        return fitting[n % len(fitting)]
    day = f"2026-{1 + n % 12:02d}-{1 + n // 12 % 28:02d}"
    match schema.get("format"):
        case "date":
            return day
        case "date-time":
            return f"{day}T{n % 24:02d}:00:00Z"
        case "time":
            return f"{n % 24:02d}:30:00"
    if snake(name).endswith("address") and "mail" not in name.lower():
        return f"{1 + n % 9_999} {_WORDS[n % 10].title()} Street"
    if is_identifier(name):
        return f"{snake(name)[:1].upper()}{n % 10**8:08d}"
    return f"{_WORDS[n % 10]}-{n % 10_000:04d}"


class Records:
    """The records of one episode.

    Attributes:
        fields: field values by record.
        written: the part of them that calls with an effect left behind.
    """

    def __init__(self, seed: int, choices: dict[str, tuple[Any, ...]] | None = None):
        self.seed, self.choices = seed, choices or {}
        self.fields: dict[str, dict[str, Any]] = {}
        self.written: dict[str, dict[str, Any]] = {}
        self._shared: dict[tuple[str, str], set[str]] = {}
        self._writes: Counter[tuple[str, str]] = Counter()

    def copy(self) -> "Records":
        """Records that change on their own from here on."""
        twin = Records(self.seed, self.choices)
        twin.fields = {key: dict(record) for key, record in self.fields.items()}
        twin.written = {key: dict(record) for key, record in self.written.items()}
        groups: dict[int, set[str]] = {}  # names of one record share their set
        twin._shared = {k: groups.setdefault(id(g), set(g)) for k, g in self._shared.items()}
        twin._writes = self._writes.copy()
        return twin

    def key(self, action: Action, arguments: dict[str, Any]) -> str:
        """The record that arguments name; a search is a record of its own."""
        named = {snake(k): v for k, v in arguments.items() if is_identifier(k)}
        if named:
            return "&".join(f"{k}={normal(v)}" for k, v in sorted(named.items()))
        if arguments and not writes(action):
            return f"{action.name}:{json.dumps(arguments, sort_keys=True, default=str)}"
        return "session"

    def known(self, action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
        """Output fields whose value is settled: echoed arguments, then what was shown or written."""
        names = {p.name for p in action.outputs}
        settled = self.fields.get(self.key(action, arguments), {})
        if writes(action):
            return {n: arguments[n] for n in names & arguments.keys()}
        return {n: v for n, v in {**settled, **arguments}.items() if n in names}

    def generate(self, action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
        """Outputs of a call, settled values first."""
        settled = self.known(action, arguments)
        key = self.key(action, arguments)
        base = f"{self.seed}/{key}"
        if writes(action):
            # Counted per record and action: independent writes give the same state in any order.
            base += f"/{action.name}/{self._writes[key, action.name]}"
        return {
            p.name: settled[p.name]
            if p.name in settled
            else sample(p.type.schema, p.name, base, self.choices.get(p.name, ()))
            for p in action.outputs
        }

    def remember(self, action: Action, arguments: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Stores what a successful call showed or changed, also under records it names."""
        key = self.key(action, arguments)
        keys = [key]
        for name, value in outputs.items():
            if is_identifier(name) and isinstance(value, str | int) and value != "":
                keys.append(f"{snake(name)}={normal(value)}")
        if writes(action):
            new = {**arguments, **outputs}
            self._settle(keys, new)
            self._change(keys, new)
            self._writes[key, action.name] += 1
            self.written.setdefault(key, {}).update(new)
        else:
            self._settle(keys, {n: v for n, v in outputs.items() if n not in arguments})

    def _settle(self, keys: list[str], shown: dict[str, Any]) -> None:
        """Fields seen for the first time; what was settled before stays."""
        for name, value in shown.items():
            fresh = {k for k in keys if name not in self.fields.setdefault(k, {})}
            group = fresh
            if keys[0] not in fresh:  # the record's own field: its other names follow it
                group = self._shared.setdefault((keys[0], name), {keys[0]})
                group |= fresh
            for key in fresh:
                self.fields[key][name] = value
                self._shared[key, name] = group

    def _change(self, keys: list[str], new: dict[str, Any]) -> None:
        """Fields that a write has changed, under every name they were shown by."""
        for key in keys:
            for name, value in new.items():
                for other in self._shared.get((key, name), {key}):
                    self.fields[other][name] = value
