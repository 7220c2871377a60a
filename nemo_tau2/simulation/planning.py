"""What full knowledge finds: the shortest calls, on copies of an episode, that reach a goal.

A breadth-first search that keeps a state only for what is new in it (iterated width: one fact new at
first, then a pair of facts). Facts are the active node, what conditions can tell apart of each variable,
and what is grounded or written. It makes no call that is refused, and none that the duplicate gate sees.
Whether a goal cannot be reached at all is `reachability`'s to say.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from nemo_tau2.agentscript.graph import Tool, ToolKind
from nemo_tau2.episodes import Item
from nemo_tau2.rewards.duplicates import canonical
from nemo_tau2.simulation.abstraction import asked, facts, has_type
from nemo_tau2.simulation.episode import SpecEpisode
from nemo_tau2.simulation.generations import call, message
from nemo_tau2.simulation.records import sample
from nemo_tau2.simulation.score import repeated_calls
from nemo_tau2.simulation.session import Refusal

MAX_STATES = 3000
"""States one search looks at."""
MAX_VARIANTS = 12
"""Argument sets tried per tool and state."""
WAIT = "One moment, please."
"""What is said to give the floor to the customer and the script's hooks."""
SKIPPED = (ToolKind.ESCALATE, ToolKind.END_SESSION)


@dataclass(frozen=True)
class Move:
    """One generation: a call, or (without a name) words to the customer."""

    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def items(self) -> list[Item]:
        """The generation's output items."""
        return call(self.name, self.arguments) if self.name else message(WAIT)


Goal = Callable[[SpecEpisode], bool]
Fits = Callable[[SpecEpisode], bool]


@dataclass
class Found:
    """A way to a goal: its moves and the episode copy after each of them."""

    moves: list[Move]
    copies: list[SpecEpisode]


def search(
    start: SpecEpisode, goal: Goal, fits: Fits = lambda _: True, widths: tuple[int, ...] = (1, 2)
) -> Found | None:
    """The shortest way found from an episode to a goal; `fits` says which states may be passed.

    Width 0 stands for no pruning beyond equal states.
    """
    for width in widths:
        found = _breadth_first(start, goal, fits, width)
        if found is not None:
            return found
    return None


def _breadth_first(start: SpecEpisode, goal: Goal, fits: Fits, width: int) -> Found | None:
    for twin, path in Exploration(start, fits, width):
        if goal(twin):
            return Found([move for move, _ in path], [copy for _, copy in path])
    return None


Path = tuple[tuple[Move, SpecEpisode], ...]


class Exploration:
    """States that moves lead to, nearest first, each with its path.

    Args:
        start: where it begins.
        fits: which states may be passed.
        width: how much must be new in a state to go on from it; 0: the state itself.
        limit: states gone on from.
    """

    def __init__(
        self,
        start: SpecEpisode,
        fits: Fits = lambda _: True,
        width: int = 0,
        limit: int = MAX_STATES,
    ):
        self._start, self._fits, self._limit = start, fits, limit
        self._seen = _Seen(width)
        self.stopped = False
        """Whether the limit ended it."""

    def __iter__(self) -> Iterator[tuple[SpecEpisode, Path]]:
        self._seen.is_new(facts(self._start))
        queue: deque[tuple[SpecEpisode, Path]] = deque([(self._start, ())])
        for _ in range(self._limit):
            if not queue:
                return
            episode, path = queue.popleft()
            for move in moves(episode):
                twin = after(episode, move)
                if twin is None or not self._fits(twin):
                    continue
                longer = (*path, (move, twin))
                yield twin, longer
                if self._seen.is_new(facts(twin)):
                    queue.append((twin, longer))
        self.stopped = bool(queue)


class _Seen:
    """Which facts, pairs of facts or (width 0) whole states have been met."""

    def __init__(self, width: int):
        self._width = width
        self._met: set[Hashable] = set()

    def is_new(self, found: frozenset[Hashable]) -> bool:
        if self._width == 0:
            units: set[Hashable] = {found}
        elif self._width == 1:
            units = set(found)
        else:
            units = set(combinations(sorted(found, key=repr), 2))
        fresh = units - self._met
        self._met |= fresh
        return bool(fresh)


def after(episode: SpecEpisode, move: Move) -> SpecEpisode | None:
    """A copy of the episode after a move; None where that is refused, a duplicate, or the end."""
    twin = tried(episode, move)
    if twin.stop_reason is not None:
        return None
    if move.name:
        done = twin.session.calls[-1]
        if done.refusal not in (None, Refusal.TRANSIENT) or _repeats(twin):
            return None
    return twin


def tried(episode: SpecEpisode, move: Move) -> SpecEpisode:
    """A copy of the episode after a move, whatever came of it."""
    twin = episode.copy()
    at_once(twin.take(move.items))
    return twin


def _repeats(episode: SpecEpisode) -> bool:
    """Whether the last call is a consecutive duplicate."""
    return bool(repeated_calls(episode.session.calls[-2:], episode.options))


def at_once(work: Coroutine) -> None:
    """Runs a coroutine that never waits: helpers of a copy are scripted."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a copy of an episode waited for something")


def moves(episode: SpecEpisode) -> Iterator[Move]:
    """What the policy could do now, endings and other agents left out."""
    known = knowledge(episode)
    for name, tool in episode.callable_tools():
        if tool.kind not in SKIPPED and not tool.connected:
            for arguments in _variants(episode, tool, known):
                yield Move(name, arguments)
    if episode.has_customer and episode.moves_on_talk:
        yield Move()


def knowledge(episode: SpecEpisode) -> dict[str, Any]:
    """Values by name: what records showed, over it what the customer knows."""
    shown = {k: v for r in episode.session.records.fields.values() for k, v in r.items()}
    return {**shown, **episode.session.facts}


def filled_in(known: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    """Arguments from what is known, else a sample."""
    return {
        name: known[name]
        if name in known and has_type(known[name], schema)
        else sample(schema, name, "policy")
        for name, schema in properties.items()
    }


def _variants(episode: SpecEpisode, tool: Tool, known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Argument sets: the known values, then one value that some condition asks for at a time."""
    base = filled_in(known, {p.name: p.type.schema for p in tool.inputs})
    own: dict[str, Any] = {}
    for question in episode.row.questions:
        if question.action == tool.target and tool.kind is ToolKind.ACTION:
            own |= {k: v for k, v in (question.arguments or {}).items() if k in base}
    base |= own
    made = {canonical(base): base}
    wanted = {n: v for n, v in asked(episode.graph, tool).items() if n not in own}
    for name, values in wanted.items():
        for value in values:
            made.setdefault(canonical(base | {name: value}), base | {name: value})
    if len(wanted) > 1:
        together = base | {n: values[0] for n, values in wanted.items()}
        made.setdefault(canonical(together), together)
    yield from list(made.values())[:MAX_VARIANTS]
