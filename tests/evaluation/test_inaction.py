"""A do-nothing agent's airline score is flagged; infrastructure failures never print a bare 100 %."""

import json

from nemo_tau2.evaluation import load
from tests.rollouts.stub import chat_endpoint
from tests.rollouts.test_rollout_verb import rollout


def test_a_do_nothing_agent_is_flagged(tmp_path):
    """13 of 30 airline train tasks reward saying goodbye at once."""
    with chat_endpoint({"content": "Goodbye."}) as (url, _):
        rollout(tmp_path, "--domain", "airline", "--policy-url", url, "--policy-model", "m")
    report = load([tmp_path]).as_dict()
    found = report["domains"]["airline"]
    assert found["pass_k"]["1"]["value"] == 13 / 30
    assert found["patterns"]["reward_by_inaction"] == 13
    assert report["warnings"] == ["airline: 13 successes are on tasks that reward doing nothing"]


def test_all_failed_is_no_number_and_no_traceback(tmp_path):
    row = {
        "domain": "airline", "task_id": "0", "trial": 0, "reward": 0.0, "mask_sample": True,
        "stop_reason": "world_failed", "turn_tiers": [], "call_tiers": [], "num_turns": 0,
    }  # fmt: skip
    (tmp_path / "rollouts.jsonl").write_text(json.dumps(row) + "\n")
    found = load([tmp_path]).as_dict()["domains"]["airline"]
    counts = found["denominators"]
    assert (counts["graded"], counts["infrastructure_failed"]) == (0, 1)
    assert found["pass_k"].get("1", {}).get("value") is None
