"""The four Agent Script environments behind real NeMo Gym servers: `pytest -m gym`, on each line."""

import json
import os
from collections import Counter

import pytest

from nemo_tau2.cli.main import main
from tests.conftest import REPO

pytestmark = pytest.mark.gym

MODES = ("flat", "routed", "sandbox", "pivot")
EPISODE = ("reward", "turn_rewards", "turn_tiers", "stop_reason", "mask_sample", "num_turns")


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    paths = [str(REPO), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def run(*arguments):
    with pytest.raises(SystemExit) as raised:
        main([str(a) for a in arguments])
    assert raised.value.code in (0, None)


def stored(folder):
    rows = map(json.loads, (folder / "rollouts.jsonl").read_text().splitlines())
    return {(row["task_id"], row["trial"]): row for row in rows}


def test_episodes_through_servers_are_the_episodes_in_process(tmp_path):
    """All modes at once, with faults, prefixes and a script with guards: rewards equal to the digit."""
    for mode in MODES:
        depths = ["--prefixes", 0, 1] if mode != "sandbox" else []
        run(
            "spec", "rows", "bank_cards", "--mode", mode, "--scenarios", 5, *depths,
            "--output", tmp_path / f"{mode}.jsonl",
        )  # fmt: skip
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("".join((tmp_path / f"{mode}.jsonl").read_text() for mode in MODES))
    flags = ["--rows", mixed, "--group-size", 3, "--fault-rate", 0.3]
    for backend in ("direct", "gym"):
        run("rollout", *flags, "--backend", backend, "--output", tmp_path / backend)
    here, there = stored(tmp_path / "direct"), stored(tmp_path / "gym")
    assert here.keys() == there.keys()
    for key, row in here.items():
        assert [there[key][name] for name in EPISODE] == [row[name] for name in EPISODE], key
    assert len({row["reward"] for row in here.values()}) > 1
    modes = Counter(key[0].split("/")[1] for key in here)
    assert set(modes) == set(MODES)

    for (task, _), row in there.items():
        turns = row["turn_output_indices"]
        output = row["response"]["output"]
        assert len(turns) == len(row["turn_rewards"])
        for index in turns:
            assert output[index].get("generation_token_ids")
        if "/pivot/" in task:
            assert all(not item.get("generation_token_ids") for item in output[turns[-1] + 1 :])
