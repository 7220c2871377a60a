"""`bench credit` with NeMo RL's own GRPO estimator as the peer, on the same batch in the same run.

Both sides get what NeMo RL's loop hands an estimator: prompt tokens, rewards, mask and the batch with
its message logs. Ours also reads the turns out of the messages and materialises the output, which
NeMo RL's returns as a zero-stride view.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from nemo_tau2.bench.credit import CreditBatch, make_batch, measure

PROMPT_TOKENS = 4096
"""Length of the prompts NeMo RL compares to find its groups; most of its time goes there."""


def nemo_rl_batch(batch: CreditBatch, prompt_tokens: int = PROMPT_TOKENS) -> dict[str, Any]:
    """The arguments of `compute_advantage` for a bench batch; prompts are equal within a group."""
    import torch

    from nemo_tau2.credit import TIERS
    from nemo_tau2.nemo_rl.actor import GROUP, MASKED

    n, logs, mask = len(batch.groups), [], torch.zeros(len(batch.groups), batch.tokens)
    for i in range(n):
        log, end = [], 0
        for k, (start, stop) in enumerate(batch.spans[i].tolist()):
            mask[i, start:stop] = 1
            log.append({"role": "user", "token_ids": torch.zeros(start - end, dtype=torch.long)})
            generated = torch.zeros(stop - start, dtype=torch.long)
            message = {
                "role": "assistant",
                "token_ids": generated,
                "generation_logprobs": generated,
            }
            message |= {"turn_reward": batch.turn_rewards[i][k], "turn_tier": TIERS[k % len(TIERS)]}
            log.append(message)
            end = stop
        log[0] |= {GROUP: f"airline/{batch.groups[i]}", MASKED: False}
        logs.append(log)
    prompts = np.random.default_rng(1).integers(
        0, 150_000, (int(batch.groups.max()) + 1, prompt_tokens)
    )
    return {
        "prompt_ids": torch.from_numpy(prompts[batch.groups]),
        "rewards": torch.from_numpy(batch.outcomes),
        "mask": mask,
        "repeated_batch": {
            "message_log": logs,
            "agent_ref": [{"name": "tau2_airline_agent"}] * n,
            "truncated": torch.zeros(n, dtype=torch.bool),
            "loss_multiplier": torch.ones(n),
        },
    }


def measure_against_nemo_rl(
    batch: CreditBatch | None = None, repeats: int = 5, prompt_tokens: int = PROMPT_TOKENS
) -> dict[str, Any]:
    """`measure` with NeMo RL's GRPO estimator as peer, memory as resident set; the hooks are not installed."""
    from nemo_tau2.nemo_rl import compat
    from nemo_tau2.nemo_rl.config import parse_estimator
    from nemo_tau2.nemo_rl.estimators import TurnCredit

    batch = batch or make_batch()
    arguments = nemo_rl_batch(batch, prompt_tokens)
    upstream = compat.module("nemo_rl.algorithms.advantage_estimator").GRPOAdvantageEstimator
    flags = {"use_leave_one_out_baseline": True, "normalize_rewards": True}
    try:
        peer = upstream(SimpleNamespace(**flags), None)
    except TypeError:  # v0.7.0 reads a dict
        peer = upstream(flags, None)
    flags = {"use_leave_one_out_baseline": False}

    def ours(_: CreditBatch, name: str) -> object:
        extra = flags if name == "grpo" else {}
        return TurnCredit(parse_estimator({"name": name, **extra})).compute_advantage(**arguments)

    result = measure(batch, lambda: peer.compute_advantage(**arguments), repeats, ours)
    for name, row in result["estimators"].items():
        used = peak_rss_mib(lambda given=name: ours(batch, given))
        row["mib_above_output"] = used - result["output_mib"]
    return result | {"peer": "NeMo RL GRPOAdvantageEstimator"}


def peak_rss_mib(work: Callable[[], object]) -> float:
    """How far a call raises the process's resident memory at its peak (Linux), torch's tensors included."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = _status_mib("VmRSS")
    kept = work()
    peak = _status_mib("VmHWM")
    del kept
    return peak - before


def _status_mib(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(f"{key}:"))
