"""Turn-level credit: from the rewards of a batch of rollouts to one advantage per policy turn.

numpy only: no torch, no NeMo, no Ray. The NeMo RL adapters, the calibration and the benches all
call `turn_advantages`; nothing else in the project computes an advantage.
"""

from nemo_tau2.credit.diagnostics import TIERS, credit_metrics, intended_sign
from nemo_tau2.credit.estimators import ESTIMATORS, turn_advantages
from nemo_tau2.credit.filters import informative
from nemo_tau2.credit.options import check_options
from nemo_tau2.credit.tokens import token_advantages

__all__ = [
    "ESTIMATORS",
    "TIERS",
    "check_options",
    "credit_metrics",
    "informative",
    "intended_sign",
    "token_advantages",
    "turn_advantages",
]
