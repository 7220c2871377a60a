"""A training batch of NeMo RL as turn-level credit sees it: groups, turn rewards, spans, exclusions.

It reads NeMo RL's batch and computes nothing. Notation: B rollouts, sequences padded on the right to
S tokens, rollout i has K_i turns.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl.actor import GROUP, MASKED, TURN_REWARD, TURN_TIER

REWARD_COLUMN = "nemo_tau2_turn_rewards"
"""Data-plane column, float32 [B, T]: turn rewards, NaN after the last turn (columns.py)."""
EXCLUDED_COLUMN = "nemo_tau2_excluded"
"""Data-plane column, float32 [B, 1]: 1 for a truncated, masked or failed rollout."""


@dataclass(frozen=True)
class Rollouts:
    """What one call of an estimator works on."""

    groups: list[Hashable]
    """[B] group ids; rows without one are grouped by their prompt rows."""
    excluded: np.ndarray
    """bool [B]: truncated, masked or failed; left out of every statistic."""
    spans: list[np.ndarray]
    """B int arrays [K_i, 2]: [start, end) token positions of each turn."""
    turn_rewards: list[list[float]] | None
    """B lists of K_i floats; None where a rollout that counts has none."""
    tiers: list[list[str]] | None
    """B lists of K_i tier names, where the environment reports them."""
    environments: list[str] | None
    """[B] names of the agents that ran the rollouts."""
    without_rewards: str = ""
    """Which rollout has no turn rewards, for the error message."""


def from_batch(
    batch: Mapping[str, Any], mask: Any, prompt_ids: Any = None, valid_mask: Any = None
) -> Rollouts:
    """Reads a batch in either form: message logs (sync and async loop) or columns (SingleController).

    `mask` [B, S] trained tokens, `prompt_ids` [B, P] rows that are equal within a prompt,
    `valid_mask` [B] positive for rollouts that count (newer NeMo RL). Raises `UserError` for a batch
    of neither form and where turn counts disagree.
    """
    excluded = exclusions(batch, mask, valid_mask)
    if "message_log" in batch:
        return _from_messages(batch, excluded, prompt_ids)
    if REWARD_COLUMN in batch:
        return _from_columns(batch, excluded, mask, prompt_ids)
    raise UserError(
        "this batch carries no message logs and no turn rewards: NeMo RL's data plane drops them; set "
        "data_plane.enabled: false (or see nemo_tau2.single_controller in docs/nemo_rl.md)"
    )


def exclusions(batch: Mapping[str, Any], mask: Any = None, valid_mask: Any = None) -> np.ndarray:
    """bool [B]: rollouts that are truncated, masked, failed, or have no trained token.

    NeMo RL zeroes the mask of some of these but still counts them in its baselines
    (nemo_rl/experience/rollouts.py); v0.7.0 knows no mask_sample, so the actor's own mark counts too.
    """
    logs = batch.get("message_log")
    size = len(logs) if logs is not None else len(mask)
    out = np.zeros(size, dtype=bool)
    for key in ("truncated", "mask_sample"):
        if key in batch:
            out |= to_numpy(batch[key]).astype(bool)
    if "loss_multiplier" in batch:
        out |= to_numpy(batch["loss_multiplier"]) == 0
    if EXCLUDED_COLUMN in batch:
        out |= to_numpy(batch[EXCLUDED_COLUMN]).reshape(size) > 0
    if valid_mask is not None:
        out |= to_numpy(valid_mask).reshape(size) <= 0
    if mask is not None:
        out |= ~to_numpy(mask.any(1)).astype(bool)
    if logs is not None:
        out |= np.array([bool(log[0].get(MASKED)) for log in logs], dtype=bool)
    return out


def group_ids(message_logs: Sequence[list[dict]], fallback: Any = None) -> list[Hashable]:
    """[B] group ids from the message logs; where one is missing, the rows of `fallback` [B, P] decide."""
    ids: list[Hashable] = [log[0].get(GROUP) for log in message_logs]
    if None not in ids:
        return ids
    if fallback is None:
        raise UserError(
            "a rollout has no group id: its dataset row needs verifier_metadata.group_id"
        )
    rows = group_rows(fallback)
    return [("prompt", rows[i]) if group is None else group for i, group in enumerate(ids)]


def group_rows(rows: Any) -> list[int]:
    """Numbers the distinct rows of a [B, P] or [B] array: prompt tokens, hashes or group indices."""
    array = to_numpy(rows)
    array = np.ascontiguousarray(array.reshape(len(array), -1))
    seen: dict[bytes, int] = {}
    return [seen.setdefault(row.tobytes(), len(seen)) for row in array]


def _from_messages(batch: Mapping[str, Any], excluded: np.ndarray, prompt_ids: Any) -> Rollouts:
    logs = batch["message_log"]
    spans, rewards, tiers, missing = [], [], [], ""
    for i, log in enumerate(logs):
        turns, end = [], 0
        row_rewards: list[float] = []
        row_tiers: list[str] = []
        for message in log:
            start, end = end, end + len(message["token_ids"])
            if message["role"] != "assistant" or not _is_trained(message):
                continue
            turns.append((start, end))
            if TURN_REWARD in message:
                row_rewards.append(message[TURN_REWARD])
                row_tiers.append(message.get(TURN_TIER, "message"))
        if len(row_rewards) != len(turns):
            if not excluded[i] and not missing:
                missing = f"rollout {i}: {len(row_rewards)} turn rewards for {len(turns)} turns"
            row_rewards, row_tiers = [0.0] * len(turns), ["message"] * len(turns)
        spans.append(np.array(turns, dtype=np.intp).reshape(-1, 2))
        rewards.append(row_rewards)
        tiers.append(row_tiers)
    refs = batch.get("agent_ref")
    names = None if refs is None else [str(dict(ref).get("name", "")) for ref in refs]
    return Rollouts(
        groups=group_ids(logs, prompt_ids),
        excluded=excluded,
        spans=spans,
        turn_rewards=None if missing else rewards,
        tiers=None if missing else tiers,
        environments=names,
        without_rewards=missing,
    )


def _is_trained(message: Mapping[str, Any]) -> bool:
    """NeMo RL gives every message logprobs before the estimator runs, but only generated ones a loss mask."""
    if TURN_REWARD in message:
        return True
    loss_mask = message.get("token_loss_mask")
    return "generation_logprobs" in message and (loss_mask is None or bool(loss_mask[:1].any()))


def _from_columns(
    batch: Mapping[str, Any], excluded: np.ndarray, mask: Any, prompt_ids: Any
) -> Rollouts:
    """Reward k belongs to the k-th run of ones in the mask; counts are checked on rows that count."""
    spans = runs(to_numpy(mask) > 0)
    table = to_numpy(batch[REWARD_COLUMN]).astype(np.float64).reshape(len(spans), -1)
    rewards = []
    for i, (row, turns) in enumerate(zip(table, spans, strict=True)):
        given = row[~np.isnan(row)].tolist()
        if len(given) != len(turns):
            if not excluded[i]:
                raise UserError(
                    f"rollout {i}: {len(given)} turn rewards for {len(turns)} runs of trained tokens"
                )
            given = [0.0] * len(turns)
        rewards.append(given)
    if prompt_ids is None:
        raise UserError("this batch carries no prompt_ids to group its rollouts by")
    return Rollouts(group_rows(prompt_ids), excluded, spans, rewards, None, None)


def runs(mask: np.ndarray) -> list[np.ndarray]:
    """The runs of ones in each row of a bool [B, S] array: B int arrays [K_i, 2] of [start, end)."""
    padded = np.zeros((len(mask), mask.shape[1] + 2), dtype=np.int8)
    padded[:, 1:-1] = mask
    row, edge = np.nonzero(np.diff(padded, axis=1))
    pairs = edge.reshape(-1, 2)
    counts = np.bincount(row[::2], minlength=len(mask))
    return np.split(pairs, np.cumsum(counts)[:-1])


def to_numpy(values: Any) -> np.ndarray:
    """A list, numpy array or tensor on any device as a numpy array."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
