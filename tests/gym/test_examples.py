"""The example rows are what their script writes, and can be played."""

import json

import pytest
from starlette.testclient import TestClient

from nemo_tau2.gym.config import environment_names
from nemo_tau2.gym.examples import example_rows
from nemo_tau2.gym.tau2_bench import Tau2Bench, Tau2BenchConfig
from nemo_tau2.gym_compat import GYM_ROOT
from tests.gym.conftest import free_port, gym_server


@pytest.mark.parametrize("name", [n for n in environment_names() if n != "workplace_sandbox"])
def test_they_are_up_to_date(name):
    text = (GYM_ROOT / "environments" / name / "data" / "example.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == example_rows(name)


def tau2_client(**settings) -> TestClient:
    server = gym_server(
        Tau2Bench, Tau2BenchConfig, "tau2", free_port(), {}, domain="agent", **settings
    )
    return TestClient(server.setup_webserver())


@pytest.mark.parametrize("row", example_rows("tau2_all"), ids=lambda row: row["task_source"])
def test_they_seed_step_and_verify(row):
    http = tau2_client()
    seen = http.post("/seed_session", json=row).json()
    assert [item["role"] for item in seen["items"]] == ["assistant", "user"] and not seen["done"]
    call = {"type": "function_call", "name": "no_such_tool", "call_id": "c", "arguments": "{}"}
    seen = http.post("/step", json={"output": [call]}).json()
    assert seen["items"][0]["type"] == "function_call_output"
    body = row | {"response": {"output": []}, "stop_reason": "policy_endpoint_failed"}
    verdict = http.post("/verify", json=body).json()
    assert verdict["turn_tiers"] == ["error"] and verdict["mask_sample"]
    assert verdict["group_id"] == row["verifier_metadata"]["group_id"]


class TestRowsThatCannotBePlayed:
    def refused(self, words: str, **metadata) -> None:
        row = example_rows("tau2_airline")[0]
        row["verifier_metadata"] |= metadata
        answer = tau2_client().post("/seed_session", json=row)
        assert answer.status_code == 422 and words in answer.json()["error"]

    def test_an_unknown_domain(self):
        self.refused("unknown domain 'cruise'", domain="cruise")

    def test_an_unknown_task(self):
        self.refused("no task '-1'", task_id="-1")

    def test_a_row_of_another_tasks_file(self):
        self.refused("tasks_dir", tasks_file_sha256="0" * 64)

    def test_no_metadata(self):
        answer = tau2_client().post("/seed_session", json={"responses_create_params": {}})
        assert answer.status_code == 422 and "nemo-tau2 data" in answer.json()["error"]


def test_an_llm_user_needs_a_model_server():
    with pytest.raises(ValueError, match="user_model_server"):
        tau2_client(user="llm")
