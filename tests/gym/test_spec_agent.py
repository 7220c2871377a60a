"""Spec-driven episodes behind the agent: the pivot's recovery is not trained on, breakage is masked."""

import asyncio
from typing import ClassVar

import orjson
import pytest
from aiohttp import web

from nemo_tau2.agentscript import compile
from nemo_tau2.gym.agent import TOKEN_FIELDS
from nemo_tau2.gym.resources import EpisodeServer
from nemo_tau2.simulation.factory import EPISODES
from nemo_tau2.simulation.pivot import BRIDGE
from nemo_tau2.simulation.scenario import parse_row
from tests.gym.conftest import calls, response, says
from tests.simulation.desk import SCRIPT, Patient, row

GRAPH = compile(SCRIPT)
MOVE = {
    "number": 1,
    "text": "Send parcel P1 to Oslo.",
    "action": "Move_Parcel",
    "arguments": {"parcel_id": "P1", "place": "Oslo"},
}
HELD = '{"parcel_id": "P1", "place": "Oslo"}'


class Desk(EpisodeServer):
    """The desk of tests/simulation over HTTP."""

    settings: ClassVar = ()

    async def new_episode(self, row):
        spec = parse_row(row["verifier_metadata"])
        return EPISODES[spec.mode](GRAPH, spec, **dict(self.settings))


def ids(n):
    """What a training model server adds, recognisable by its numbers."""
    return {
        "prompt_token_ids": [n, n + 1],
        "generation_token_ids": [n + 2],
        "generation_log_probs": [-0.125 * n],
    }


def play(stage, answer, mode, world=Desk, **metadata):
    data = row(mode, **metadata).model_dump(mode="json")
    dataset = {
        "responses_create_params": {"input": [], "tools": []},
        "agent_ref": {"type": "responses_api_agents", "name": "toy_agent"},
        "verifier_metadata": data,
    }

    async def run():
        async with stage.open(answer, world) as agent:
            return await agent.play(dataset)

    return orjson.loads(orjson.dumps(asyncio.run(run())))


def held(**more):
    return calls("c2", HELD, **more) | {"name": "move"}


class TestPivotRecovery:
    def played(self, stage, *recovery, **top):
        """The row of: a turn that defers, the bridge, and a recovery turn of these items."""

        async def answer(request):
            if request["input"][-1]["content"] == BRIDGE:
                return response(*recovery, **top)
            return response(says("I cannot send parcels just now.", **ids(1)))

        return play(stage, answer, "pivot", questions=[MOVE], withheld_tool="move")

    def test_its_call_is_scored_and_its_token_ids_are_gone(self, stage):
        result = self.played(stage, held(**ids(9)))
        assert result["reward"] == 1.0 and result["turn_rewards"] == [1.0]
        output = result["response"]["output"]
        assert [item["type"] for item in output] == ["message"] * 3 + ["function_call"]
        (index,) = result["turn_output_indices"]
        assert {k: output[index][k] for k in TOKEN_FIELDS} == ids(1)
        carriers = [i for i, item in enumerate(output) if set(TOKEN_FIELDS) & item.keys()]
        assert carriers == [index]
        assert output[-1]["arguments"] == HELD  # the words stay, to be read

    def test_nor_are_they_anywhere_else_in_the_row(self, stage):
        """Reasoning, text, calls, log probabilities inside content, and the response's own fields."""
        part = {"type": "output_text", "text": "At last.", "annotations": [], "logprobs": [-9.5]}
        message = says("") | {"content": [part], **ids(9)}
        thought = {"type": "reasoning", "id": "r", "summary": [], **ids(9)}
        result = self.played(stage, thought, message, held(**ids(9)), **ids(9))
        text = orjson.dumps(result).decode()
        assert "-1.125" not in text and "-9.5" not in text and "[9,10]" not in text
        assert text.count("generation_token_ids") == text.count("prompt_token_ids") == 1
        assert len(result["turn_rewards"]) == len(result["turn_output_indices"]) == 1

    def test_the_tool_is_offered_in_the_recovery_only(self, stage):
        self.played(stage, held())
        offered = [[tool["name"] for tool in request["tools"]] for request in stage.requests]
        assert ["move" in names for names in offered] == [False, True]


class TestHarness:
    """What breaks around the policy is the harness's, never the policy's."""

    def masked(self, result, reason, words):
        assert (result["stop_reason"], result["blame"]) == (reason, "harness")
        assert result["mask_sample"] and result["reward"] == 0.0
        assert words in result["failure"]["message"]

    @pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), ConnectionError("gone")])
    @pytest.mark.parametrize("role", ["emulator", "customer", "judge"])
    def test_an_exception_in_a_role(self, stage, role, error):
        class Breaks:
            async def __call__(self, *args):
                raise error

            async def reply(self, said):
                if said:
                    raise error
                return "Hello."

        class Broken(Desk):
            settings: ClassVar = (("customer", Patient()), (role, Breaks()))

        async def answer(request):
            found = calls("c1", '{"parcel_id": "P1"}') | {"name": "find"}
            if role == "customer":
                return response(says("Which parcel?"))
            return response(found if len(stage.requests) == 1 else says(""))

        result = play(stage, answer, "flat", world=Broken)
        self.masked(result, "world_failed", str(error))
        assert len(result["turn_rewards"]) == len(result["turn_output_indices"])

    def test_a_policy_endpoint_that_is_down(self, stage):
        result = play(stage, None, "routed")
        self.masked(result, "policy_endpoint_failed", "unreachable")

    def test_one_that_dies_in_the_middle(self, stage):
        async def answer(request):
            if len(stage.requests) > 1:
                return web.Response(status=503, text="out of memory")
            return response(calls("c1") | {"name": "go_to_parcels"})

        result = play(stage, answer, "routed")
        self.masked(result, "policy_endpoint_failed", "out of memory")
        assert result["turn_tiers"] == ["route"]
