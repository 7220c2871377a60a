"""`spec_service` over HTTP: the example rows of its four environments seed, step and verify."""

import json

import pytest
from starlette.testclient import TestClient

from nemo_tau2.gym.examples import SPEC_MODES, example_rows
from nemo_tau2.gym.spec_service import SpecService, SpecServiceConfig
from tests.gym.conftest import free_port, gym_server

ROWS = [row for name in SPEC_MODES for row in example_rows(name)]


def client() -> TestClient:
    server = gym_server(SpecService, SpecServiceConfig, "spec", free_port(), {}, domain="agent")
    return TestClient(server.setup_webserver())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["verifier_metadata"]["task_id"])
def test_example_rows_can_be_played(row):
    http = client()
    seen = http.post("/seed_session", json=row).json()
    assert not seen["done"] and seen["tools"]
    call = {"type": "function_call", "name": "no_such_tool", "call_id": "c", "arguments": "{}"}
    seen = http.post("/step", json={"output": [call]}).json()
    assert json.loads(seen["items"][0]["output"])["error"] == "unknown_tool"
    assert seen["reward_only"] == (row["verifier_metadata"]["mode"] == "pivot")
    body = row | {"response": {"output": []}, "stop_reason": None}
    verdict = http.post("/verify", json=body).json()
    assert verdict["turn_tiers"] == ["error"] and verdict["blame"] == "policy"


def test_a_script_that_is_not_there():
    row = json.loads(json.dumps(ROWS[0]))
    row["verifier_metadata"]["script"] = "no_such_script"
    answer = client().post("/seed_session", json=row)
    assert answer.status_code == 422 and "no script" in answer.json()["error"]
