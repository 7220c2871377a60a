"""The resources server's promises: sessions are bounded, exclusive and typed when they cannot serve."""

import asyncio
from typing import Any

import pytest
from starlette.testclient import TestClient

from nemo_tau2.gym.resources import EpisodeServerConfig
from nemo_tau2.gym.sessions import SessionError, Sessions
from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from tests.gym import toy
from tests.gym.conftest import calls, free_port, gym_server, says


def client(world: type = toy.ToyServer, **settings: Any) -> TestClient:
    server = gym_server(
        world, EpisodeServerConfig, "toy", free_port(), {}, domain="agent", **settings
    )
    return TestClient(server.setup_webserver())


def verify(http: TestClient, stop_reason: str | None = None):
    return http.post(
        "/verify", json=toy.row() | {"response": {"output": []}, "stop_reason": stop_reason}
    )


class TestVerbs:
    def test_an_episode_from_seed_to_verdict(self):
        http = client()
        seen = http.post("/seed_session", json=toy.row(turns=1)).json()
        assert [item["role"] for item in seen["items"]] == ["assistant", "user"] and seen[
            "done"
        ] is False
        seen = http.post("/step", json={"output": [calls("c1"), calls("c2")]}).json()
        assert [item["call_id"] for item in seen["items"]] == ["c1", "c2"]
        seen = http.post("/step", json={"output": [says("Bye.")]}).json()
        assert seen["done"] is True and seen["stop_reason"] == "user_stop"
        verdict = verify(http).json()
        assert verdict["reward"] == 1.0 and verdict["turn_rewards"] == [2.0, 0.0]
        assert verdict["responses_create_params"] == toy.row()["responses_create_params"]

    @pytest.mark.parametrize(
        "reason", ["deadline", "context_overflow", "policy_endpoint_failed", "max_turns"]
    )
    def test_a_stop_reason_may_be_imposed(self, reason):
        http = client()
        http.post("/seed_session", json=toy.row())
        assert verify(http, reason).json()["stop_reason"] == reason

    def test_an_invented_stop_reason_is_refused(self):
        http = client()
        http.post("/seed_session", json=toy.row())
        answer = verify(http, "bored")
        assert answer.status_code == 422 and "unknown stop_reason 'bored'" in answer.json()["error"]


class TestMisuse:
    def test_step_without_a_session(self):
        answer = client().post("/step", json={"output": []})
        assert answer.status_code == 404 and "never seeded" in answer.json()["error"]

    def test_step_after_the_end(self):
        http = client()
        http.post("/seed_session", json=toy.row(turns=1))
        http.post("/step", json={"output": [says("Bye.")]})
        answer = http.post("/step", json={"output": [says("More?")]})
        assert answer.status_code == 409 and "only verify is left" in answer.json()["error"]

    def test_verify_drops_the_session(self):
        http = client()
        http.post("/seed_session", json=toy.row())
        assert verify(http).status_code == 200 and verify(http).status_code == 404

    @pytest.mark.parametrize(
        "body", [b"{", b"[]", b'{"output": 1}', b'{"output": ["text"]}', b"{}"]
    )
    def test_a_step_that_is_no_generation(self, body):
        http = client()
        http.post("/seed_session", json=toy.row())
        answer = http.post("/step", content=body)
        assert answer.status_code == 422
        assert http.post("/step", json={"output": [says("Still here.")]}).status_code == 200

    def test_a_row_that_cannot_be_played(self):
        answer = client().post("/seed_session", json={"verifier_metadata": {}})
        assert answer.status_code == 422 and answer.json() == {
            "error": "verifier_metadata.turns is missing"
        }

    def test_two_workers_are_refused(self):
        with pytest.raises(ValueError, match="num_workers"):
            client(num_workers=2)

    def test_a_typed_infrastructure_failure_names_itself(self):
        class Down(toy.ToyServer):
            async def new_episode(self, row):
                episode = toy.ToyEpisode(row)

                async def step(output):
                    raise InfrastructureFailure(StopReason.TOOL_EMULATOR_FAILED, "no emulator")

                episode.step = step
                return episode

        http = client(Down)
        http.post("/seed_session", json=toy.row())
        answer = http.post("/step", json={"output": [says("Hi")]})
        assert answer.status_code == 502 and answer.json() == {
            "error": "tool_emulator_failed: no emulator"
        }
        assert verify(http).status_code == 404


class TestSessions:
    def sessions(self, limit: int = 2, idle_s: float = 10.0) -> tuple[Sessions, list[float]]:
        now = [0.0]
        return Sessions(limit, idle_s, clock=lambda: now[0]), now

    def test_no_more_than_the_limit(self):
        sessions, _ = self.sessions()
        sessions.open("a", None)
        sessions.open("b", None)
        with pytest.raises(SessionError, match="max_sessions"):
            sessions.open("c", None)
        sessions.open("b", None)  # seeding again replaces
        sessions.close("a")
        sessions.open("c", None)
        assert len(sessions) == 2

    def test_idle_sessions_make_room_and_used_ones_stay(self):
        sessions, now = self.sessions()
        sessions.open("a", None)
        sessions.open("b", None)
        now[0] = 9.0
        sessions.get("a")
        now[0] = 11.0
        sessions.open("c", None)
        sessions.get("a")
        with pytest.raises(SessionError, match="idle for too long"):
            sessions.get("b")

    def test_one_verb_at_a_time(self):
        async def run() -> list[str]:
            sessions, _ = self.sessions()
            sessions.open("a", None)
            order = []

            async def verb(name: str) -> None:
                async with sessions.exclusive("a"):
                    order.append(f"{name} in")
                    await asyncio.sleep(0)
                    order.append(f"{name} out")

            await asyncio.gather(verb("one"), verb("two"))
            return order

        assert asyncio.run(run()) == ["one in", "one out", "two in", "two out"]

    def test_a_verb_that_waited_for_a_closing_one_is_told(self):
        async def run() -> None:
            sessions, _ = self.sessions()
            sessions.open("a", None)

            async def last() -> None:
                async with sessions.exclusive("a"):
                    await asyncio.sleep(0)
                    sessions.close("a")

            async def late() -> None:
                async with sessions.exclusive("a"):
                    raise AssertionError("unreachable")

            with pytest.raises(SessionError, match="closed while the call waited"):
                await asyncio.gather(last(), late())

        asyncio.run(run())
