"""`nemo-tau2 bench credit`: time and memory of every estimator on a batch of training size.

1,024 rollouts in 64 groups, 40 turns each, 32,768 tokens. An estimator's time is the whole way from
rewards to a float32 [B, S] array. `measure` takes a peer to run on the same batch in the same
process, such as NeMo RL's own GRPO estimator; without one only our own numbers are reported.
"""

import json as json_module
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from nemo_tau2.credit import ESTIMATORS, token_advantages, turn_advantages


@dataclass(frozen=True)
class CreditBatch:
    """A batch as the training loop has it."""

    outcomes: np.ndarray
    """float32 [B]"""
    groups: np.ndarray
    """int [B]"""
    turn_rewards: list[list[float]]
    """B lists of K Python floats, as messages carry them."""
    spans: list[np.ndarray]
    """B int arrays [K, 2]: the token positions each turn generated."""
    tokens: int
    """S"""


def make_batch(
    rollouts: int = 1024, turns: int = 40, tokens: int = 32768, group: int = 16, seed: int = 0
) -> CreditBatch:
    """A batch of the given size with random rewards; a third of the tokens are the policy's."""
    rng = np.random.default_rng(seed)
    room = tokens // turns
    start = np.arange(turns) * room + rng.integers(room // 3, 2 * room // 3, (rollouts, turns))
    spans = np.stack([start, start + room // 3], axis=-1)
    return CreditBatch(
        outcomes=rng.integers(0, 2, rollouts).astype(np.float32),
        groups=np.arange(rollouts) // group,
        turn_rewards=rng.choice([-0.2, -0.1, 0.0, 0.3, 0.75, 1.0], (rollouts, turns)).tolist(),
        spans=list(spans),
        tokens=tokens,
    )


def run(batch: CreditBatch, name: str) -> np.ndarray:
    """One estimator from rewards to tokens: float32 [B, S]."""
    advantages = turn_advantages(batch.outcomes, batch.groups, batch.turn_rewards, name)
    return token_advantages(advantages, batch.spans, batch.tokens)


def measure(
    batch: CreditBatch,
    peer: Callable[[], object] | None = None,
    repeats: int = 5,
    estimate: Callable[[CreditBatch, str], object] = run,
) -> dict[str, Any]:
    """Medians over `repeats`, every estimator and the peer in turn within each repeat.

    `peer` runs the compared estimator on the same batch once; `estimate` runs ours. Memory is the
    peak that Python and numpy allocate above the output array, in a run of its own.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    turns_only: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    peers: list[float] = []
    for _ in range(repeats):
        if peer is not None:
            peers.append(_time(peer))
        for name in ESTIMATORS:
            arguments = (batch.outcomes, batch.groups, batch.turn_rewards, name)
            turns_only[name].append(_time(lambda given=arguments: turn_advantages(*given)))
            seconds[name].append(_time(lambda given=name: estimate(batch, given)))
    peer_ms = 1e3 * median(peers) if peers else None
    output = len(batch.groups) * batch.tokens * 4
    rows = {}
    for name in ESTIMATORS:
        ms = 1e3 * median(seconds[name])
        rows[name] = {
            "turns_ms": 1e3 * median(turns_only[name]),
            "ms": ms,
            "ratio": ms / peer_ms if peer_ms else None,
            "mib_above_output": (_peak(lambda given=name: estimate(batch, given)) - output) / 2**20,
        }
    return {
        "rollouts": len(batch.groups),
        "turns": sum(map(len, batch.turn_rewards)),
        "tokens": batch.tokens,
        "output_mib": output / 2**20,
        "peer_ms": peer_ms,
        "estimators": rows,
    }


def credit(*, nemo_rl: Path | None = None, json: bool = False) -> None:
    """Time and memory of every advantage estimator on 1,024 rollouts of 40 turns, 32k tokens.

    Parameters
    ----------
    nemo_rl
        A NeMo RL checkout, whose GRPO estimator then runs on the same batch as the peer.
    json
        Print one JSON object instead of a table.
    """
    if nemo_rl is None:
        result = measure(make_batch())
    else:
        from nemo_tau2.bench.credit_upstream import measure_against_nemo_rl
        from nemo_tau2.nemo_rl.launch import locate

        locate(nemo_rl)
        result = measure_against_nemo_rl()
    show(result, json=json)


def show(result: dict[str, Any], *, json: bool) -> None:
    """Prints a measurement as a JSON object or a table."""
    if json:
        print(json_module.dumps(result))
        return
    from rich.console import Console
    from rich.table import Table

    title = f"{result['rollouts']} rollouts, {result['turns']} turns, {result['tokens']} tokens"
    table = Table(title=title, title_justify="left")
    for column in ("estimator", "turns ms", "tokens too ms", "× peer", "MiB above output"):
        table.add_column(column, justify="left" if column == "estimator" else "right")
    for name, row in result["estimators"].items():
        ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
        times = (f"{row['turns_ms']:.1f}", f"{row['ms']:.1f}")
        table.add_row(name, *times, ratio, f"{row['mib_above_output']:.1f}")
    Console().print(table)


def _time(work: Callable[[], object]) -> float:
    start = perf_counter()
    kept = work()
    elapsed = perf_counter() - start
    del kept
    return elapsed


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        kept = work()
        del kept
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
