"""`spec_service` over HTTP: the example rows of its four environments seed, step and verify."""

import asyncio
import json
import time
from contextlib import nullcontext

import pytest
from aiohttp import web
from pydantic import ValidationError
from starlette.testclient import TestClient

from nemo_tau2.gym.examples import SPEC_MODES, example_rows
from nemo_tau2.gym.spec_service import SpecService, SpecServiceConfig
from tests.gym.conftest import aiohttp_server, calls, free_port, gym_server

ROWS = [row for name in SPEC_MODES for row in example_rows(name)]


def row_of(mode):
    return next(row for row in ROWS if row["verifier_metadata"]["mode"] == mode)


FLAT = row_of("flat")
FACTS = FLAT["verifier_metadata"]["customer"]["facts"]
KNOWN = {name: FACTS[name] for name in ("last_four", "birth_date", "postcode")}


def client(**settings) -> TestClient:
    port = free_port()
    server = gym_server(
        SpecService, SpecServiceConfig, "spec", port, {}, domain="agent", **settings
    )
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


class TestSettings:
    """`options` of the configuration reach the episode."""

    def played(self, mode, name, arguments, options, **metadata):
        row = row_of(mode)
        row = row | {"verifier_metadata": row["verifier_metadata"] | metadata}
        http = client(options=options)
        assert http.post("/seed_session", json=row).status_code == 200
        call = {"type": "function_call", "name": name, "call_id": "c", "arguments": arguments}
        http.post("/step", json={"output": [call]})
        body = row | {"response": {"output": []}, "stop_reason": "max_turns"}
        return http.post("/verify", json=body).json()

    @pytest.mark.parametrize(("reward", "value"), [("coverage", 0.0), ("structural_credit", 0.15)])
    def test_the_reward(self, reward, value):
        verdict = self.played("flat", "no_such_tool", "{}", {"reward": reward})
        assert verdict["reward"] == value and verdict["reward_info"]["kind"] == reward

    @pytest.mark.parametrize(
        ("options", "rules", "value"),
        [({}, None, 0.0), ({"state": {"ignore": ["x"]}}, None, 1.0), ({}, {"ignore": ["x"]}, 1.0)],
    )
    def test_how_states_are_compared(self, options, rules, value):
        more = {"expected_state": {"written": {"x": 1}}, "state_rules": rules}
        verdict = self.played("sandbox", "no_such_tool", "{}", options, **more)
        assert verdict["reward"] == value

    def test_a_rule_that_does_not_exist(self):
        row = row_of("sandbox")
        more = {"state_rules": {"ignored": []}}
        answer = client().post(
            "/seed_session", json=row | {"verifier_metadata": row["verifier_metadata"] | more}
        )
        assert answer.status_code == 422
        assert "state_rules: unknown key 'ignored': did you mean 'ignore'" in answer.json()["error"]
        with pytest.raises(ValidationError, match="did you mean 'ignore'"):
            client(options={"state": {"ignored": []}})


class TestHelpersOnModelServers:
    """A helper's endpoint that hangs or is not there: named, bounded, never the policy's fault."""

    @pytest.mark.parametrize("fault", ["hangs", "down"])
    @pytest.mark.parametrize(
        ("role", "reason"),
        [
            ("customer", "user_simulator_failed"),
            ("emulator", "tool_emulator_failed"),
            ("judge", "judge_failed"),
        ],
    )
    def test_typed_and_masked(self, monkeypatch, role, reason, fault):
        monkeypatch.setattr("nemo_tau2.gym.http.CONNECT_TRIES", 1)

        async def hangs(request):
            await asyncio.sleep(60)

        async def run():
            port = free_port()
            server = {"type": "responses_api_models", "name": "helper"}
            spec = gym_server(
                SpecService,
                SpecServiceConfig,
                "spec",
                free_port(),
                {"helper": port},
                domain="agent",
                options={"helper_timeout_s": 0.3},
                **{f"{role}_model_server": server},
            )
            app = web.Application()
            app.router.add_post("/v1/chat/completions", hangs)
            listening = aiohttp_server(app, port) if fault == "hangs" else nullcontext()
            async with listening:
                episode = await spec.new_episode(FLAT)
                await episode.seed()
                if episode.stop_reason is None:
                    await episode.step([calls("c", json.dumps(KNOWN)) | {"name": "verify"}])
                verdict = await episode.verify()
            await spec._client.close()
            return verdict

        began = time.monotonic()
        verdict = asyncio.run(run())
        assert time.monotonic() - began < 5
        assert (verdict["stop_reason"], verdict["blame"]) == (reason, role)
        assert verdict["mask_sample"] and verdict["reward"] == 0.0
