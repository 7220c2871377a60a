"""Turn tiers: what each tool call of a trajectory was worth, from the trajectory and the gold actions.

Pure and deterministic: the caller says what happened (`Call`) and what was wanted (`GoldAction`),
`classify` says which tier each call is. Definitions follow arXiv:2604.02869 where it is explicit;
the rest is written beside each rule. It is not the outcome reward, and no tier implies success.

Precedence: error > unconsumed gold > duplicate > soft > state_change > read_only. Exact matches are
assigned before soft ones over the whole trajectory, and each gold action is consumed once, so a wrong
attempt never takes the place of the right one and no gold action pays twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

Actor = Literal["assistant", "user"]


class Tier(StrEnum):
    """Tier of a call, or of a turn (its best call); order of members is best first."""

    GOLD_EXACT = "gold_exact"
    SOFT_MATCH = "soft_match"
    STATE_CHANGE = "state_change"
    READ_ONLY = "read_only"
    MESSAGE = "message"
    ERROR = "error"
    DUPLICATE = "duplicate"


_RANK = {tier: rank for rank, tier in enumerate(Tier)}


@dataclass(frozen=True)
class Call:
    """One executed (or refused) tool call.

    `matched` are the arguments to compare with gold (defaults filled, free text removed); `arguments`
    are those the caller sent. `landed` says whether a write put every entry it changed on a value of
    the gold path; None where nobody looked.
    """

    actor: Actor
    name: str
    arguments: dict[str, Any]
    matched: dict[str, Any]
    writes: bool
    errored: bool
    landed: bool | None = None


@dataclass(frozen=True)
class GoldAction:
    """One wanted call. `errored`: it fails on the gold path itself, so it is worth nothing.

    `compare` names the arguments that count, None meaning all of them.
    """

    actor: Actor
    name: str
    arguments: dict[str, Any]
    matched: dict[str, Any]
    compare: tuple[str, ...] | None = None
    errored: bool = False


@dataclass(frozen=True)
class CallTier:
    """The verdict on one call: its tier, the share of gold arguments it gave, the gold index."""

    tier: Tier
    share: float = 0.0
    gold: int | None = None
    unpaid: bool = False


def deep_equal(left: Any, right: Any) -> bool:
    """Equality that forgives notation: lists of dicts in any order, numeric strings, empty values.

    Booleans never equal numbers. (arXiv:2604.02869, `deep_equal`.)
    """
    return _canonical(left) == _canonical(right)


def strict_equal(left: Any, right: Any) -> bool:
    """JSON equality: 2, 2.0, "2" and true all differ."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            strict_equal(v, right[k]) for k, v in left.items()
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(strict_equal, left, right))
    return left == right


def same_arguments(call: Call, gold: GoldAction) -> bool:
    """Whether two calls ask for the same, notation forgiven."""
    return deep_equal(_compared(call.matched, gold), _compared(gold.matched, gold))


def classify(calls: Sequence[Call], gold: Sequence[GoldAction]) -> list[CallTier]:
    """Tier of every call, in order.

    Args:
        calls: all calls of the trajectory, the policy's and the user's, in the order they ran.
        gold: the task's gold actions.

    Returns: one `CallTier` per call.
    """
    verdicts: list[CallTier | None] = [None] * len(calls)
    free = set(range(len(gold)))
    for position, call in enumerate(calls):
        index = next((i for i in sorted(free) if _is_exact(call, gold[i])), None)
        if index is not None:
            free.discard(index)
            verdicts[position] = CallTier(Tier.GOLD_EXACT, 1.0, index, unpaid=gold[index].errored)
    seen: list[Call] = []
    for position, call in enumerate(calls):
        if verdicts[position] is None:
            verdicts[position] = _not_exact(call, gold, free, seen)
        if not call.errored:
            seen.append(call)
    return verdicts


def turn_tier(calls: Sequence[CallTier]) -> Tier:
    """Tier of a turn: that of its best call; `message` where it has none."""
    return min((call.tier for call in calls), key=_RANK.__getitem__, default=Tier.MESSAGE)


def _not_exact(
    call: Call, gold: Sequence[GoldAction], free: set[int], seen: Sequence[Call]
) -> CallTier:
    if call.errored:
        return CallTier(Tier.ERROR)
    if any(_repeats(call, earlier) for earlier in seen):
        return CallTier(Tier.DUPLICATE)
    candidates = [i for i in sorted(free) if _same_tool(call, gold[i]) and not gold[i].errored]
    shares = {i: _share(call, gold[i]) for i in candidates}
    best = max(shares, key=shares.__getitem__, default=None)
    if best is not None and shares[best] > 0:
        free.discard(best)
        return CallTier(Tier.SOFT_MATCH, shares[best], best)
    return CallTier(Tier.STATE_CHANGE if call.writes else Tier.READ_ONLY)


def _same_tool(call: Call, gold: GoldAction) -> bool:
    return call.name == gold.name and call.actor == gold.actor


def _is_exact(call: Call, gold: GoldAction) -> bool:
    """Same tool, equal arguments, and the same fate; a write in another notation must also land."""
    if not _same_tool(call, gold) or call.errored != gold.errored:
        return False
    if strict_equal(_compared(call.arguments, gold), _compared(gold.arguments, gold)):
        return True
    return same_arguments(call, gold) and (not call.writes or call.landed is True)


def _share(call: Call, gold: GoldAction) -> float:
    """|arguments equal to gold's| / |gold's arguments|."""
    wanted = _compared(gold.matched, gold)
    if not wanted:
        return 0.0
    equal = sum(k in call.matched and deep_equal(call.matched[k], v) for k, v in wanted.items())
    return equal / len(wanted)


def _compared(arguments: dict[str, Any], gold: GoldAction) -> dict[str, Any]:
    if gold.compare is None:
        return arguments
    return {key: value for key, value in arguments.items() if key in gold.compare}


def _repeats(call: Call, earlier: Call) -> bool:
    return (call.actor, call.name) == (earlier.actor, earlier.name) and strict_equal(
        call.arguments, earlier.arguments
    )


def _canonical(value: Any) -> Any:
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return ("number", float(value)) if abs(value) < 2**53 else ("number", str(value))
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text)
        except ValueError:
            return ("text", text)
        # Identifiers such as "0123" keep their zeros: only plain decimal notation is a number.
        plain = text.lstrip("+-").replace(".", "", 1).isdigit() and (
            text.lstrip("+-")[:2].rstrip(".") == "0" or not text.lstrip("+-").startswith("0")
        )
        return ("number", number) if plain and abs(number) < 2**53 else ("text", text)
    if isinstance(value, dict):
        kept = {k: _canonical(v) for k, v in value.items() if v not in (None, "", [], {})}
        return ("dict", tuple(sorted(kept.items(), key=repr)))
    if isinstance(value, list):
        items = [_canonical(item) for item in value]
        if value and all(isinstance(item, dict) for item in value):
            items.sort(key=repr)
        return ("list", tuple(items))
    return ("other", repr(value))
