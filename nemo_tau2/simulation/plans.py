"""From an episode to a plan that solves its row: ground every question, make a state, or hand over.

Questions are planned one after the other, the nearest first; where that shuts one out, other orders are
tried. What no plan covers is left out: `reachability` says why.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import islice, permutations

from nemo_tau2.agentscript.graph import ToolKind
from nemo_tau2.rewards.state_equivalence import differences
from nemo_tau2.simulation.abstraction import facts, pending
from nemo_tau2.simulation.episode import SpecEpisode, world_state
from nemo_tau2.simulation.planning import Fits, Goal, Move, after, filled_in, knowledge, search
from nemo_tau2.simulation.records import writes

MAX_ORDERS = 24
"""Orders of the questions that are tried."""


@dataclass(frozen=True)
class Step:
    """A move, and the facts in which it is to be made; None: the plan is done."""

    before: frozenset[Hashable]
    move: Move | None


@dataclass
class _Draft:
    """A plan in the making: its steps and where they lead."""

    steps: list[Step]
    end: SpecEpisode

    def follow(self, goal: Goal, fits: Fits) -> bool:
        """Adds the way to a goal; after a word to the customer where few calls are left before one."""
        for talk in (False, True):
            if talk and not (self.end.is_short_of_steps and self._add(Move(), fits)):
                return False
            found = search(self.end, goal, fits)
            if found is not None:
                for move, copy in zip(found.moves, found.copies, strict=True):
                    self.steps.append(Step(facts(self.end), move))
                    self.end = copy
                return True
        return False

    def _add(self, move: Move, fits: Fits) -> bool:
        twin = after(self.end, move)
        if twin is None or not fits(twin):
            return False
        self.steps.append(Step(facts(self.end), move))
        self.end = twin
        return True


def plan(episode: SpecEpisode) -> list[Step]:
    """The steps that lead to the most that can be had, and a last one without a move."""
    start = episode.copy()
    if episode.row.transfer:
        draft = _to_a_person(start)
        return [*draft.steps, Step(facts(draft.end), _escalation(draft.end))]
    in_sandbox = not episode.has_customer and episode.row.expected_state is not None
    draft = _to_the_state(start) if in_sandbox else _to_answers(start)
    return [*draft.steps, Step(facts(draft.end), None)]


def _to_a_person(start: SpecEpisode) -> _Draft:
    draft = _Draft([], start)
    if _escalation(start) is None:
        draft.follow(lambda episode: _escalation(episode) is not None, _any)
    return draft


def _escalation(episode: SpecEpisode) -> Move | None:
    for name, tool in episode.callable_tools():
        if tool.kind is ToolKind.ESCALATE:
            schemas = {p.name: p.type.schema for p in tool.inputs}
            return Move(name, filled_in(knowledge(episode), schemas))
    return None


def _to_answers(start: SpecEpisode) -> _Draft:
    best = _nearest_first(start)
    left = pending(best.end)
    if not left or not best.steps or len(pending(start)) == 1:
        return best
    # A question that a fresh start can ground was shut out by the order.
    if any(_Draft([], start).follow(_grounds(number), _any) for number in left):
        for draft in _in_orders(start, pending(start), _any):
            if len(pending(draft.end)) < len(pending(best.end)):
                best = draft
            if not pending(best.end):
                break
    return best


def _nearest_first(start: SpecEpisode) -> _Draft:
    draft = _Draft([], start)
    while open_ := pending(draft.end):
        steps, end = [*draft.steps], draft.end
        if not draft.follow(lambda e, o=open_: pending(e) < o, _any):
            return _Draft(steps, end)
    return draft


def _in_orders(start: SpecEpisode, numbers: set[int], fits: Fits) -> Iterator[_Draft]:
    for order in islice(permutations(sorted(numbers)), MAX_ORDERS):
        draft = _Draft([], start)
        for number in order:
            if number in pending(draft.end) and not draft.follow(_grounds(number), fits):
                break
        yield draft


def _grounds(number: int) -> Goal:
    return lambda episode: number not in pending(episode)


def _to_the_state(start: SpecEpisode) -> _Draft:
    """Makes what is asked in some order that gives the state; else whatever gives it."""
    if _is_reached(start):
        return _Draft([], start)
    asked = {q.number for q in start.row.questions if _writes(start, q.action)}
    for draft in _in_orders(start, asked & pending(start), _is_on_the_way):
        if _is_reached(draft.end):
            return draft
    draft = _Draft([], start)
    draft.follow(_is_reached, _is_on_the_way)
    return draft


def _is_reached(episode: SpecEpisode) -> bool:
    expected = episode.row.expected_state or {}
    state = world_state(episode.session)
    rules = episode.options.state.overridden(episode.row.state_rules)
    return not differences({key: state.get(key) for key in expected}, expected, rules)


def _is_on_the_way(episode: SpecEpisode) -> bool:
    """Whether nothing was written that the expected state has no place for."""
    expected = (episode.row.expected_state or {}).get("written")
    return expected is None or all(
        key in expected and record.keys() <= expected[key].keys()
        for key, record in episode.session.records.written.items()
    )


def _writes(episode: SpecEpisode, name: str | None) -> bool:
    actions = [n.actions[name] for n in episode.graph.nodes.values() if name in n.actions]
    return bool(actions) and writes(actions[0])


def _any(episode: SpecEpisode) -> bool:
    return True
