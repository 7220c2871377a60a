"""The advantage estimators, one function each, and `turn_advantages`, which picks among them.

Notation: a group is the rollouts of one prompt; rollout i has turns k = 0..K_i-1 with rewards
r[i,k] and the outcome o[i]. A_O is the outcome normalised over the group. GN normalises a value of
each turn over the group's rollouts that have that turn. Returns are
Ret[i,K_i] = o[i], Ret[i,k] = r[i,k] + γ·Ret[i,k+1].

| name | A[i,k] | source |
|---|---|---|
| grpo | A_O[i] | arXiv:2402.03300 |
| rloo_norm | clip((o_i − b_i)/(s_i + ε), −c, c), b, s of the others | Salesforce Koa, eq. 5-6 |
| mt_grpo, immediate | GN(r)[i,k] + A_O[i] | arXiv:2505.11821 |
| mt_grpo, sum | Σ_{l≥k} GN(r)[i,l] + A_O[i] | arXiv:2604.02869 |
| gtpo | GN(Ret)[i,k] | arXiv:2511.14846 |
| gtpo_hybrid | GN(Ret)[i,k] + λ·A_O[i] | arXiv:2604.02869 |
| turn_rloo | Ret[i,k] − mean of Ret[j,k] over the others | this project |
"""

from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace

import numpy as np

from nemo_tau2.credit.options import check_options
from nemo_tau2.credit.turns import Turns, exclusion, flatten
from nemo_tau2.errors import UserError


def turn_advantages(
    outcomes: Sequence[float],
    groups: Sequence[Hashable],
    turn_rewards: Sequence[Sequence[float]],
    estimator: str = "gtpo_hybrid",
    gamma: float = 0.9,
    lam: float = 0.3,
    norm: str = "per_index",
    ddof: int = 1,
    eps: float = 1e-6,
    exclude: Sequence[bool] | None = None,
    clip: float | None = None,
    *,
    mode: str = "sum",
    scale: bool = False,
) -> list[np.ndarray]:
    """One advantage per policy turn of every rollout.

    `outcomes` [N] floats, `groups` [N] hashable ids, `turn_rewards` N lists of K_i floats (a list
    may be empty). Returns N float64 arrays of K_i. Everything is computed in float64.

    `norm` says what a turn is compared with: `per_index` the same turn of the group's rollouts that
    have it, `zero_pad` the same turn of all its rollouts, an absent turn counting as 0, `pooled`
    all turns of the group. `mode` is read by mt_grpo; `scale` divides turn_rloo by one std per
    group. `clip` bounds |A|.

    Rollouts in `exclude` (bool [N]: failed, truncated or masked ones) enter no mean, std or count
    and get zeros; so does a group left with one rollout. Values that are all equal have no
    variance: their normalised value is 0, however float rounding turns out.

    Raises `UserError` for a bad option, disagreeing lengths and values that are not finite numbers.
    """
    options = {"gamma": gamma, "lambda": lam, "norm": norm, "ddof": ddof, "eps": eps}
    options |= {"mode": mode, "clip": clip, "scale": scale}
    opt = SimpleNamespace(**check_options(estimator, options))
    left_out = exclusion(exclude, len(outcomes))
    turns = flatten(outcomes, groups, turn_rewards, left_out)

    kept = ~left_out & (np.bincount(turns.group, weights=~left_out)[turns.group] > 1)
    flat = np.zeros(len(turns.reward))
    if kept.any():
        with np.errstate(over="ignore", invalid="ignore"):
            values = ESTIMATORS[estimator](turns.keep(kept), opt)
        if opt.clip is not None:
            values = np.clip(values, -opt.clip, opt.clip)
        flat[np.repeat(kept, turns.length)] = values
    if not np.isfinite(flat).all():
        i = int(turns.row[np.argmin(np.isfinite(flat))])
        raise UserError(f"rollout {i}: its group's rewards are too large for float64 statistics")
    return turns.split(flat)


def grpo(turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """A[i,k] = A_O[i]. → [M]"""
    return _outcome_advantage(turns, opt)[turns.row]


def rloo_norm(turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """A[i,k] = (o_i − b_i)/(s_i + ε), b, s of the other outcomes; unscaled if s_i = 0. → [M]

    The one estimator whose size the rewards do not bound: others that differ a little give a tiny
    s_i. A spread of the others within ε counts as none, which covers what float32 rewards leave by
    rounding; `clip` bounds the rest.
    """
    slot = np.zeros(len(turns.group), dtype=np.intp)
    order = np.argsort(turns.group, kind="stable")
    first = np.cumsum(turns.size) - turns.size
    slot[order] = np.arange(len(order)) - first[turns.group[order]]
    present = np.arange(turns.size.max()) < turns.size[:, None]
    table = np.zeros(present.shape)
    table[turns.group, slot] = turns.outcome

    advantage = np.zeros(present.shape)
    for i in range(present.shape[1]):
        others = present.copy()
        others[:, i] = False
        count = np.maximum(others.sum(axis=1), 1)
        mean = (table * others).sum(axis=1) / count
        squares = (((table - mean[:, None]) * others) ** 2).sum(axis=1)
        std = np.sqrt(squares / np.maximum(count - opt.ddof, 1))
        high = np.where(others, table, -np.inf).max(axis=1)
        low = np.where(others, table, np.inf).min(axis=1)
        resolution = opt.eps * np.maximum(1.0, np.maximum(np.abs(high), np.abs(low)))
        advantage[:, i] = table[:, i] - mean
        advantage[:, i] /= np.where(high - low > resolution, std + opt.eps, 1.0)
    return advantage[turns.group, slot][turns.row]


def mt_grpo(turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """A[i,k] = A_I[i,k] + A_O[i] (mode immediate) or Σ_{l≥k} A_I[i,l] + A_O[i] (mode sum). → [M]"""
    turn_advantage = _normalise(turns.reward, turns, opt)
    if opt.mode == "sum":
        turn_advantage = turns.discount(turn_advantage, np.zeros(len(turns.length)), 1.0)
    return turn_advantage + grpo(turns, opt)


def gtpo(turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """A[i,k] = GN(Ret)[i,k]. → [M]"""
    return _normalise(_returns(turns, opt), turns, opt)


def gtpo_hybrid(turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """A[i,k] = GN(Ret)[i,k] + λ·A_O[i]. → [M]"""
    return gtpo(turns, opt) + opt.lam * grpo(turns, opt)


def turn_rloo(turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """A[i,k] = Ret[i,k] − b[i,k], b from the group's other rollouts only. → [M]

    b is the mean of Ret[j,k] over the other rollouts j that have turn k, and the mean of o_j where
    none has. Nothing of rollout i enters its own baseline, so the expected policy gradient is
    REINFORCE's whatever the turn counts. With `scale` one std per group, of all its returns,
    divides everything; that std does contain rollout i.
    """
    returns = _returns(turns, opt)
    segment, absent = _segments(turns, opt.norm)
    total, count = _others(returns, segment, turns, absent, opt.norm)
    others = turns.size[turns.group] - 1
    outcome_sum = np.bincount(turns.group, weights=turns.outcome)
    fallback = (outcome_sum[turns.group] - turns.outcome) / others
    baseline = np.where(count > 0, total / np.maximum(count, 1), fallback[turns.row])
    advantage = returns - baseline
    if opt.scale:
        std, varies = _spread(returns, turns.group[turns.row], opt.ddof)
        advantage /= np.where(varies, std + opt.eps, 1.0)[turns.group[turns.row]]
    return advantage


ESTIMATORS: dict[str, Callable[[Turns, SimpleNamespace], np.ndarray]] = {
    "grpo": grpo,
    "rloo_norm": rloo_norm,
    "mt_grpo": mt_grpo,
    "gtpo": gtpo,
    "gtpo_hybrid": gtpo_hybrid,
    "turn_rloo": turn_rloo,
}


def _returns(turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """Ret[i,k] = r[i,k] + γ·Ret[i,k+1], Ret[i,K_i] = o[i]: the last turn carries γ·o. → [M]"""
    return turns.discount(turns.reward, turns.outcome, opt.gamma)


def _outcome_advantage(turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """A_O[i] = (o_i − mean_o)/(std_o + ε) over the group. → [N]"""
    return _standardise(turns.outcome, turns.group, None, opt)


def _normalise(values: np.ndarray, turns: Turns, opt: SimpleNamespace) -> np.ndarray:
    """GN: standardises each turn's value against those `norm` compares it with. [M] → [M]"""
    segment, absent = _segments(turns, opt.norm)
    return _standardise(values, segment, absent, opt)


def _segments(turns: Turns, norm: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The set each turn is compared within, int [M], and the absent turns (zeros) of each set."""
    group = turns.group[turns.row]
    if norm == "pooled":
        return group, None
    width = int(turns.length.max(initial=1))
    segment = group * width + turns.index
    if norm == "per_index":
        return segment, None
    present = np.bincount(segment, minlength=len(turns.size) * width)
    return segment, np.repeat(turns.size, width) - present


def _standardise(
    values: np.ndarray, segment: np.ndarray, absent: np.ndarray | None, opt: SimpleNamespace
) -> np.ndarray:
    """(v − mean)/(std + ε) within each segment; 0 where a segment's values are all equal."""
    count = np.bincount(segment, minlength=0 if absent is None else len(absent))
    size = count if absent is None else count + absent
    mean = np.bincount(segment, weights=values, minlength=len(count)) / np.maximum(size, 1)
    std, varies = _spread(values, segment, opt.ddof, absent)
    scaled = (values - mean[segment]) / (std[segment] + np.where(varies, opt.eps, 1.0)[segment])
    return np.where(varies[segment], scaled, 0.0)


def _spread(
    values: np.ndarray, segment: np.ndarray, ddof: int, absent: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Each segment's std, and whether its values differ at all, tested on the values themselves.

    The std of equal floats may come out as a tiny positive number; a test on it would divide by it.
    """
    count = np.bincount(segment, minlength=0 if absent is None else len(absent))
    zeros = np.zeros_like(count) if absent is None else absent
    size = count + zeros
    mean = np.bincount(segment, weights=values, minlength=len(count)) / np.maximum(size, 1)
    squares = np.bincount(segment, weights=(values - mean[segment]) ** 2, minlength=len(count))
    std = np.sqrt((squares + zeros * mean**2) / np.maximum(size - ddof, 1))
    sample = np.zeros(len(count))
    sample[segment] = values
    sample[zeros > 0] = 0.0
    varies = np.bincount(segment, weights=values != sample[segment], minlength=len(count)) > 0
    return std, varies


def _others(
    values: np.ndarray, segment: np.ndarray, turns: Turns, absent: np.ndarray | None, norm: str
) -> tuple[np.ndarray, np.ndarray]:
    """Sum and count of what each turn is compared with in the other rollouts: both [M]."""
    total = np.bincount(segment, weights=values)[segment]
    count = np.bincount(segment)[segment]
    if norm == "pooled":
        own = np.bincount(turns.row, weights=values, minlength=len(turns.length))
        return total - own[turns.row], count - turns.length[turns.row]
    if absent is not None:
        count = count + absent[segment]
    return total - values, count - 1
