"""Training batches as NeMo RL's loops hand them to an estimator."""

from typing import Any

# The worked example of docs/credit.md: G = 4 rollouts, K = 3, 2, 3, 1 turns.
REWARDS = [[0.3, 1.0, 0.0], [0.3, -0.1], [0.0, 1.0, 1.0], [0.1]]
OUTCOMES = [1.0, 0.0, 1.0, 0.0]
EXPECTED = {
    "mt_grpo": [[1.5696, 0.7363, 0.1589], [-1.1874, -2.0207], [0.9838, 2.1505, 1.5731], [-1.366]],
    "gtpo": [[0.6379, 0.2346, -0.7071], [-0.8059, -1.0964], [1.0662, 0.8618, 0.7071], [-0.8982]],
    "gtpo_hybrid": [
        [0.8977, 0.4944, -0.4473],
        [-1.0657, -1.3563],
        [1.326, 1.1216, 0.9669],
        [-1.1581],
    ],
    "turn_rloo": [[1.0127, 0.505, -1.0], [-1.2793, -2.36], [1.6927, 1.855, 1.0], [-1.426]],
    "grpo": [[0.866] * 3, [-0.866] * 2, [0.866] * 3, [-0.866]],
}
"""Per turn. `grpo` with NeMo RL's leave-one-out off."""


def message_log(
    rewards: list[float] | None, group: str, turns: int | None = None, opening: int = 1
) -> list[dict]:
    """User and assistant messages in turn: two prompt tokens, then k + 1 generated ones in turn k."""
    import torch

    log: list[dict[str, Any]] = []
    for k in range(len(rewards) if rewards is not None else turns or 0):
        log.append({"role": "user", "content": "", "token_ids": torch.tensor([opening, 2])})
        message = {
            "role": "assistant",
            "content": "",
            "token_ids": torch.arange(k + 1),
            "generation_logprobs": torch.zeros(k + 1),
            "is_invalid_tool_call": False,
            "has_malformed_thinking": False,
        }
        if rewards is not None:
            message |= {"turn_reward": rewards[k], "turn_tier": "read_only"}
        log.append(message)
    log[0] |= {"nemo_tau2_group": group, "nemo_tau2_masked": False}
    return log


def batch(rewards=REWARDS, outcomes=OUTCOMES, groups=None, **columns: Any) -> dict[str, Any]:
    """A repeated_batch; `groups` one id per rollout."""
    import torch

    groups = groups or ["airline/0"] * len(rewards)
    logs = [
        message_log(r, g, opening=i + 1)
        for i, (r, g) in enumerate(zip(rewards, groups, strict=True))
    ]
    return {
        "message_log": logs,
        "agent_ref": [{"name": "tau2_airline_agent"} for _ in logs],
        "total_reward": torch.tensor(outcomes),
        "loss_multiplier": torch.ones(len(logs)),
        "truncated": torch.zeros(len(logs), dtype=torch.bool),
        "length": torch.full((len(logs),), 2),
        **columns,
    }


def token_mask(given: dict[str, Any]):
    """[B, S]: ones on generated tokens."""
    import torch

    rows = []
    for log in given["message_log"]:
        rows.append(
            [
                float("turn_reward" in m or m["role"] == "assistant")
                for m in log
                for _ in m["token_ids"]
            ]
        )
    width = max(map(len, rows))
    return torch.tensor([r + [0.0] * (width - len(r)) for r in rows])


def per_turn(advantages, given: dict[str, Any]) -> list[list[float]]:
    """The advantage of every turn, after asserting that it is constant over the turn and 0 elsewhere."""
    out = []
    for i, log in enumerate(given["message_log"]):
        turns, end = [], 0
        for m in log:
            start, end = end, end + len(m["token_ids"])
            span = advantages[i, start:end]
            if m["role"] == "assistant":
                assert (span == span[0]).all()
                turns.append(float(span[0]))
            else:
                assert (span == 0).all()
        assert (advantages[i, end:] == 0).all()
        out.append(turns)
    return out


def compute(estimator, given: dict[str, Any], **more: Any):
    """Calls an estimator as the sync loop does: prompts that differ, rewards, mask, the whole batch."""
    import torch

    mask = token_mask(given) * given["loss_multiplier"][:, None]
    first = [log[0]["token_ids"] for log in given["message_log"]]
    prompts = torch.nn.utils.rnn.pad_sequence(first, batch_first=True)
    zeros = torch.zeros_like(mask)
    return estimator.compute_advantage(
        **{
            "prompt_ids": prompts,
            "rewards": given["total_reward"],
            "mask": mask,
            "repeated_batch": given,
            "logprobs_policy": zeros,
            "logprobs_reference": zeros,
        }
        | more
    )
