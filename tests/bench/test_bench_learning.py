"""The learning bench's task and policy: exact pass rate, exact gradient, and the reward it pays."""

import numpy as np
import pytest

from nemo_tau2.bench.learning import (
    CALIBRATED,
    KINDS,
    TASKS,
    Batch,
    gradient,
    pass_rate,
    sample,
    softmax,
    summary,
    train,
)

SHORT = TASKS["short"]


def policy(seed=0, seeds=2, task=SHORT):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(seeds, KINDS, task.needed + 1, task.stop + 1))


@pytest.mark.parametrize("name", TASKS)
def test_exact_pass_rate_matches_sampling(name):
    task = TASKS[name]
    probability = softmax(policy(task=task))
    rng = np.random.default_rng(1)
    seen = np.mean(
        [sample(task, probability, rng).outcome.reshape(2, -1).mean(1) for _ in range(200)], 0
    )
    np.testing.assert_allclose(pass_rate(task, probability), seen, atol=0.01)


def test_an_untrained_policy_passes_one_in_64():
    """Right, right, stop, each 1 of the 4 actions that are not a read; reads are nearly free."""
    untrained = softmax(np.zeros((1, KINDS, 3, 5)))
    assert pass_rate(SHORT, untrained)[0] == pytest.approx(1 / 64, rel=1e-2)


def test_gradient_is_the_derivative_of_the_weighted_log_likelihood():
    logits = policy()
    batch = sample(SHORT, softmax(logits), np.random.default_rng(2))
    rng = np.random.default_rng(3)
    advantages = [rng.normal(size=k) for k in batch.length]
    turns = batch.length.reshape(2, -1).sum(1)

    def objective(x):
        logp, total = np.log(softmax(x)), np.zeros(2)
        for i, (k, a) in enumerate(zip(batch.length, advantages, strict=True)):
            place = (i // 128, batch.kind[i], batch.progress[i, :k], batch.action[i, :k])
            total[i // 128] += (logp[place] * a).sum()
        return (total / turns).sum()

    got = gradient(softmax(logits), batch, advantages, "turns")
    for place in [(0, 0, 0, 0), (1, 2, 1, 3), (1, 3, 2, 4)]:
        bump = np.zeros_like(logits)
        bump[place] = 1e-6
        slope = (objective(logits + bump) - objective(logits - bump)) / 2e-6
        assert got[place] == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_turn_rewards_by_hand():
    """Kind 1 needs writes 1 then 2: a read, the right 1, a wrong 1, the right 2, a stop."""
    batch = Batch(
        kind=np.array([1]),
        progress=np.array([[0, 0, 1, 1, 2]]),
        action=np.array([[SHORT.read, 1, 1, 2, SHORT.stop]]),
        length=np.array([5]),
        outcome=np.array([0.0]),
    )
    assert batch.turn_rewards(SHORT, CALIBRATED)[0].tolist() == [0.0, 1.0, -0.1, 1.0, 0.0]


def test_summary_brackets_the_median_with_order_statistics():
    curves = np.zeros((11, 10))
    for seed in range(9):
        curves[seed + 1 :, seed] = 1.0  # seed s arrives at update s + 1, the last never
    got = summary(curves, updates=10)
    assert (got["updates_to_goal"], got["interval"], got["reached"]) == (5.5, [2, 9], 9)


def test_training_learns_and_naive_rewards_teach_reading():
    good = train("gtpo_hybrid", "sum", "calibrated", seeds=2, updates=90)
    bad = train("gtpo_hybrid", "sum", "naive", seeds=2, updates=90)
    assert good["reached"] == 2
    assert bad["reached"] == 0
    assert bad["final_turns"] > 2 * good["final_turns"]
