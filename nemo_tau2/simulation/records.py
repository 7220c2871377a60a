"""The world behind the tools: records that keep their values, and values made from schema and seed.

A record is what one set of identifying arguments names (`order_id=7`). Once a field was shown it
stays; a write stores its arguments and outputs; reads after it agree. A field shown under two names of
one record (the parcel's number and its owner's) is one field: a write under either changes both. A
read's outputs that have an argument's name echo the request and settle nothing.

Values come from the output's schema and a hash of seed, record and field, so an episode is the same on
every machine. Strings that the script compares a field with are preferred, so that its branches are
reachable.
"""

import hashlib
import json
import re
from collections import Counter
from typing import Any

from nemo_tau2.agentscript.expressions import Compare, Literal, reference, walk
from nemo_tau2.agentscript.graph import Action, Effect, WorkflowGraph

_IDENTIFIER = re.compile(
    r"(^|_)(id|ids|number|no|code|key|email|phone|username|reference|sku|vin|pin|token|name)$"
    r"|birth|dob|last_four|postcode|zip|ssn"
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


def choices_of(graph: WorkflowGraph) -> dict[str, tuple[str, ...]]:
    """Strings that guards compare a variable with, by the output fields that feed it and its name."""
    literals: dict[str, set[str]] = {}
    expressions = [t.guard for n in graph.nodes.values() for t in n.tools.values() if t.guard]
    expressions += [e.condition for e in graph.edges if e.condition]
    for part in (p for e in expressions for p in walk(e)):
        if isinstance(part, Compare) and part.operator == "==":
            for a, b in ((part.left, part.right), (part.right, part.left)):
                found = reference(a)
                if found and isinstance(b, Literal) and isinstance(b.value, str) and b.value:
                    literals.setdefault(found.name, set()).add(b.value)
    for node in graph.nodes.values():
        for update in (u for t in node.tools.values() for u in t.updates):
            source = reference(update.value)
            if source and source.namespace == "outputs" and update.variable in literals:
                literals.setdefault(source.name, set()).update(literals[update.variable])
    return {name: tuple(sorted(values)) for name, values in literals.items()}


def sample(schema: dict[str, Any], name: str, seed: str, choices: tuple[str, ...] = ()) -> Any:
    """A value of a schema, the same for the same seed. Booleans are true: the world agrees."""
    n = int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=6).digest())
    match schema.get("type"):
        case "boolean":
            return True
        case "integer":
            return 10 + n % 990
        case "number":
            return round(10 + n % 99_000 / 100, 2)
        case "array":
            return [sample(schema.get("items", {}), name, f"{seed}/{i}") for i in range(2)]
        case "object":
            return {"name": f"{_WORDS[n % 10]}-{n % 1000:03d}", "value": n % 1000}
    if choices:
        return choices[n % len(choices)]
    day = f"2026-{1 + n % 12:02d}-{1 + n // 12 % 28:02d}"
    match schema.get("format"):
        case "date":
            return day
        case "date-time":
            return f"{day}T{n % 24:02d}:00:00Z"
        case "time":
            return f"{n % 24:02d}:30:00"
    if is_identifier(name):
        return f"{snake(name)[:1].upper()}{n % 10**8:08d}"
    return f"{_WORDS[n % 10]}-{n % 10_000:04d}"


class Records:
    """The records of one episode.

    Attributes:
        fields: field values by record.
        written: the part of them that calls with an effect left behind.
    """

    def __init__(self, seed: int, choices: dict[str, tuple[str, ...]] | None = None):
        self.seed, self.choices = seed, choices or {}
        self.fields: dict[str, dict[str, Any]] = {}
        self.written: dict[str, dict[str, Any]] = {}
        self._shared: dict[tuple[str, str], set[str]] = {}
        self._writes: Counter[tuple[str, str]] = Counter()

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
