"""`nemo-tau2 bench learning`: how fast a tiny policy learns under each estimator.

The task: a request of one of four kinds, visible, needs the right writes in order and then a stop.
A turn is one of several writes (one is right, which depends on the kind and on the progress), a
read that changes nothing, or the stop. A wrong write spoils the episode for good and cannot be
seen. The outcome is 1 for a stop after all right writes and no wrong one, 0 otherwise, also after
10 turns. So few turns matter, and a policy that chooses its own length can be paid for reading.
`short` needs 2 writes of 3 (an untrained policy passes 1 in 60 times), `long` 4 of 4 (1 in 3,000).

The policy is a table of logits [kind, progress, action] in numpy: its gradient is exact and needs
no torch. Adam, one step per batch of 16 groups × 8 rollouts, the same for every estimator. The
reported pass rate is computed exactly from the logits, without sampling.

This says how estimators compare on one small task. It says nothing about a language model.
"""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from nemo_tau2.credit import turn_advantages

KINDS, MAX_TURNS = 4, 10
GROUPS, SIZE = 16, 8
RATE = 0.05
GOAL = 0.9

NAIVE = {"gold_exact": 1.0, "state_change": 0.1, "read_only": 0.3, "message": 0.0}
CALIBRATED = {"gold_exact": 1.0, "state_change": -0.1, "read_only": 0.0, "message": 0.0}
NONE = dict.fromkeys(NAIVE, 0.0)
REWARDS = {"outcome only": NONE, "naive": NAIVE, "calibrated": CALIBRATED}
ARMS = (
    ("grpo", "sum", "outcome only"),
    ("rloo_norm", "sum", "outcome only"),
    ("turn_rloo", "sum", "outcome only"),
    *(
        (name, mode, rewards)
        for rewards in ("naive", "calibrated")
        for name, mode in (
            ("mt_grpo", "immediate"),
            ("mt_grpo", "sum"),
            ("gtpo", "sum"),
            ("gtpo_hybrid", "sum"),
            ("turn_rloo", "sum"),
        )
    ),
)


@dataclass(frozen=True)
class Task:
    """Actions 0..writes-1 write, then come the read and the stop."""

    needed: int
    writes: int

    @property
    def read(self) -> int:
        return self.writes

    @property
    def stop(self) -> int:
        return self.writes + 1

    @property
    def right(self) -> np.ndarray:
        """int [kinds, needed + 1]: the right write at each progress, -1 when all are done."""
        kind, step = np.indices((KINDS, self.needed + 1))
        return np.where(step < self.needed, (kind + step) % self.writes, -1)


TASKS = {"short": Task(needed=2, writes=3), "long": Task(needed=4, writes=4)}


@dataclass(frozen=True)
class Batch:
    """Sampled episodes of S seeds, B = 128 each; turns beyond an episode's length are unused."""

    kind: np.ndarray
    """int [S·B]"""
    progress: np.ndarray
    """int [S·B, T]: right writes before each turn."""
    action: np.ndarray
    """int [S·B, T]"""
    length: np.ndarray
    """int [S·B]"""
    outcome: np.ndarray
    """float [S·B]"""

    def turn_rewards(self, task: Task, paid: dict[str, float]) -> list[np.ndarray]:
        """The rewards of each episode's turns."""
        right = self.action == task.right[self.kind[:, None], self.progress]
        reward = np.where(right, paid["gold_exact"], paid["state_change"])
        reward = np.where(self.action == task.read, paid["read_only"], reward)
        reward = np.where(self.action == task.stop, paid["message"], reward)
        return [row[:k] for row, k in zip(reward, self.length.tolist(), strict=True)]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def sample(task: Task, probability: np.ndarray, rng: np.random.Generator) -> Batch:
    """One batch per seed from probabilities [S, kinds, progress, actions]."""
    seeds = len(probability)
    seed = np.repeat(np.arange(seeds), GROUPS * SIZE)
    kind = np.repeat(rng.integers(0, KINDS, seeds * GROUPS), SIZE)
    cumulative = probability.cumsum(axis=-1)
    n = len(kind)
    progress, action = np.zeros((2, n, MAX_TURNS), dtype=np.intp)
    now, spoilt, alive = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool), np.ones(n, dtype=bool)
    length, outcome = np.full(n, MAX_TURNS), np.zeros(n)
    for t in range(MAX_TURNS):
        draw = rng.random((n, 1))
        act = np.minimum((cumulative[seed, kind, now] < draw).sum(axis=1), task.stop)
        progress[:, t], action[:, t] = now, act
        stop = alive & (act == task.stop)
        outcome[stop & (now == task.needed) & ~spoilt] = 1.0
        length[stop] = t + 1
        right = act == task.right[kind, now]
        spoilt |= alive & (act < task.writes) & ~right
        alive &= ~stop
        now = now + (alive & right)
    return Batch(kind, progress, action, length, outcome)


def pass_rate(task: Task, probability: np.ndarray) -> np.ndarray:
    """The exact probability of outcome 1, averaged over the kinds: [S]."""
    kind, step = np.indices((KINDS, task.needed))
    right = probability[:, kind, step, task.right[:, : task.needed]]
    read, stop = probability[..., task.read], probability[:, :, task.needed, task.stop]
    at = np.zeros(read.shape)
    at[..., 0] = 1.0
    done = np.zeros(stop.shape)
    for _ in range(MAX_TURNS):
        done += at[..., task.needed] * stop
        moved = at[..., : task.needed] * right
        at = at * read
        at[..., 1:] += moved
    return done.mean(axis=1)


def gradient(
    probability: np.ndarray, batch: Batch, advantages: list[np.ndarray], normaliser: str
) -> np.ndarray:
    """The ascent direction Σ w·A·∇log π, [S, kinds, progress, actions].

    `normaliser` is `turns` (w = 1/the batch's turns, NeMo RL's token_level_loss) or `rollouts`
    (w = 1/(rollouts · the rollout's own turns)).
    """
    seeds, n = len(probability), len(batch.kind)
    row = np.repeat(np.arange(n), batch.length)
    used = np.arange(MAX_TURNS) < batch.length[:, None]
    seed = row // (n // seeds)
    place = (seed, batch.kind[row], batch.progress[used])
    weight = np.concatenate(advantages)
    if normaliser == "turns":
        weight = weight / np.bincount(seed)[seed]
    else:
        weight = weight / (n // seeds * batch.length[row])
    score = -probability[place]
    score[np.arange(len(row)), batch.action[used]] += 1
    out = np.zeros_like(probability)
    np.add.at(out, place, weight[:, None] * score)
    return out


def train(
    name: str,
    mode: str,
    rewards: str,
    difficulty: str = "short",
    seeds: int = 10,
    updates: int = 300,
    normaliser: str = "turns",
) -> dict[str, Any]:
    """Trains `seeds` policies side by side; returns their exact pass rates, [updates + 1, S]."""
    task, rng = TASKS[difficulty], np.random.default_rng(0)
    logits = np.zeros((seeds, KINDS, task.needed + 1, task.stop + 1))
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    group = np.arange(seeds * GROUPS * SIZE) // SIZE
    curve, turns = [pass_rate(task, softmax(logits))], np.nan
    for update in range(1, updates + 1):
        probability = softmax(logits)
        batch = sample(task, probability, rng)
        paid = batch.turn_rewards(task, REWARDS[rewards])
        advantages = turn_advantages(batch.outcome, group, paid, name, mode=mode)
        step = gradient(probability, batch, advantages, normaliser)
        first = 0.9 * first + 0.1 * step
        second = 0.999 * second + 0.001 * step**2
        scaled = (first / (1 - 0.9**update)) / (np.sqrt(second / (1 - 0.999**update)) + 1e-8)
        logits = logits + RATE * scaled
        curve.append(pass_rate(task, softmax(logits)))
        turns = float(batch.length.mean())
    curves = np.array(curve)
    label = f"{name} {mode}" if name == "mt_grpo" else name
    return {
        "task": difficulty,
        "estimator": label,
        "rewards": rewards,
        "normaliser": normaliser,
        **summary(curves, updates),
        "final_turns": turns,
        "curve_mean": curves.mean(axis=1).tolist(),
        "curve_low": np.sort(curves, axis=1)[:, min(1, seeds - 1)].tolist(),
        "curve_high": np.sort(curves, axis=1)[:, max(-2, -seeds)].tolist(),
    }


def summary(curves: np.ndarray, updates: int) -> dict[str, Any]:
    """Updates to the goal over the seeds: median, and the 2nd and 2nd-last of the sorted values.

    For 10 seeds these two bracket the median with 97.9 % confidence, whatever the distribution.
    A seed that never gets there counts as `updates + 1`, reported as null.
    """
    reached = curves >= GOAL
    at = np.sort(np.where(reached.any(axis=0), reached.argmax(axis=0), updates + 1))
    edge = 1 if len(at) > 2 else 0
    values = [float(np.median(at)), float(at[edge]), float(at[-1 - edge])]
    median, low, high = (v if v <= updates else None for v in values)
    final = np.sort(curves[-1])
    return {
        "updates_to_goal": median,
        "interval": [low, high],
        "reached": int(reached.any(axis=0).sum()),
        "seeds": curves.shape[1],
        "final_pass_rate": float(np.median(final)),
        "final_interval": [float(final[edge]), float(final[-1 - edge])],
    }


def measure(seeds: int = 10, updates: int = 300) -> dict[str, Any]:
    """Every estimator with every reward set that it reads, and the normaliser ablation."""
    start = perf_counter()
    size = {"seeds": seeds, "updates": updates}
    arms = [train(*arm, difficulty=task, **size) for task in TASKS for arm in ARMS]
    ablation = [
        train(*arm, difficulty=task, normaliser="rollouts", **size)
        for task in TASKS
        for arm in (ARMS[0], ("gtpo_hybrid", "sum", "calibrated"))
    ]
    return {
        "goal": GOAL,
        "max_updates": updates,
        "seeds": seeds,
        "arms": arms + ablation,
        "seconds": perf_counter() - start,
    }


def learning(
    *, seeds: int = 10, updates: int = 300, plot: Path | None = None, json: bool = False
) -> None:
    """Updates a tiny policy needs to pass 90 % of a multi-turn task, for every estimator.

    Parameters
    ----------
    seeds
        Policies per estimator.
    updates
        Steps before a policy counts as not arriving.
    plot
        Draw the learning curves to this file.
    json
        Print one JSON object instead of a table.
    """
    result = measure(seeds, updates)
    if plot is not None:
        from nemo_tau2.report.learning_plot import draw

        draw(result, plot)
    if json:
        print(json_module.dumps(result))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Updates to a pass rate of {GOAL:g}, {seeds} seeds", title_justify="left")
    for column in (
        "task",
        "estimator",
        "rewards",
        "normaliser",
        "median",
        "97.9 % interval",
        "reached",
    ):
        table.add_column(column)
    for column in ("final pass rate", "turns"):
        table.add_column(column, justify="right")
    for arm in result["arms"]:
        low, high = (f"> {updates}" if v is None else f"{v:.0f}" for v in arm["interval"])
        median = arm["updates_to_goal"]
        table.add_row(
            arm["task"],
            arm["estimator"],
            arm["rewards"],
            arm["normaliser"],
            f"> {updates}" if median is None else f"{median:.0f}",
            f"{low} – {high}",
            f"{arm['reached']}/{arm['seeds']}",
            f"{arm['final_pass_rate']:.3f}",
            f"{arm['final_turns']:.1f}",
        )
    Console().print(table, f"{result['seconds']:.0f} s")
