"""What the formulas promise for any batch: 1 to 64 rollouts of 0 to 200 turns, some excluded."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_tau2.credit import ESTIMATORS, turn_advantages
from nemo_tau2.errors import UserError

VALUES = np.array([-0.2, -0.1, 0.0, 0.1, 0.3, 0.5, 0.75, 1.0])
NORM = st.sampled_from(["per_index", "zero_pad", "pooled"])
EVERY = pytest.mark.parametrize("name", ESTIMATORS)


@st.composite
def batches(draw, turns=200, coarse=False):
    """(outcomes, groups, turn rewards, exclude): drawn by seed, so 64 × 200 rewards stay cheap."""
    n = draw(st.integers(1, 64))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = rng.integers(0, draw(st.integers(0, turns)) + 1, n)
    real = not coarse and draw(st.booleans())
    pick = (lambda k: rng.normal(size=k)) if real else (lambda k: rng.choice(VALUES, k))
    groups = rng.integers(0, draw(st.integers(1, n)), n).tolist()
    exclude = rng.random(n) < draw(st.sampled_from([0.0, 0.3]))
    return pick(n), groups, [pick(k) for k in lengths], exclude


def naive(outcomes, groups, rewards, exclude, name, norm, gamma=0.9, lam=0.3, mode="sum"):
    """The formulas as written, one turn at a time, with ddof 1 and ε 1e-6."""
    out = [np.zeros(len(r)) for r in rewards]

    def scaled(value, values):
        return (
            0.0
            if len(values) < 2 or len(set(values)) == 1
            else ((value - np.mean(values)) / (np.std(values, ddof=1) + 1e-6))
        )

    def returns(i):
        ret, value = [], float(outcomes[i])
        for r in reversed(rewards[i]):
            value = float(r) + gamma * value
            ret.insert(0, value)
        return ret

    for g in set(groups):
        rows = [i for i in range(len(groups)) if groups[i] == g and not exclude[i]]
        if len(rows) < 2:
            continue
        ret = {i: returns(i) for i in rows}

        def compared(table, k, rows, pad=True):
            if norm == "pooled":
                return [float(v) for j in rows for v in table[j]]
            found = [float(table[j][k]) for j in rows if k < len(table[j])]
            return found + [0.0] * (len(rows) - len(found) if norm == "zero_pad" else 0)

        for i in rows:
            a_o = scaled(float(outcomes[i]), [float(outcomes[j]) for j in rows])
            others = [j for j in rows if j != i]
            other_o = [float(outcomes[j]) for j in others]
            a_i = [scaled(float(v), compared(rewards, k, rows)) for k, v in enumerate(rewards[i])]
            for k in range(len(rewards[i])):
                gn = scaled(ret[i][k], compared(ret, k, rows))
                base = compared(ret, k, others)
                loo = float(outcomes[i]) - np.mean(other_o)
                if len(set(other_o)) > 1:
                    loo /= np.std(other_o, ddof=1) + 1e-6
                out[i][k] = {
                    "grpo": a_o,
                    "rloo_norm": loo,
                    "mt_grpo": a_o + (sum(a_i[k:]) if mode == "sum" else a_i[k]),
                    "gtpo": gn,
                    "gtpo_hybrid": gn + lam * a_o,
                    "turn_rloo": ret[i][k] - np.mean(base or other_o),
                }[name]
    return out


def same(a, b, atol=1e-6):
    assert [x.shape for x in a] == [x.shape for x in b]
    np.testing.assert_allclose(np.concatenate(a), np.concatenate(b), atol=atol, rtol=1e-6)


@EVERY
@settings(deadline=None, max_examples=30)
@given(batch=batches(turns=12), norm=NORM, mode=st.sampled_from(["sum", "immediate"]))
def test_matches_the_formulas_one_turn_at_a_time(name, batch, norm, mode):
    o, g, r, x = batch
    got = turn_advantages(o, g, r, name, exclude=x, norm=norm, mode=mode)
    same(got, naive(o, g, r, x, name, norm, mode=mode))


@EVERY
@settings(deadline=None)
@given(batch=batches(), norm=NORM)
def test_shapes_and_finite(name, batch, norm):
    o, g, r, x = batch
    got = turn_advantages(o, g, r, name, exclude=x, norm=norm)
    assert [len(a) for a in got] == [len(row) for row in r]
    assert all(a.dtype == np.float64 and np.isfinite(a).all() for a in got)


@EVERY
@settings(deadline=None, max_examples=50)
@given(batch=batches(), norm=NORM, seed=st.integers(0, 999))
def test_the_order_of_rollouts_is_irrelevant(name, batch, norm, seed):
    o, g, r, x = batch
    p = np.random.default_rng(seed).permutation(len(o))
    got = turn_advantages(o, g, r, name, exclude=x, norm=norm)
    shuffled = turn_advantages(
        o[p], [g[i] for i in p], [r[i] for i in p], name, exclude=x[p], norm=norm
    )
    same(shuffled, [got[i] for i in p], atol=1e-7)


@EVERY
@settings(deadline=None, max_examples=50)
@given(batch=batches(), norm=NORM)
def test_excluded_rollouts_leave_no_trace(name, batch, norm):
    """They get zeros, and the rest what they would get without them, whatever they hold."""
    o, g, r, x = batch
    dirty = np.where(x, np.nan, o)
    got = turn_advantages(
        dirty,
        g,
        [np.full(len(v), np.inf) if e else v for v, e in zip(r, x, strict=True)],
        name,
        exclude=x,
        norm=norm,
    )
    kept = [i for i in range(len(o)) if not x[i]]
    alone = turn_advantages(o[kept], [g[i] for i in kept], [r[i] for i in kept], name, norm=norm)
    assert not any(got[i].any() for i in range(len(o)) if x[i])
    if kept:
        same([got[i] for i in kept], alone, atol=0)


@EVERY
@settings(deadline=None, max_examples=50)
@given(batch=batches(), norm=NORM)
def test_groups_do_not_touch_each_other(name, batch, norm):
    o, g, r, x = batch
    got = turn_advantages(o, g, r, name, exclude=x, norm=norm)
    rows = [i for i in range(len(o)) if g[i] == g[0]]
    alone = turn_advantages(
        o[rows], ["a"] * len(rows), [r[i] for i in rows], name, exclude=x[rows], norm=norm
    )
    same([got[i] for i in rows], alone)


@EVERY
@given(batch=batches())
@settings(deadline=None, max_examples=25)
def test_singletons_get_nothing(name, batch):
    o, _, r, _ = batch
    assert not any(a.any() for a in turn_advantages(o, list(range(len(o))), r, name))


@EVERY
@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(1, 64), k=st.integers(0, 50), o=st.floats(-1, 1), r=st.floats(-1, 1), norm=NORM
)
def test_all_equal_gives_nothing(name, n, k, o, r, norm):
    if norm == "pooled" and name in ("gtpo", "gtpo_hybrid", "turn_rloo"):
        return  # pooled returns differ from turn to turn
    got = turn_advantages([o] * n, [0] * n, [[r] * k] * n, name, norm=norm)
    np.testing.assert_allclose(np.concatenate(got), 0, atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(batch=batches(coarse=True), shift=st.integers(-4, 4), scale=st.sampled_from([0.5, 2.0, 8.0]))
def test_shift_and_scale(batch, shift, scale):
    o, g, r, x = batch

    def run(name, o=o, r=r, norm="per_index"):
        return turn_advantages(o, g, r, name, exclude=x, norm=norm, eps=1e-12)

    for name in ("grpo", "rloo_norm"):  # reads outcomes only, up to shift and (grpo) scale
        same(run(name), run(name, o + shift))
    same(run("grpo"), run("grpo", o * scale))
    for norm in ("per_index", "pooled"):  # a zero_pad's zeros do not move along
        same(run("mt_grpo", norm=norm), run("mt_grpo", o + shift, [v + shift for v in r], norm))
    for name in ("mt_grpo", "gtpo", "gtpo_hybrid"):
        for norm in ("per_index", "zero_pad", "pooled"):
            same(run(name, norm=norm), run(name, o * scale, [v * scale for v in r], norm))
    rloo = run("turn_rloo")
    same([scale * a for a in rloo], run("turn_rloo", o * scale, [v * scale for v in r]))


@settings(deadline=None, max_examples=50)
@given(batch=batches(), norm=NORM)
def test_reductions(batch, norm):
    """λ = 0 is gtpo; no turn reward leaves mt_grpo grpo; one turn, γ = 1 leaves everything grpo."""
    o, g, r, x = batch
    same(
        turn_advantages(o, g, r, "gtpo_hybrid", exclude=x, lam=0, norm=norm),
        turn_advantages(o, g, r, "gtpo", exclude=x, norm=norm),
        atol=0,
    )
    zeros = [np.zeros(len(v)) for v in r]
    grpo = turn_advantages(o, g, zeros, "grpo", exclude=x)
    for mode in ("sum", "immediate"):
        same(turn_advantages(o, g, zeros, "mt_grpo", exclude=x, mode=mode, norm=norm), grpo)
    same(
        turn_advantages(o, g, zeros, "gtpo_hybrid", exclude=x, gamma=0, norm=norm),
        [0.3 * a for a in grpo],
    )
    one = [[0.0]] * len(o)
    grpo = turn_advantages(o, g, one, "grpo", exclude=x)
    same(turn_advantages(o, g, one, "gtpo", exclude=x, gamma=1, norm=norm), grpo)
    same(
        turn_advantages(o, g, one, "gtpo_hybrid", exclude=x, gamma=1, norm=norm),
        [1.3 * a for a in grpo],
    )
    same(turn_advantages(o, g, one, "mt_grpo", exclude=x, norm=norm), grpo)


@settings(deadline=None, max_examples=50)
@given(batch=batches())
def test_gamma_0_makes_gtpo_the_immediate_turn_advantage(batch):
    o, g, r, x = batch
    same(
        turn_advantages(o, g, r, "gtpo", exclude=x, gamma=0),
        turn_advantages(np.zeros(len(o)), g, r, "mt_grpo", exclude=x, mode="immediate"),
        atol=0,
    )


@EVERY
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_by_rollout(name, value):
    with pytest.raises(UserError, match=r"rollout 1: its outcome is (nan|inf|-inf)"):
        turn_advantages([0, value], [0, 0], [[0.0], [0.0]], name)
    with pytest.raises(UserError, match=r"rollout 2: the reward of turn 1 is (nan|inf|-inf)"):
        turn_advantages([0, 0, 0], [0, 0, 0], [[0.0], [], [0.0, value]], name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [0, 0], [[], []]), "1 outcomes, 2 groups and 2 lists"),
        (([0.0, "x"], [0, 0], [[], []]), "outcomes must be one number per rollout"),
        (
            ([0.0, 1.0], [0, 0], [[], [[1.0]]]),
            "rollout 1: its turn rewards must be a list of numbers",
        ),
        (([0.0, 1.0], [0, 0], [[None], [{}]]), "rollout 0|rollout 1"),
        (([0.0, 1e308], [0, 0], [[1.0], [1.0]]), "too large"),
    ],
)
def test_bad_batches_are_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        turn_advantages(*arguments)


def test_exclude_must_be_booleans():
    for bad in ([0], [0, 1], [True]):
        with pytest.raises(UserError, match="exclude must be 2 booleans"):
            turn_advantages([0, 1], [0, 0], [[], []], exclude=bad)


def test_an_empty_batch_is_a_batch():
    assert turn_advantages([], [], []) == []
