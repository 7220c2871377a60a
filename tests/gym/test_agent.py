"""The agent's promises: what it sends, what it keeps, and the row it gives when something breaks."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from nemo_tau2.episodes import Observation, Opening, message_item
from tests.gym import toy
from tests.gym.conftest import calls, response, says

IDS = {
    "prompt_token_ids": [1, 2],
    "generation_token_ids": [3],
    "generation_log_probs": [-0.25],
    "odd": {"kept": 1},
}
INFRASTRUCTURE = {"mask_sample": True, "instance_config": {"mask_sample": True}, "reward": 0.0}


async def talk(request: dict[str, Any]) -> web.Response:
    """A call after each user message, its result in words after that."""
    last = request["input"][-1]
    if last["type"] == "message":
        return response(calls(f"c{len(request['input'])}", '{"n": 1', **IDS))
    return response(says("Done.", **IDS))


def play(stage, answer, *rows, world=toy.ToyServer, **settings) -> list[dict[str, Any]]:
    async def run():
        async with stage.open(answer, world, **settings) as agent:
            return await asyncio.gather(*(agent.play(row) for row in rows or [toy.row()]))

    return asyncio.run(run())


class TestHistory:
    def test_history_is_append_only_and_the_policys_items_come_back_as_they_were(self, stage):
        (result,) = play(stage, talk)
        output = result["response"]["output"]
        inputs = [request["input"] for request in stage.requests]
        for earlier, later in pairwise(inputs):
            assert later[: len(earlier)] == earlier
        assert plain(inputs[-1] + output[-2:]) == plain(
            toy.row()["responses_create_params"]["input"] + output
        )
        policy = [plain(output)[index] for index in result["turn_output_indices"]]
        assert all(
            item["odd"] == {"kept": 1} and item["generation_log_probs"] == [-0.25]
            for item in policy
        )
        assert [item["type"] for item in policy] == ["function_call", "message"] * 2

    def test_no_assistant_message_after_the_first_policy_turn_is_not_the_policys(self, stage):
        (result,) = play(stage, talk)
        output = plain(result["response"]["output"])
        first = result["turn_output_indices"][0]
        said = [i for i, item in enumerate(output) if item.get("role") == "assistant" and i > first]
        assert set(said) <= set(result["turn_output_indices"])

    def test_parameters_of_the_row_reach_the_model_server(self, stage):
        row = toy.row()
        row["responses_create_params"] |= {"temperature": 0.5, "max_output_tokens": 64}
        play(stage, talk, row)
        assert {(r["temperature"], r["max_output_tokens"]) for r in stage.requests} == {(0.5, 64)}
        assert stage.requests[0]["tools"] == row["responses_create_params"]["tools"]

    def test_new_tools_replace_the_visible_ones_from_the_next_turn_on(self, stage):
        class Unlocking(toy.ToyEpisode):
            async def step(self, output):
                seen = await super().step(output)
                seen.tools = [{"type": "function", "name": "later"}]
                return seen

        play(stage, talk, world=server(Unlocking))
        names = [[tool["name"] for tool in request["tools"]] for request in stage.requests]
        assert names == [["add"], ["later"], ["later"], ["later"]]

    def test_usage_is_summed_over_the_turns(self, stage):
        (result,) = play(stage, talk)
        assert result["response"]["usage"] == {
            "input_tokens": 12,
            "output_tokens": 8,
            "total_tokens": 20,
        }


class TestCookies:
    def test_each_server_sees_only_its_own_cookies(self, stage):
        play(stage, talk)
        assert stage.cookies == [{}, *[{"replica": "7"}] * 3]

    def test_two_episodes_never_share_a_session(self, stage):
        results = play(stage, talk, toy.row(turns=1), toy.row(turns=3))
        assert [len(r["turn_rewards"]) for r in results] == [2, 6]
        assert len(stage.world._sessions) == 0


class TestOutcome:
    def test_the_row_comes_back_with_verdict_and_trajectory(self, stage):
        (result,) = play(stage, talk, toy.row(note="kept"))
        assert (
            result["note"] == "kept"
            and result["reward"] == 1.0
            and result["stop_reason"] == "user_stop"
        )
        assert result["turn_rewards"] == [1.0, 0.0, 1.0, 0.0] and result["turn_output_indices"] == [
            2,
            4,
            6,
            8,
        ]
        assert result["agent_ref"]["name"] == "toy_agent" and result["failure"] is None

    def test_max_turns_ends_the_episode(self, stage):
        (result,) = play(stage, talk, max_turns=3)
        assert result["stop_reason"] == "max_turns" and len(result["turn_rewards"]) == 3
        assert not result["mask_sample"]

    @pytest.mark.parametrize("text", ["", None])
    def test_an_empty_generation_cut_for_length_is_context_overflow_and_scored(self, stage, text):
        async def overflow(request):
            if len(request["input"]) < 6:
                return await talk(request)
            item = says("") if text == "" else says("") | {"content": []}
            return response(item, incomplete_details={"reason": "max_output_tokens"})

        (result,) = play(stage, overflow)
        assert result["stop_reason"] == "context_overflow" and not result["mask_sample"]
        assert len(result["turn_rewards"]) == 2 and result["failure"] is None

    def test_a_generation_cut_after_some_tokens_is_a_turn(self, stage):
        async def cut(request):
            return response(says("Do", **IDS), incomplete_details={"reason": "max_output_tokens"})

        (result,) = play(stage, cut, toy.row(turns=1))
        assert result["stop_reason"] == "user_stop" and len(result["turn_rewards"]) == 1


class TestPolicyEndpoint:
    def failed(self, result: dict[str, Any], words: str) -> None:
        assert result["stop_reason"] == "policy_endpoint_failed"
        assert {key: result[key] for key in INFRASTRUCTURE} == INFRASTRUCTURE
        assert (
            result["failure"]["kind"] == "policy_endpoint_failed"
            and words in result["failure"]["message"]
        )

    def test_nothing_listening(self, stage):
        (result,) = play(stage, None)
        self.failed(result, "unreachable")

    def test_http_500_keeps_what_the_server_said(self, stage):
        async def broken(request):
            return web.Response(status=500, text="no logprobs in the answer")

        (result,) = play(stage, broken)
        self.failed(result, "HTTP 500: no logprobs in the answer")

    def test_an_error_body_is_cut(self, stage):
        async def chatty(request):
            return web.Response(status=500, text="x" * 1_000_000)

        (result,) = play(stage, chatty)
        assert len(result["failure"]["message"]) < 3000

    @pytest.mark.parametrize(
        "body", ["<html>", "[]", "{}", '{"output": []}', '{"output": ["text"]}', '{"output": null}']
    )
    def test_an_answer_that_is_no_response(self, stage, body):
        async def odd(request):
            return web.Response(text=body)

        (result,) = play(stage, odd)
        self.failed(result, "answered")

    def test_a_wedged_server_costs_one_call_timeout(self, stage):
        async def wedged(request):
            await asyncio.sleep(30)

        (result,) = play(stage, wedged, policy_call_timeout_s=0.2)
        self.failed(result, "no answer within 0.2 s")

    def test_a_failure_later_on_keeps_the_turns_before_it(self, stage):
        async def dies(request):
            return await talk(request) if len(request["input"]) < 6 else web.Response(status=503)

        (result,) = play(stage, dies)
        self.failed(result, "HTTP 503")
        assert (
            len(result["turn_output_indices"])
            == len(result["turn_rewards"])
            == len(result["turn_tiers"])
            == 2
        )

    def test_a_slow_policy_meets_the_deadline_and_is_scored(self, stage):
        async def slow(request):
            await asyncio.sleep(0.3)
            return await talk(request)

        (result,) = play(stage, slow, toy.row(turns=50), episode_deadline_s=0.7)
        assert result["stop_reason"] == "deadline" and not result["mask_sample"]
        assert len(result["turn_rewards"]) == len(result["turn_output_indices"])


class TestWorld:
    def failed(self, result: dict[str, Any], words: str) -> None:
        assert result["stop_reason"] == "world_failed"
        assert {key: result[key] for key in INFRASTRUCTURE} == INFRASTRUCTURE
        assert words in result["failure"]["message"]
        assert (
            len(result["turn_output_indices"])
            == len(result["turn_rewards"])
            == len(result["turn_tiers"])
        )

    @pytest.mark.parametrize("verb", ["seed", "step", "verify"])
    def test_an_episode_that_raises(self, stage, verb):
        async def explode(self, *args):
            raise ZeroDivisionError("a bug")

        broken = type("Broken", (toy.ToyEpisode,), {verb: explode})
        (result,) = play(stage, talk, world=server(broken))
        self.failed(result, "ZeroDivisionError: a bug")
        assert len(stage.world._sessions) == 0

    def test_a_wedged_world_costs_one_call_timeout(self, stage):
        async def wedge(self, output):
            await asyncio.sleep(30)

        wedged = type("Wedged", (toy.ToyEpisode,), {"step": wedge})
        (result,) = play(stage, talk, world=server(wedged), environment_call_timeout_s=0.3)
        self.failed(result, "no answer within 0.3 s")

    def test_a_deadline_during_a_step_cuts_the_step_and_scores_what_there_is(self, stage):
        class Slow(toy.ToyEpisode):
            async def step(self, output):
                if len(self.calls) == 1:
                    await asyncio.sleep(30)
                return await super().step(output)

        (result,) = play(stage, talk, world=server(Slow), episode_deadline_s=0.5)
        assert result["stop_reason"] == "deadline" and not result["mask_sample"]
        assert result["turn_tiers"] == ["gold_exact", "unscored"] and result["turn_rewards"] == [
            1.0,
            0.0,
        ]

    def test_a_row_the_environment_refuses(self, stage):
        row = toy.row()
        del row["verifier_metadata"]["turns"]
        (result,) = play(stage, talk, row)
        self.failed(result, "HTTP 422")
        assert result["task_id"] == "1" and result["domain"] == "toy"

    @pytest.mark.parametrize(
        "row", [None, [], {}, {"responses_create_params": {"input": 3}}, {"verifier_metadata": 1}]
    )
    def test_a_row_that_is_no_row(self, stage, row):
        (result,) = play(stage, talk, row)
        self.failed(result, "bad row")

    def test_an_episode_that_is_over_before_it_began(self, stage):
        class Over(toy.ToyEpisode):
            async def seed(self):
                return Opening(
                    [message_item("user", "Never mind.")], done=True, stop_reason="user_stop"
                )

        (result,) = play(stage, talk, world=server(Over))
        assert (
            stage.requests == []
            and result["turn_rewards"] == []
            and result["stop_reason"] == "user_stop"
        )
        assert len(result["response"]["output"]) == 1


def server(episode: type) -> type:
    class Server(toy.ToyServer):
        async def new_episode(self, row):
            await super().new_episode(row)
            return episode(row)

    return Server


def plain(items: list[Any]) -> list[dict[str, Any]]:
    """Fragments as what they hold."""
    import orjson

    return orjson.loads(orjson.dumps(items))


def test_an_observation_may_be_empty(stage):
    class Silent(toy.ToyEpisode):
        async def step(self, output):
            await super().step(output)
            return Observation([], done=True, stop_reason="agent_stop")

    (result,) = play(stage, talk, world=server(Silent))
    assert result["stop_reason"] == "user_stop" and len(result["turn_rewards"]) == 1
