"""Advantages per token: constant over a turn's generated tokens, 0 elsewhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.credit import token_advantages
from nemo_tau2.errors import UserError


def test_layout():
    got = token_advantages(
        [np.array([1.5, -2.0]), np.array([]), np.array([3.0])],
        [np.array([[1, 3], [5, 6]]), np.empty((0, 2), int), np.array([[0, 7]])],
        width=7,
    )
    assert got.dtype == np.float32
    assert got.tolist() == [[0, 1.5, 1.5, 0, 0, -2, 0], [0] * 7, [3] * 7]


@given(st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=6))
def test_matches_slice_assignment(cuts):
    spans = [np.reshape(sorted(c)[: len(c) // 2 * 2], (-1, 2)) for c in cuts]
    values = [np.arange(1.0, len(s) + 1) for s in spans]
    want = np.zeros((len(cuts), 30), np.float32)
    for row, span, value in zip(want, spans, values, strict=True):
        for (a, b), v in zip(span, value, strict=True):
            row[a:b] = v
    np.testing.assert_array_equal(token_advantages(values, spans, 30), want)


@pytest.mark.parametrize("span", [[[3, 2]], [[-1, 2]], [[0, 8]], [[2, 4], [3, 5]]])
def test_bad_spans_are_refused_by_rollout(span):
    good = np.array([[0, 1]])
    with pytest.raises(UserError, match="rollout 1: its token spans"):
        token_advantages([np.ones(1), np.ones(len(span))], [good, np.array(span)], 7)


def test_counts_must_agree():
    with pytest.raises(UserError, match="rollout 0: 2 advantages, 1 token spans"):
        token_advantages([np.ones(2)], [np.array([[0, 1]])], 7)
