"""Which rollouts carry a signal at all: the filter of dynamic sampling.

It looks at whole groups. A filter on each rollout's own leave-one-out std drops exactly the lone
success of `[1, 0, 0, 0]`, whose others are all equal, and keeps rollouts that then have nothing to
be compared with (NeMo RL PR #3469).
"""

from collections.abc import Hashable, Sequence

import numpy as np

from nemo_tau2.credit.turns import exclusion, flatten


def informative(
    outcomes: Sequence[float], groups: Sequence[Hashable], exclude: Sequence[bool] | None = None
) -> np.ndarray:
    """bool [N]: not excluded, and the group's outcomes differ among its rollouts that are not.

    Raises `UserError` for outcomes that are not finite numbers.
    """
    left_out = exclusion(exclude, len(outcomes))
    turns = flatten(outcomes, groups, [()] * len(outcomes), left_out)
    kept, group = ~left_out, turns.group
    sample = np.zeros(len(group))
    sample[group[kept]] = turns.outcome[kept]
    differs = kept & (turns.outcome != sample[group])
    return kept & (np.bincount(group, weights=differs) > 0)[group] if len(group) else kept
