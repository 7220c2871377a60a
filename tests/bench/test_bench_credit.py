"""The credit bench reports every estimator, and a ratio only against a peer."""

import json

import numpy as np

from nemo_tau2.bench.credit import credit, make_batch, measure, run
from nemo_tau2.credit import ESTIMATORS, turn_advantages


def test_a_peer_gives_ratios():
    batch = make_batch(rollouts=32, turns=4, tokens=400, group=8)
    calls = []
    got = measure(batch, peer=lambda: calls.append(1), repeats=3)
    assert len(calls) == 3
    assert set(got["estimators"]) == set(ESTIMATORS)
    assert all(row["ratio"] > 0 for row in got["estimators"].values())
    alone = measure(batch, repeats=1)
    assert alone["peer_ms"] is None
    assert alone["estimators"]["grpo"]["ratio"] is None


def test_tokens_carry_their_turns_advantage():
    batch = make_batch(rollouts=16, turns=3, tokens=90, group=8)
    out = run(batch, "gtpo")
    want = turn_advantages(batch.outcomes, batch.groups, batch.turn_rewards, "gtpo")
    for i, spans in enumerate(batch.spans):
        for k, (start, stop) in enumerate(spans):
            np.testing.assert_array_equal(out[i, start:stop], np.float32(want[i][k]))
    assert np.count_nonzero(out) <= 16 * 3 * 10


def test_json_is_one_object(capsys, monkeypatch):
    monkeypatch.setattr("nemo_tau2.bench.credit.make_batch", lambda: make_batch(32, 4, 400, 8))
    credit(json=True)
    assert json.loads(capsys.readouterr().out)["rollouts"] == 32
