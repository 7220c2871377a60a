"""From one advantage per turn to one per token."""

from collections.abc import Sequence

import numpy as np

from nemo_tau2.errors import UserError


def token_advantages(
    advantages: Sequence[np.ndarray], spans: Sequence[np.ndarray], width: int
) -> np.ndarray:
    """Spreads each turn's advantage over the tokens the policy generated in it.

    `advantages` N arrays of K_i, `spans` N int arrays [K_i, 2] of [start, end) token positions in
    rising order without overlap, `width` S. Returns float32 [N, S]: every other token is 0.

    Raises `UserError` where a rollout's counts disagree or a span is out of order or range.
    """
    if len(advantages) != len(spans):
        raise UserError(f"{len(advantages)} rollouts of advantages for {len(spans)} of token spans")
    # Zeroed pages cost nothing until written: filling slices touches the generated tokens only.
    out = np.zeros((len(advantages), width), dtype=np.float32)
    for i, (row, values, span) in enumerate(zip(out, advantages, spans, strict=True)):
        if len(values) != len(span):
            raise UserError(f"rollout {i}: {len(values)} advantages, {len(span)} token spans")
        end = 0
        for value, (start, stop) in zip(
            np.asarray(values).tolist(), np.asarray(span).tolist(), strict=True
        ):
            if not end <= start <= stop <= width:
                raise UserError(
                    f"rollout {i}: its token spans overlap, go backwards or pass {width} tokens"
                )
            row[start:stop] = value
            end = stop
    return out
