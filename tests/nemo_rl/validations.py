"""One validation by NeMo RL itself, on verify responses that a stand-in for its Gym actor hands over."""

from types import SimpleNamespace
from typing import Any

from gym_results import Tokenizer, verify_response
from test_real_actor import postprocess

AIRLINE, RETAIL = "tau2_airline_agent", "tau2_retail_agent"


def response(reward: float, masked: bool = False, **more: Any) -> dict[str, Any]:
    """A verify response with every number that our environments report; a broken one without `seconds`."""
    counts = {
        "trial": 0,
        "num_turns": 2,
        "num_tool_calls": 2,
        "num_tool_errors": 1,
        "num_user_messages": 3,
    }
    timed = {} if masked else {"seconds": 4.5}
    lengths = [] if masked else [2, 3]
    return verify_response(
        lengths, [0.0] * len(lengths), reward, mask_sample=masked, **counts, **timed, **more
    )


MIXED = [
    (AIRLINE, response(1.0)),
    (AIRLINE, response(0.5)),
    (AIRLINE, response(0.0, masked=True)),
    (RETAIL, response(0.0)),
    (RETAIL, response(1.0)),
    (RETAIL, response(0.0)),
    (RETAIL, response(0.0)),
]
"""Graded means by hand: airline 1.5/2, retail 1/4, all 2.5/6; NeMo RL's: airline 1.5/3, all 2.5/7."""
MIXED_GRADED = {
    "graded_reward/mean": 2.5 / 6,
    f"{AIRLINE}/graded_reward/mean": 0.75,
    f"{RETAIL}/graded_reward/mean": 0.25,
    "masked/mean": 1 / 7,
}


class Environment:
    """`NemoGym.run_rollouts` in either version's protocol; keeps what the real actor makes of responses."""

    def __init__(self, responses: list[dict[str, Any]], streaming: bool) -> None:
        self.results = [postprocess(response, i) for i, response in enumerate(responses)]
        self.streaming = streaming

    @property
    def run_rollouts(self) -> "Environment":
        return self

    def options(self, **_: Any) -> "Environment":
        return self

    def remote(self, *_: Any) -> Any:
        return self._stream() if self.streaming else (self.results, {})

    async def _stream(self) -> Any:
        async def ready(value: Any) -> Any:
            return value

        for i, result in enumerate(self.results):
            yield ready((i, result, None))


def validate(config: Any, rollouts: list[tuple[str, dict[str, Any]]], monkeypatch: Any) -> dict:
    """`val_metrics` of NeMo RL's `validate` for (agent, verify response) pairs; needs the hooks."""
    import copy

    import torch
    from nemo_rl.algorithms import grpo
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict
    from nemo_rl.experience import rollouts as experience

    streaming = hasattr(experience, "run_nemo_gym_rollout_sync")
    if not streaming:
        monkeypatch.setattr(experience.ray, "get", lambda value: value)
    rows = [
        {"agent_ref": {"name": agent}, "responses_create_params": {"input": []}}
        for agent, _ in rollouts
    ]
    batch = BatchedDataDict(
        {
            "extra_env_info": rows,
            "loss_multiplier": torch.ones(len(rows)),
            "message_log": [[] for _ in rows],
        }
    )
    for key in ("max_val_samples", "val_batch_size"):  # as NeMo RL's entry point sets them
        if isinstance(config.grpo, dict):
            config.grpo[key] = len(rows)
        else:
            setattr(config.grpo, key, len(rows))
    environment = Environment([copy.deepcopy(found) for _, found in rollouts], streaming)
    generation = SimpleNamespace(cfg={"vllm_cfg": {"max_model_len": 4096}})
    metrics, _ = grpo.validate(
        generation, [batch], Tokenizer(), {"nemo_gym": environment}, 1, config
    )
    return metrics
