"""The environments keep their promises to policies that need no model."""

import asyncio
import json

import pytest

from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.policies import Oracle, RandomWalk, Spammer, bluffer, play, silent
from nemo_tau2.simulation.scripts import built_in

MODES = ("flat", "routed")


def verdict(row, policy, **settings):
    return asyncio.run(play(new_episode(row, **settings), policy))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("script", built_in())
class TestOurScripts:
    def test_the_oracle_covers_everything(self, script, mode):
        assert verdict(plain_row(script, mode, 1), Oracle())["reward"] == 1.0

    def test_silence_earns_nothing(self, script, mode):
        assert verdict(plain_row(script, mode, 1), silent)["reward"] == 0.0

    def test_a_spammer_earns_nothing(self, script, mode):
        assert verdict(plain_row(script, mode, 1), Spammer())["reward"] == 0.0

    def test_a_bluffer_earns_nothing(self, script, mode):
        assert verdict(plain_row(script, mode, 1), bluffer)["reward"] == 0.0

    def test_walks_end_with_a_row(self, script, mode):
        for seed in range(20):
            row = verdict(plain_row(script, mode, seed), RandomWalk(seed))
            assert len(row["turn_rewards"]) == len(row["turn_tiers"]) == row["num_turns"]
            assert not row["mask_sample"] and row["blame"] == "policy"


def test_a_guess_opens_no_guard():
    row = plain_row("bank_cards", "routed", 1)
    episode = new_episode(row)
    asyncio.run(episode.seed())
    given = {"last_four": "1234", "birth_date": "1980-01-01", "postcode": "20095"}
    call = {"type": "function_call", "call_id": "c"}
    step = [call | {"name": "verify_identity", "arguments": "{}"}]
    asyncio.run(episode.step(step))
    asyncio.run(episode.step([call | {"name": "verify", "arguments": json.dumps(given)}]))
    assert episode.session.state["verified"] is False
    assert episode.session.calls[-1].refusal == "no_record"


class TestRouting:
    """The four errors are distinct, and a switch brings the node's focus message."""

    def errors(self, *calls):
        episode = new_episode(plain_row("bank_cards", "routed", 1))
        asyncio.run(episode.seed())
        items = [
            {"type": "function_call", "call_id": str(i), "name": name, "arguments": arguments}
            for i, (name, arguments) in enumerate(calls)
        ]
        seen = asyncio.run(episode.step(items))
        outputs = [json.loads(i["output"]) for i in seen.items if "output" in i]
        return [o.get("error") for o in outputs], seen, episode

    def test_the_four_errors(self):
        found, _, episode = self.errors(
            ("block", "{}"),
            ("go_to_disputes", "{}"),
            ("no_such_tool", "{}"),
            ("verify_identity", "{"),
        )
        assert found == [
            "wrong_subagent",
            "unavailable_now",
            "unknown_tool",
            "invalid_arguments",
        ]
        assert episode.errors == 4

    def test_a_switch_brings_tools_and_focus(self):
        found, seen, episode = self.errors(("verify_identity", "{}"))
        assert found == [None] and episode.session.node == "identity_check"
        assert seen.items[-1]["role"] == "system" and "birth" in seen.items[-1]["content"]
        assert [t["name"] for t in seen.tools] == ["verify", "go_to_switchboard"]
