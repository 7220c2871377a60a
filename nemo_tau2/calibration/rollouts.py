"""Stored rollouts as calibration reads them: outcomes, groups, rewards and tiers turn by turn."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from nemo_tau2.credit import TIERS
from nemo_tau2.errors import UserError

PASS = 1 - 1e-6
"""A rollout passes with a reward of at least this, as in τ²."""


@dataclass
class RolloutSet:
    """N rollouts that count, and how many were left out."""

    outcomes: list[float] = field(default_factory=list)
    groups: list[tuple[str, str]] = field(default_factory=list)
    """(domain, group id) of each rollout."""
    turn_rewards: list[list[float]] = field(default_factory=list)
    turn_tiers: list[list[str]] = field(default_factory=list)
    call_tiers: list[list[list[str]]] = field(default_factory=list)
    """The tier of each call of each turn; a turn without a call is one `message`."""
    masked: int = 0
    """Rollouts whose infrastructure failed (`mask_sample`): left out."""
    pivot: int = 0
    """Pivot rollouts: one turn, paid the outcome and not by its tier, so left out."""
    unfinished: int = 0
    """1 where the file's last line was cut off: left out."""

    def __len__(self) -> int:
        return len(self.outcomes)

    @cached_property
    def outcome(self) -> np.ndarray:
        """float64 [N]."""
        return np.array(self.outcomes, dtype=np.float64)

    @cached_property
    def passed(self) -> np.ndarray:
        """bool [N]."""
        return self.outcome >= PASS

    @cached_property
    def present(self) -> np.ndarray:
        """bool [N, tiers]: the rollout has at least one call or turn of the tier."""
        out = np.zeros((len(self), len(TIERS)), dtype=bool)
        for i, (tiers, calls) in enumerate(zip(self.turn_tiers, self.call_tiers, strict=True)):
            for tier in {*tiers, *(c for turn in calls for c in turn)}:
                out[i, TIERS.index(tier)] = True
        return out

    def add(self, row: Mapping[str, Any], where: str) -> None:
        """Adds one row of `nemo-tau2 rollout`. Raises `UserError` for a row it cannot use."""
        if not isinstance(row, dict):
            raise UserError(f"{where}: not an object: expected a row of `nemo-tau2 rollout`")
        if row.get("mask_sample"):
            self.masked += 1
            return
        info = row.get("reward_info")
        if isinstance(info, dict) and info.get("kind") == "pivot":
            self.pivot += 1
            return
        missing = [k for k in ("reward", "group_id", "turn_rewards", "turn_tiers") if k not in row]
        if missing:
            raise UserError(
                f"{where}: no {', '.join(missing)}: expected a row of `nemo-tau2 rollout`"
            )
        tiers, calls = row["turn_tiers"], row.get("call_tiers")
        rewards = row["turn_rewards"]
        if not (isinstance(tiers, list) and isinstance(rewards, list)) or len(tiers) != len(
            rewards
        ):
            raise UserError(f"{where}: turn_rewards and turn_tiers must be lists of one length")
        if calls is not None and (
            not isinstance(calls, list)
            or len(calls) != len(tiers)
            or not all(isinstance(turn, list) for turn in calls)
        ):
            raise UserError(f"{where}: call_tiers must be one list of tiers per turn")
        calls = [[t] for t in tiers] if calls is None else [turn or ["message"] for turn in calls]
        for tier in [*tiers, *(c for turn in calls for c in turn)]:
            if tier not in TIERS:
                raise UserError(
                    f"{where}: unknown tier {tier!r}: expected one of {', '.join(TIERS)}"
                )
        self.outcomes.append(_number(row["reward"], f"{where}: reward"))
        self.turn_rewards.append([_number(r, f"{where}: turn_rewards") for r in rewards])
        self.groups.append((str(row.get("domain", "")), str(row["group_id"])))
        self.turn_tiers.append(tiers)
        self.call_tiers.append(calls)


def read_rollouts(lines: Iterable[bytes], name: str) -> RolloutSet:
    """Reads the lines of a rollouts.jsonl; `name` is what errors call the file.

    A last line without its newline that does not parse is a row that was still being written: it is
    left out and counted. Raises `UserError` for any other bad line, and where no rollout is left.
    """
    out = RolloutSet()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            if not line.endswith(b"\n"):
                out.unfinished += 1
                continue
            raise UserError(f"{where}: not JSON: remove the line or roll out again") from None
        out.add(row, where)
    if not len(out):
        raise UserError(
            f"{name}: no rollout to calibrate on ({out.masked} masked, {out.pivot} pivot)"
        )
    return out


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UserError(f"{where} has {value!r}: it must be a finite number")
    return float(value)
