"""The NemoGym actor, with turn rewards and group ids on what it returns.

NeMo RL turns a verify response into a message log inside this Ray actor and drops everything else.
The subclass hangs what turn-level credit needs on the messages themselves, which travel unchanged
through Ray, slicing, concatenation and the replay buffer of the sync and the async loop.

This module is shipped to the actor's own virtual environment, so it imports the standard library and,
inside functions, torch: nothing of this package and nothing else.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

GROUP = "nemo_tau2_group"
"""str on the first message: the group id of the dataset row."""
MASKED = "nemo_tau2_masked"
"""bool on the first message: the rollout failed and carries no training signal."""
TURN_REWARD = "turn_reward"
"""float on each generated message. A Python float: NeMo RL concatenates tensors across messages."""
TURN_TIER = "turn_tier"
"""str on each generated message."""


def subclass(actor_class: Any) -> Any:
    """A Ray actor class like `actor_class` (NeMo RL's NemoGym) that annotates what it returns."""
    import ray

    base = actor_class.__ray_metadata__.modified_class

    class TurnCreditNemoGym(base):
        """NemoGym with turn rewards, tiers and group ids on its message logs."""

        def _postprocess_nemo_gym_to_nemo_rl_result(self, *args: Any, **kwargs: Any) -> dict:
            # main passes (row, result, tokenizer), v0.7.0 (result, tokenizer).
            dicts = [value for value in (*args, *kwargs.values()) if isinstance(value, dict)]
            full_result = next((d for d in dicts if "response" in d), None)
            row = next((d for d in dicts if d is not full_result), {})
            if (
                full_result is not None
                and is_masked(full_result)
                and not has_generation(full_result)
            ):
                return annotate(placeholder(full_result), row)
            result = super()._postprocess_nemo_gym_to_nemo_rl_result(*args, **kwargs)
            return annotate(result, row)

    options = {k: v for k, v in actor_class._default_options.items() if k in RAY_OPTIONS}
    return ray.remote(**options)(TurnCreditNemoGym)


RAY_OPTIONS = (
    "max_restarts",
    "max_task_retries",
    "max_concurrency",
    "num_cpus",
    "num_gpus",
    "resources",
)


def annotate(result: dict[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Marks a postprocessed rollout in place: reward and tier per turn, group id, masked flag.

    `result` is NeMo RL's {message_log, input_message_log, full_result}. Raises `ValueError`, naming the
    dataset row and the counts, where the turns of the verify response are not the trained messages.
    """
    full_result = result["full_result"]
    messages = result["message_log"]
    masked = is_masked(full_result)
    messages[0][MASKED] = masked
    if full_result.get("turn_rewards") is not None:
        generated = [message for message in messages if "generation_logprobs" in message]
        rewards, tiers = _turns(full_result, row, len(generated), masked)
        for message, reward, tier in zip(generated, rewards, tiers, strict=True):
            message[TURN_REWARD] = reward
            message[TURN_TIER] = tier
    group = group_id(full_result, row)
    if group is not None:
        messages[0][GROUP] = group
        result["input_message_log"] = [group_message(group)]
    return result


def _turns(
    full_result: Mapping[str, Any], row: Mapping[str, Any], count: int, masked: bool
) -> tuple[list[float], list[str]]:
    """Reward and tier of each of the `count` trained messages.

    A turn belongs to the output item `turn_output_indices` names; an item is trained if it carries
    generated tokens, which NeMo RL's postprocessing leaves as `generation_str`. A turn whose
    generation came back empty has no tokens to credit and is skipped.
    """
    rewards = full_result["turn_rewards"]
    tiers = full_result.get("turn_tiers") or ["message"] * len(rewards)
    output = full_result["response"]["output"]
    trained = [i for i, item in enumerate(output) if "generation_str" in item]
    indices = full_result.get("turn_output_indices")
    if indices is None and len(trained) == len(rewards):
        indices = trained
    turn = {index: k for k, index in enumerate(indices or ())}
    aligned = (
        indices is not None
        and len(turn) == len(indices) == len(rewards) == len(tiers)
        and len(trained) == count
        and all(index in turn for index in trained)
    )
    if masked and not aligned:
        return [0.0] * count, ["message"] * count
    if not aligned:
        raise ValueError(
            f"{_name(full_result, row)}: the verify response has {len(rewards)} turn_rewards, "
            f"{len(tiers)} turn_tiers and turn_output_indices {indices}, but the policy generated "
            f"{count} messages, at output items {trained}: the agent must report one turn per generation"
        )
    values = [float(rewards[turn[index]]) for index in trained]
    if not masked and not all(math.isfinite(value) for value in values):
        raise ValueError(f"{_name(full_result, row)}: turn_rewards {values} must be finite numbers")
    return values, [str(tiers[turn[index]]) for index in trained]


def _name(full_result: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    number = row.get("_rowidx")
    where = "rollout" if number is None else f"row {number}"
    return f"{where} (task {full_result.get('task_id')!r}, group {group_id(full_result, row)!r})"


def group_id(full_result: Mapping[str, Any], row: Mapping[str, Any]) -> str | None:
    """The group id of a rollout: the verify response's, the row's, or `domain/task_id`; else None."""
    for source in (full_result, row.get("verifier_metadata"), full_result.get("verifier_metadata")):
        if isinstance(source, Mapping) and source.get("group_id") is not None:
            return str(source["group_id"])
    for source in (full_result, row.get("verifier_metadata")):
        if isinstance(source, Mapping) and {"domain", "task_id"} <= source.keys():
            return f"{source['domain']}/{source['task_id']}"
    return None


def is_masked(full_result: Mapping[str, Any]) -> bool:
    """Whether the environment flagged the rollout as one that must not train."""
    nested = full_result.get("instance_config") or {}
    return bool(full_result.get("mask_sample") or nested.get("mask_sample"))


def has_generation(full_result: Mapping[str, Any]) -> bool:
    """Whether any output item carries tokens of the policy."""
    return any(item.get("generation_token_ids") for item in full_result["response"]["output"])


def placeholder(full_result: dict[str, Any]) -> dict[str, Any]:
    """What NeMo RL gets for a rollout that failed before the policy's first turn.

    NeMo RL ends the training run over a rollout without generated tokens. A single prompt token and
    nothing generated has an all-zero token mask, so it trains nothing.
    """
    import torch

    message = {"role": "user", "content": "", "token_ids": torch.tensor([0])}
    return {"message_log": [message], "input_message_log": [message], "full_result": full_result}


def group_hash(group: str) -> list[int]:
    """Three 16-bit numbers that stand for a group id where NeMo RL compares prompt tokens."""
    digest = hashlib.sha256(group.encode()).digest()
    return [int.from_bytes(digest[i : i + 2]) for i in (0, 2, 4)]


def group_message(group: str) -> dict[str, Any]:
    """The prompt NeMo RL groups by.

    It groups rollouts whose prompt tokens are equal, but the first message of a simulated user is in
    the prompt and differs between rollouts of one task (NeMo RL PR #3882; goes when it lands).
    """
    import torch

    return {"role": "user", "content": "", "token_ids": torch.tensor(group_hash(group))}
