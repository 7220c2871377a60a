"""Advantage estimators in NeMo RL's shape: `compute_advantage(...)` → [B, S], `last_metrics`.

`TurnCredit` is the torch rim of `nemo_tau2.credit`. `Filtered` runs one of NeMo RL's own estimators
on the rollouts that count, grouped by group id. Neither holds state but its configuration.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nemo_tau2.credit import credit_metrics, token_advantages, turn_advantages
from nemo_tau2.credit.diagnostics import TIERS
from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl import compat
from nemo_tau2.nemo_rl.config import Estimator
from nemo_tau2.nemo_rl.rollouts import Rollouts, exclusions, from_batch, group_ids, to_numpy


class TurnCredit:
    """An estimator of `nemo_tau2.credit`: constant over each turn's tokens, 0 on all others."""

    def __init__(self, config: Estimator, columns: bool = False) -> None:
        self.config = config
        self.columns = columns
        """Whether turn rewards come as data-plane columns; the process that computes needs them."""
        self.last_metrics: dict[str, float] = {}

    def compute_advantage(
        self,
        prompt_ids: torch.Tensor,
        rewards: torch.Tensor,
        mask: torch.Tensor,
        repeated_batch: Mapping[str, Any] | None = None,
        valid_mask: torch.Tensor | None = None,
        **_: Any,
    ) -> Any:
        """Advantages, float32 on the CPU, [B, S]; an `AdvantageResult` where NeMo RL has one.

        `rewards` [B] are the outcomes (not `repeated_batch["total_reward"]`, which dynamic sampling
        leaves unaligned), `mask` [B, S]. Raises `UserError` for a rollout without turn rewards under an
        estimator that needs them, and for values that are not finite.
        """
        rollouts = from_batch(repeated_batch or {}, mask, prompt_ids, valid_mask)
        outcomes = to_numpy(rewards).astype(np.float64)
        values = self._turn_values(rollouts, outcomes)
        tokens = token_advantages(values, rollouts.spans, mask.shape[1])
        self.last_metrics = metrics(self.config.name, rollouts, values, outcomes)
        return compat.advantage_result(torch.from_numpy(tokens), self.last_metrics)

    def _turn_values(self, rollouts: Rollouts, outcomes: np.ndarray) -> list[np.ndarray]:
        """One advantage per turn: B arrays [K_i]."""
        turn_rewards = rollouts.turn_rewards
        if turn_rewards is None:
            if self.config.uses_turn_rewards:
                raise UserError(
                    f"{self.config.name} needs turn rewards, but {rollouts.without_rewards}: the "
                    "environment's verify response must carry turn_rewards; grpo and rloo_norm need none"
                )
            turn_rewards = [[0.0] * len(span) for span in rollouts.spans]
        name = self.config.name
        if name == "grpo" and not self.config.normalise:
            flat = centred(outcomes, rollouts, self.config.leave_one_out)
            return [np.full(len(span), a) for span, a in zip(rollouts.spans, flat, strict=True)]
        if name == "grpo" and self.config.leave_one_out:
            name = "rloo_norm"  # NeMo RL's mean and std of the others
        return turn_advantages(
            outcomes,
            rollouts.groups,
            turn_rewards,
            name,
            exclude=rollouts.excluded,
            **self.config.options,
        )

    def __reduce__(self) -> tuple:
        return rebuild, (self.config, self.columns)


class Filtered:
    """One of NeMo RL's own estimators, on the rollouts that count and grouped by group id."""

    def __init__(self, inner: Any, config: Estimator) -> None:
        self.inner = inner
        self.config = config
        self.last_metrics: dict[str, float] = {}

    def compute_advantage(
        self,
        prompt_ids: torch.Tensor,
        rewards: torch.Tensor,
        mask: torch.Tensor,
        repeated_batch: Any = None,
        **kwargs: Any,
    ) -> Any:
        """The inner estimator's advantages, materialised, [B, S]; zeros for rollouts left out."""
        logs = (repeated_batch or {}).get("message_log")
        if logs is None:
            raise UserError(
                f"{self.config.name}: NeMo RL's data plane is not supported; disable it"
            )
        valid_mask = kwargs.get("valid_mask")
        kept = torch.from_numpy(np.flatnonzero(~exclusions(repeated_batch, mask, valid_mask)))
        numbers: dict[Any, int] = {}
        groups = [numbers.setdefault(g, len(numbers)) for g in group_ids(logs, prompt_ids)]
        out = torch.zeros(mask.shape, dtype=torch.float32)
        if len(kept):
            rest = {key: _rows(value, kept, len(logs)) for key, value in kwargs.items()}
            result = self.inner.compute_advantage(
                prompt_ids=torch.tensor(groups)[kept, None],
                rewards=rewards[kept],
                mask=mask[kept],
                repeated_batch=repeated_batch.select_indices(kept.tolist()),
                **rest,
            )
            out[kept] = compat.advantages_of(result).detach().cpu().to(torch.float32)
        self.last_metrics = dict(getattr(self.inner, "last_metrics", None) or {})
        return compat.advantage_result(out, self.last_metrics)


def _rows(value: Any, kept: torch.Tensor, size: int) -> Any:
    if isinstance(value, torch.Tensor) and value.ndim and len(value) == size:
        return value[kept.to(value.device)]
    return value


def centred(outcomes: np.ndarray, rollouts: Rollouts, leave_one_out: bool) -> np.ndarray:
    """o_i minus the mean of its group, or of the others in it; 0 where nothing is to compare. → [B]"""
    out = np.zeros(len(outcomes))
    members: dict[Any, list[int]] = {}
    for i in np.flatnonzero(~rollouts.excluded):
        members.setdefault(rollouts.groups[i], []).append(int(i))
    for rows in members.values():
        values = outcomes[rows]
        if len(rows) > 1 and not (values == values[0]).all():
            scale = len(rows) / (len(rows) - 1) if leave_one_out else 1.0
            out[rows] = (values - values.mean()) * scale
    return out


def metrics(
    name: str, rollouts: Rollouts, values: Sequence[np.ndarray], outcomes: np.ndarray
) -> dict[str, float]:
    """Logger entries of one step: per tier, and the mean reward of every environment."""
    out = {"nemo_tau2/excluded_rollouts": float(rollouts.excluded.sum())}
    if rollouts.environments is not None:
        names = np.array(rollouts.environments)
        for environment in sorted(set(rollouts.environments)):
            rows = (names == environment) & ~rollouts.excluded
            if rows.any():
                out[f"nemo_tau2/reward/{environment}"] = float(outcomes[rows].mean())
    if rollouts.tiers is None:
        return out
    # An environment may have tiers of its own; the diagnostics know the seven of τ².
    foreign = np.array([not set(tiers) <= set(TIERS) for tiers in rollouts.tiers], dtype=bool)
    skip = rollouts.excluded | foreign
    if skip.all():
        return out
    found = credit_metrics(values, rollouts.tiers, outcomes, rollouts.groups, exclude=skip)
    flat = {f"nemo_tau2/{name}/{key}": value for key, value in found.flat().items()}
    return out | {key: value for key, value in flat.items() if np.isfinite(value)}


def rebuild(config: Estimator, columns: bool) -> TurnCredit:
    """Unpickles an estimator; the process that receives one gets the hooks it relies on."""
    from nemo_tau2.nemo_rl import hooks

    hooks.install()
    if columns:
        hooks.install_columns()
    return TurnCredit(config, columns)
