"""The four tables of a calibration, and its JSON form."""

import math
from typing import Any

from rich.table import Table

from nemo_tau2.calibration.bootstrap import Interval
from nemo_tau2.calibration.loop import Calibration, Credit
from nemo_tau2.credit import TIERS, intended_sign

USEFUL = ("gold_exact", "soft_match", "grounding_call", "useful_read")
NOISY = ("read_only", "state_change")
SIGNS = {1: "reinforce", -1: "suppress", 0: "–"}


def tables(result: Calibration) -> list[Table]:
    """Discriminative power, advantage direction, estimators, gradient allocation."""
    return [_power(result), _direction(result), _estimators(result), _allocation(result)]


def _power(result: Calibration) -> Table:
    table = _table(
        "1. Discriminative power: share of rollouts with the tier, 95 % bootstrap over groups",
        ("tier", "rollouts", "passing %", "failing %", "gap pp", "ρ", "reward stored → proposed"),
    )
    for p in result.power:
        if p.support == 0:
            continue
        gap = _with_interval(100 * p.gap, tuple(100 * v for v in p.gap_interval), 1)
        change = f"{result.stored[p.tier]:.2f} → {result.proposed[p.tier]:.3g}"
        shares = (_number(100 * p.pass_share, 1, ""), _number(100 * p.fail_share, 1, ""))
        rho = _with_interval(p.rho, p.rho_interval, 2)
        table.add_row(p.tier, str(p.support), *shares, gap, rho, change)
    return table


def _direction(result: Calibration) -> Table:
    table = _table(
        f"2. Mean advantage per tier under {result.estimator}: ✗ is the wrong sign",
        ("tier", "turns", "intended stored", "stored rewards", "intended proposed", "proposed"),
    )
    before, after = result.before[result.estimator], result.after[result.estimator]
    for tier in before.metrics.turns:
        cells = []
        for credit, rewards in ((before, result.stored), (after, result.proposed)):
            mean = _with_interval(credit.metrics.mean_advantage[tier], credit.interval[tier], 2)
            sign = intended_sign(tier, rewards[tier])
            mark = "" if sign == 0 else "✗" if tier in credit.mismatches else "✓"
            mark = mark if tier in result.judged else "too few"
            cells += [SIGNS[sign], f"{mean} {mark}"]
        table.add_row(tier, str(before.metrics.turns[tier]), *cells)
    return table


def _estimators(result: Calibration) -> Table:
    table = _table(
        "3. Estimators, stored → proposed rewards",
        ("estimator", "mismatches", "Corr(adv, outcome)", "dead turns %", "|A| in equal groups %"),
    )
    for name, before in result.before.items():
        after = result.after[name]
        wrong = [", ".join(c.mismatches) or "0" for c in (before, after)]
        pairs = [(c.metrics.correlation, c.metrics.dead_share) for c in (before, after)]
        equal = [100 * c.metrics.equal_outcome_share for c in (before, after)]
        table.add_row(
            f"[bold]{name}[/]" if name == result.estimator else name,
            " → ".join(wrong),
            " → ".join(_number(c, 3, "") for c, _ in pairs),
            " → ".join(f"{100 * d:.1f}" for _, d in pairs),
            " → ".join(f"{e:.1f}" for e in equal),
        )
    return table


def _allocation(result: Calibration) -> Table:
    table = _table(
        "4. Gradient allocation: share of Σ|A| %, stored → proposed rewards",
        ("estimator", "useful: gold, grounding", "noisy: read, state", "other", "dead turns %"),
    )
    for name in result.before:
        pair = [allocation(result.before[name]), allocation(result.after[name])]
        cells = [
            " → ".join(f"{100 * a[k]:.1f}" for a in pair)
            for k in ("useful", "noisy", "other", "dead")
        ]
        table.add_row(name, *cells)
    return table


def allocation(credit: Credit) -> dict[str, float]:
    """Shares of Σ|A| by kind of tier, and the share of dead turns."""
    share = credit.metrics.gradient_share
    useful = sum(share.get(tier, 0.0) for tier in USEFUL)
    noisy = sum(share.get(tier, 0.0) for tier in NOISY)
    other = sum(share.get(tier, 0.0) for tier in TIERS if tier not in USEFUL + NOISY)
    return {"useful": useful, "noisy": noisy, "other": other, "dead": credit.metrics.dead_share}


def to_dict(result: Calibration) -> dict[str, Any]:
    """The whole calibration as JSON values; what is undefined is null."""
    return _clean(
        {
            "estimator": result.estimator,
            "converged": result.converged,
            "reasons": result.reasons,
            "rewards_stored": result.stored,
            "rewards": result.proposed,
            "reward_outcome_corr": dict(
                zip(("stored", "proposed"), result.reward_correlation, strict=True)
            ),
            "rounds": [{"rewards": r, "mismatches": list(m)} for r, m in result.rounds],
            "power": [vars(p) for p in result.power],
            "stored": {name: _credit(credit) for name, credit in result.before.items()},
            "proposed": {name: _credit(credit) for name, credit in result.after.items()},
        }
    )


def _credit(credit: Credit) -> dict[str, Any]:
    m = credit.metrics
    return {
        "mismatches": list(credit.mismatches),
        "corr_advantage_outcome": m.correlation,
        "dead_turns": m.dead_share,
        "equal_outcome_gradient": m.equal_outcome_share,
        "allocation": allocation(credit),
        "tiers": {
            tier: {
                "turns": m.turns[tier],
                "mean_advantage": m.mean_advantage[tier],
                "interval": credit.interval[tier],
                "gradient_share": m.gradient_share[tier],
            }
            for tier in m.turns
        },
    }


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    return table


def _number(value: float, digits: int, sign: str = "+") -> str:
    return "–" if math.isnan(value) else f"{value:{sign}.{digits}f}"


def _with_interval(value: float, interval: Interval, digits: int) -> str:
    low, high = interval
    span = "" if math.isnan(low) else rf" \[{low:+.{digits}f}, {high:+.{digits}f}]"
    return _number(value, digits) + span
