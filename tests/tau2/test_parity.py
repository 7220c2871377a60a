"""Our reward is stock τ²'s reward, on fuzzed episodes (more of them in `nemo-tau2 bench parity`)."""

import pytest

from nemo_tau2.bench.parity import compare, report


@pytest.mark.parametrize("domain, episodes", [("airline", 12), ("retail", 15), ("telecom", 40)])
def test_fuzzed_rewards_agree_with_stock_evaluation(domain, episodes):
    result = report([compare(domain, f"test/{index}") for index in range(episodes)])
    assert result["disagreements"] == 0, result["examples"]
    assert 0 < result["rewarded"] < episodes


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("domain", ["airline", "retail", "telecom"])
def test_a_longer_fuzz(domain):
    result = report([compare(domain, f"slow/{index}") for index in range(150)])
    assert result["disagreements"] == 0, result["examples"]
