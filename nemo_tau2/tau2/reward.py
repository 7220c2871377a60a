"""The outcome reward of a τ² episode: exactly upstream's product over the task's `reward_basis`.

Upstream (`tau2/evaluator/evaluator.py`) rebuilds the world by replaying the whole trajectory and hashes
two databases; here the live world is compared with the cached gold end state, which gives the same
answer (`nemo-tau2 bench parity`). ACTION and COMMUNICATE are upstream's own evaluators.

The database comparison follows upstream except where `fixes.Fixes` says otherwise.
"""

from dataclasses import dataclass, field
from typing import Any

from nemo_tau2.tau2.engine import (
    ActionEvaluator,
    CommunicateEvaluator,
    Message,
    RewardType,
    Task,
)
from nemo_tau2.tau2.gold import GoldPath
from nemo_tau2.tau2.worlds import World

MAX_DIFF = 20
"""Database differences written into a row; more are counted."""


@dataclass
class Reward:
    """Outcome reward in [0, 1] with its components.

    `breakdown` maps each basis that was checked to its factor; `left_out` names bases that were in the
    task but could not be checked (natural-language assertions without a judge).
    """

    value: float
    basis: list[str]
    breakdown: dict[str, float] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def as_row(self) -> dict[str, Any]:
        return {
            "reward": self.value,
            "reward_basis": self.basis,
            "breakdown": self.breakdown,
            "left_out": self.left_out,
            **self.details,
        }


def unscored(task: Task, stop_reason: str) -> Reward:
    """The reward of an episode that nobody ended properly: 0, without components, as upstream has it."""
    return Reward(0.0, _basis(task), details={"note": f"ended by {stop_reason}"})


def outcome_reward(
    world: World,
    task: Task,
    gold: GoldPath,
    trajectory: list[Message],
    nl_verdicts: list[dict[str, Any]] | None = None,
) -> Reward:
    """Scores a finished episode.

    Args:
        world: the live world at the end of the episode.
        task: the task, with its evaluation criteria.
        gold: the task's gold path.
        trajectory: every message, tool results included, in order.
        nl_verdicts: one {"assertion", "met", "reason"} per natural-language assertion; None leaves
            that basis out, and the reward says so.
    """
    criteria = task.evaluation_criteria
    if criteria is None:
        return Reward(1.0, [], details={"note": "the task has no evaluation criteria"})
    reward = Reward(1.0, _basis(task))
    basis = set(criteria.reward_basis)
    if criteria.actions is not None or criteria.env_assertions is not None:
        if RewardType.DB in basis:
            reward.breakdown["DB"] = _database(world, gold, reward.details)
        if RewardType.ENV_ASSERTION in basis:
            reward.breakdown["ENV_ASSERTION"] = _assertions(world, task, reward.details)
    if RewardType.ACTION in basis:
        action = ActionEvaluator.calculate_reward(task=task, full_trajectory=trajectory)
        reward.breakdown["ACTION"] = action.reward
        reward.details["actions"] = [
            {"name": check.action.name, "met": check.action_match}
            for check in action.action_checks or []
        ]
    if RewardType.COMMUNICATE in basis:
        said = CommunicateEvaluator.calculate_reward(task=task, full_trajectory=trajectory)
        reward.breakdown["COMMUNICATE"] = said.reward
        reward.details["communicate"] = [
            {"info": check.info, "met": check.met} for check in said.communicate_checks or []
        ]
    if RewardType.NL_ASSERTION in basis and criteria.nl_assertions:
        if nl_verdicts is None:
            reward.left_out.append("NL_ASSERTION")
        else:
            reward.breakdown["NL_ASSERTION"] = float(all(v["met"] for v in nl_verdicts))
            reward.details["nl_assertions"] = nl_verdicts
    for factor in reward.breakdown.values():
        reward.value *= factor
    return reward


def _basis(task: Task) -> list[str]:
    criteria = task.evaluation_criteria
    return [basis.value for basis in criteria.reward_basis] if criteria else []


def _database(world: World, gold: GoldPath, details: dict[str, Any]) -> float:
    """1.0 where the end state equals the gold end state, JSON text by JSON text."""
    end = world.delta()
    different = sorted(
        key for key in end.keys() | gold.end.keys() if end.get(key) != gold.end.get(key)
    )
    details["db_match"] = not different
    details["db_differences"] = len(different)
    details["db_diff"] = [
        {
            "side": side,
            "table": table,
            "row": row,
            "state": _state(end, (side, table, row)),
            "gold": _state(gold.end, (side, table, row)),
        }
        for side, table, row in different[:MAX_DIFF]
    ]
    return 0.0 if different else 1.0


def _state(delta, key) -> str:
    if key not in delta:
        return "unchanged"
    return "absent" if delta[key] is None else delta[key]


def _assertions(world: World, task: Task, details: dict[str, Any]) -> float:
    checks = []
    for assertion in task.evaluation_criteria.env_assertions or []:
        try:
            met = world.environment.run_env_assertion(assertion, raise_assertion_error=False)
        except ValueError as error:
            # Upstream's evaluation would raise: the state lacks what the assertion speaks of.
            checks.append({"assertion": assertion.func_name, "met": False, "note": str(error)})
            continue
        checks.append({"assertion": assertion.func_name, "met": met})
    details["env_assertions"] = checks
    return 1.0 if all(check["met"] for check in checks) else 0.0
