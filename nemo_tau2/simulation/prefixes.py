"""Prefixes: dialogues cut before a later decision of the policy, and how an episode takes one up.

A row without a prefix begins at the customer's opening; one with a prefix of depth d begins after d
policy turns (generations) of a scripted player that knows everything (K4). The prefix holds what follows
the system message and welcome: customer, calls, results, focus messages.

`hydrate` plays it again in the episode, so that variables, active node, records and evidence are what
they were, and refuses a prefix that does not come out the same. It is played with the settings that rows
are made with (no faults, default budgets and focus messages); those of the episode hold from then on.
Its turns are nobody's: they get no reward, no tier and no count. What they grounded stays grounded.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nemo_tau2.episodes import Item, message_item, output_text
from nemo_tau2.errors import UserError
from nemo_tau2.simulation.emulator import ScriptedEmulator
from nemo_tau2.simulation.options import SpecOptions, budget_of

if TYPE_CHECKING:
    from nemo_tau2.simulation.episode import SpecEpisode
    from nemo_tau2.simulation.policies import Policy

BEFORE = -1
"""`Done.turn` of a call that a prefix made."""


async def play_prefixes(
    episode: "SpecEpisode", policy: "Policy", depths: Sequence[int]
) -> dict[int, tuple[Item, ...]]:
    """The prefix of each depth, from one play; a depth that the play does not reach is left out.

    Depth 0 is the empty prefix. The episode must be new and its customer and emulator scripted.
    """
    seen = await episode.seed()
    first = next((i for i, item in enumerate(seen.items) if item.get("role") == "user"), 0)
    items, tools = list(seen.items[first:]), seen.tools or []
    found: dict[int, tuple[Item, ...]] = {}
    for depth in range(max(depths, default=0) + 1):
        if depth in depths and not seen.done:
            found[depth] = tuple(items) if depth else ()
        if seen.done:
            break
        output = [_numbered(item, depth, i) for i, item in enumerate(policy(episode, tools))]
        seen = await episode.step(output)
        tools = seen.tools if seen.tools is not None else tools
        items += [_as_input(item) for item in output] + seen.items
    return found


async def hydrate(episode: "SpecEpisode", prefix: Sequence[Item]) -> list[Item]:
    """Plays a prefix in a new episode; returns its items, and what follows its last one.

    Raises:
        UserError: the environment has no customer, or the prefix does not come out the same.
    """
    where = episode.row.task_id
    if not episode.has_customer:
        raise UserError(f"{where}: prefix: a sandbox has no dialogue; remove the prefix")
    customer, recorded = episode.customer, _Recorded(prefix, episode.customer)
    with _as_made(episode, recorded):
        items = await episode.hear_customer(None)
        for block in _policy_blocks(prefix):
            items += block + await _replayed(episode, block)
    _compare(items, prefix, where)
    if hasattr(customer, "recall"):
        customer.recall(recorded.exchanged)
    for call in episode.session.calls:
        call.turn = BEFORE
    episode.turns, episode.errors, episode.switches, episode.dead_ends = [], 0, [], 0
    role = episode.options.focus_role
    return [i | {"role": role} if i.get("role") == "system" else i for i in items]


@contextmanager
def _as_made(episode: "SpecEpisode", customer: "_Recorded") -> Iterator[None]:
    """The helpers, settings and budgets that rows are made with."""
    session = episode.session
    own = (episode.options, episode.budget, episode.customer, session.emulator)
    made = SpecOptions(helper_timeout_s=episode.options.helper_timeout_s)
    episode.options, episode.budget = made, budget_of(episode.graph, made)
    episode.customer, session.emulator = customer, ScriptedEmulator()
    rate, session.transient_rate = session.transient_rate, 0.0
    try:
        yield
    finally:
        episode.options, episode.budget, episode.customer, session.emulator = own
        session.transient_rate = rate


async def _replayed(episode: "SpecEpisode", block: list[Item]) -> list[Item]:
    if episode.stop_reason:
        raise UserError(f"{episode.row.task_id}: prefix: it goes on after the episode's end")
    episode.turns.append([])
    return await episode.advance(block)


class _Recorded:
    """The customer of a prefix; when its words are spent, the real one speaks."""

    def __init__(self, prefix: Sequence[Item], after: Any):
        self._texts = [_text(item) for item in prefix if item.get("role") == "user"]
        self._after = after
        self.exchanged: list[tuple[str | None, str]] = []

    async def reply(self, said: str | None) -> str:
        if not self._texts:
            if hasattr(self._after, "recall"):
                self._after.recall(self.exchanged)
                self.exchanged = []
            return await self._after.reply(said)
        self.exchanged.append((said, self._texts.pop(0)))
        return self.exchanged[-1][1]


def _policy_blocks(prefix: Sequence[Item]) -> list[list[Item]]:
    """The policy's generations: calls that follow each other, or one message."""
    blocks: list[list[Item]] = []
    before = None
    for item in prefix:
        kind = "call" if item.get("type") == "function_call" else item.get("role")
        if kind == "call" and before == "call":
            blocks[-1].append(item)
        elif kind in ("call", "assistant"):
            blocks.append([item])
        before = kind
    return blocks


def _compare(actual: Sequence[Item], prefix: Sequence[Item], where: str) -> None:
    for index, wanted in enumerate(prefix):
        found = actual[index] if index < len(actual) else None
        if found is None or _essence(found) != _essence(wanted):
            raise UserError(
                f"{where}: prefix item {index} ({wanted.get('role') or wanted.get('type')}) does not "
                "come out of the script as it stands; make the rows again"
            )


def _essence(item: Item) -> tuple:
    kind = item.get("type", "message")
    if kind == "message":
        return (kind, item.get("role"), _text(item).strip())
    if kind == "function_call":
        return (kind, item.get("name"), str(item.get("arguments")))
    return (kind, str(item.get("output")))


def _text(item: Item) -> str:
    content = item.get("content")
    return content if isinstance(content, str) else output_text([item])


def _numbered(item: Item, depth: int, index: int) -> Item:
    """Call ids unique within the prefix."""
    if item.get("type") != "function_call":
        return item
    return item | {"call_id": f"call_{depth}_{index}"}


def _as_input(item: Item) -> Item:
    if item.get("type", "message") == "message":
        return message_item("assistant", _text(item))
    return item if isinstance(item.get("arguments"), str) else item | {"arguments": json.dumps({})}
