"""Verify responses as NeMo RL's actor receives them, and a stand-in tokenizer."""

from typing import Any


class Tokenizer:
    """Decodes nothing; all NeMo RL's postprocessing asks of a tokenizer."""

    pad_token_id = 0

    def batch_decode(self, rows: list[list[int]]) -> list[str]:
        return [" ".join(map(str, row)) for row in rows]

    def apply_chat_template(self, messages: list, tokenize: bool = True) -> list[int]:
        return [1] * len(messages)


def output(lengths: list[int], start: int = 100) -> list[dict[str, Any]]:
    """Output items of len(lengths) turns: each a call with ids, then its tool result without.

    Turn k sees everything before it plus three new prompt tokens, and generates lengths[k] tokens.
    """
    items, seen = [], []
    for k, length in enumerate(lengths):
        prompt = [*seen, start + k, 7, 8]
        tokens = list(range(1000 * (k + 1), 1000 * (k + 1) + length))
        ids = {
            "prompt_token_ids": prompt,
            "generation_token_ids": tokens,
            "generation_log_probs": [-0.5] * length,
        }
        items.append(
            {"type": "function_call", "name": "f", "arguments": "{}", "call_id": str(k), **ids}
        )
        items.append({"type": "function_call_output", "call_id": str(k), "output": "ok"})
        seen = [*prompt, *tokens]
    return items


def verify_response(
    lengths: list[int],
    turn_rewards: list[float],
    reward: float = 1.0,
    group: str = "airline/0",
    start: int = 100,
    **more: Any,
) -> dict[str, Any]:
    """A verify response of the package's environments."""
    return {
        "task_id": group.partition("/")[2],
        "domain": group.partition("/")[0],
        "group_id": group,
        "reward": reward,
        "turn_rewards": turn_rewards,
        "turn_tiers": ["read_only"] * len(turn_rewards),
        "turn_output_indices": list(range(0, 2 * len(turn_rewards), 2)),
        "mask_sample": False,
        "instance_config": {"mask_sample": False},
        "responses_create_params": {"input": [{"role": "user", "content": "hi"}]},
        "response": {"output": output(lengths, start)},
        **more,
    }


def row(number: int, group: str = "airline/0") -> dict[str, Any]:
    """The dataset row a rollout was run from."""
    return {
        "_rowidx": number,
        "agent_ref": {"name": "tau2_airline_agent"},
        "responses_create_params": {"input": [{"role": "user", "content": "hi"}]},
        "verifier_metadata": {"group_id": group},
    }
