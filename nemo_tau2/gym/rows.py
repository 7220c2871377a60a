"""Rows around the loop: reading a dataset row's input, and rows for episodes that could not be scored."""

from typing import Any

from nemo_tau2.episodes import Item, message_item
from nemo_tau2.outcomes import StopReason

UNSCORED = "unscored"
"""The tier of a policy turn that no verifier has seen; its reward is 0."""


def as_items(value: Any) -> list[Item]:
    """The `input` of responses_create_params as items; a string is one user message."""
    if isinstance(value, str):
        return [message_item("user", value)]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("responses_create_params.input is neither a string nor a list of items")
    return [item if "type" in item else {"type": "message", **item} for item in value]


def failure_row(row: Any, reason: StopReason, message: str) -> dict[str, Any]:
    """The row of an episode that infrastructure ended before it could be scored: masked, reward 0."""
    row = row if isinstance(row, dict) else {}
    metadata = row.get("verifier_metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    domain, task_id = metadata.get("domain"), metadata.get("task_id")
    return row | {
        "task_id": task_id,
        "domain": domain,
        "group_id": metadata.get("group_id") or f"{domain}/{task_id}",
        "trial": metadata.get("trial", 0),
        "reward": 0.0,
        "turn_rewards": [],
        "turn_tiers": [],
        "call_tiers": [],
        "turn_output_indices": [],
        "stop_reason": str(reason),
        "mask_sample": True,
        "instance_config": {"mask_sample": True},
        "blame": "harness",
        "reward_info": {},
        "num_turns": 0,
        "num_tool_calls": 0,
        "num_tool_errors": 0,
        "num_user_messages": 0,
        "failure": {"kind": str(reason), "message": message},
    }


def align_turns(result: dict[str, Any]) -> dict[str, Any]:
    """Makes the per-turn lists as long as the policy turns in `response.output`.

    A turn that never reached the environment (deadline or failure during its step) has no verdict;
    trainers need one entry per turn all the same.
    """
    turns = len(result["turn_output_indices"])
    for name, filler in (("turn_rewards", 0.0), ("turn_tiers", UNSCORED), ("call_tiers", [])):
        given = list(result.get(name) or [])[:turns]
        result[name] = given + [filler] * (turns - len(given))
    result["num_turns"] = turns
    return result
