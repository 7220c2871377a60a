"""The search behind the oracle, on a script small enough to count in one's head."""

import asyncio
import json

import pytest

from nemo_tau2.simulation.abstraction import asked, facts, literals_of
from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.generations import call
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.planning import Exploration, Move, after, search, tried
from nemo_tau2.simulation.plans import plan
from nemo_tau2.simulation.policies import Oracle, play
from nemo_tau2.simulation.reachability import reachability
from nemo_tau2.simulation.scenario import Mode
from nemo_tau2.simulation.scripts import load_script

SCRIPT = """
config:
    agent_name: "Small"
variables:
    level: mutable number = 0
    colour: mutable string = ""
    sealed: mutable boolean = False
    channel: linked string
        source: @MessagingSession.Channel
start_agent door:
    description: "The way in"
    reasoning:
        instructions: ->
            | Go on.
        actions:
            inside: @utils.transition to @subagent.room
                available when @variables.colour == "red"
            paint: @utils.setVariables
                with colour = ...
subagent room:
    description: "Where things are read"
    actions:
        Read_Book:
            inputs:
                book_id: string
                    is_required: True
            outputs:
                title: string
                pages: number
            target: "flow://Read_Book"
        Read_Seal:
            inputs:
                book_id: string
                    is_required: True
            outputs:
                motto: string
            target: "flow://Read_Seal"
        Read_Channel:
            outputs:
                sender: string
            target: "flow://Read_Channel"
    reasoning:
        instructions: ->
            | Read.
        actions:
            read: @actions.Read_Book
                with book_id = ...
                set @variables.level = @outputs.pages
            seal: @actions.Read_Seal
                available when @variables.sealed
                with book_id = ...
            sender: @actions.Read_Channel
                available when @variables.channel == "post" and @variables.level > 700
            back: @utils.transition to @subagent.door
subagent cellar:
    description: "No way leads here"
    actions:
        Read_Map:
            outputs:
                place: string
            target: "flow://Read_Map"
    reasoning:
        instructions: ->
            | Read.
        actions:
            map: @actions.Read_Map
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "small.agent"
    path.write_text(SCRIPT, encoding="utf-8")
    return str(path)


def opened(script, mode="routed", seed=0, **settings):
    episode = new_episode(plain_row(script, mode, seed), **settings)
    asyncio.run(episode.seed())
    return episode


class TestSearch:
    def test_the_way_is_the_shortest(self, script):
        found = search(opened(script), lambda e: e.session.state["level"] > 0)
        names = [move.name for move in found.moves]
        assert names == ["paint", "go_to_room", "read"] or names == ["paint", "inside", "read"]
        assert found.moves[0].arguments == {"colour": "red"}  # the guard's own word

    def test_there_is_none_to_what_nothing_opens(self, script):
        assert search(opened(script), lambda e: e.session.state["sealed"]) is None

    def test_looking_ahead_changes_nothing(self, script):
        episode = opened(script)
        before = (facts(episode), dict(episode.session.state), [*episode.transcript])
        for _ in Exploration(episode):
            pass
        assert (facts(episode), episode.session.state, episode.transcript) == before
        assert (
            not episode.session.calls and not episode.turns and not episode.session.records.fields
        )

    def test_a_limit_is_owned_up_to(self, script):
        whole, part = Exploration(opened(script)), Exploration(opened(script), limit=2)
        assert len(list(part)) < len(list(whole))
        assert part.stopped and not whole.stopped

    def test_refused_and_repeated_calls_are_no_way(self, script):
        episode = opened(script)
        refused = Move("paint", {"shade": "red"})
        assert tried(episode, refused).session.calls[-1].refusal == "invalid_arguments"
        assert after(episode, refused) is None
        painted = after(episode, Move("paint", {"colour": "blue"}))
        assert painted is not None and after(painted, Move("paint", {"colour": "blue"})) is None


class TestFacts:
    def test_literals_are_those_of_conditions(self, script):
        assert literals_of(load_script(script)) == {
            "colour": ("red",),
            "channel": ("post",),
            "level": (700,),
        }

    def test_values_worth_trying_are_what_conditions_ask_for(self, script):
        graph = load_script(script)
        assert asked(graph, graph.nodes["door"].tools["paint"]) == {"colour": ("red",)}
        assert "read" in graph.nodes["room"].tools
        assert asked(graph, graph.nodes["room"].tools["read"]) == {}

    def test_values_that_no_condition_tells_apart_are_one_fact(self, script):
        episodes = [opened(script) for _ in range(4)]
        for episode, level in zip(episodes, (100, 200, 700, 701), strict=True):
            episode.session.state["level"] = level
        first, second, third, fourth = map(facts, episodes)
        assert first == second and len({first, third, fourth}) == 3


class TestOracle:
    def test_every_action_of_the_first_world_gets_its_question_answered(self, script):
        for mode in ("flat", "routed"):
            rewards = set()
            for seed in range(6):
                row = plain_row(script, mode, seed)
                kept = [
                    q for q in row["verifier_metadata"]["questions"] if q["action"] == "Read_Book"
                ]
                row["verifier_metadata"]["questions"] = kept
                rewards.add(asyncio.run(play(new_episode(row), Oracle()))["reward"])
            assert rewards == {1.0}

    def test_it_plans_again_where_the_world_differs(self, script):
        row = plain_row(script, "routed", 0)
        row["verifier_metadata"]["questions"] = row["verifier_metadata"]["questions"][:1]
        episode, oracle = new_episode(row), Oracle()
        asyncio.run(episode.seed())
        assert json.loads(oracle(episode, [])[0]["arguments"]) == {"colour": "red"}
        asyncio.run(episode.step(call("paint", {"colour": "blue"})))  # not what it said
        while episode.stop_reason is None:
            asyncio.run(episode.step(oracle(episode, episode.tools())))
        assert asyncio.run(episode.verify())["reward"] == 1.0

    def test_it_tries_again_after_a_transient_error(self, script):
        row = plain_row(script, "routed", 0)
        row["verifier_metadata"]["questions"] = row["verifier_metadata"]["questions"][:1]
        options = SpecOptions(transient_error_rate=0.99)
        episode = new_episode(row, options=options)
        verdict = asyncio.run(play(episode, Oracle()))
        assert "temporarily_unavailable" in [c.refusal for c in episode.session.calls]
        assert verdict["reward"] == 1.0 and verdict["reward_info"]["duplicates"] == []

    def test_a_last_call_that_fails_is_made_again(self, script):
        row = plain_row(script, "flat", 0)
        row["verifier_metadata"]["questions"] = row["verifier_metadata"]["questions"][:1]
        episode, oracle = new_episode(row), Oracle()
        asyncio.run(episode.seed())
        planned = oracle(episode, [])[0]
        assert planned["name"] == "read"
        asyncio.run(episode.step(call("read", {})))  # something goes wrong instead
        assert oracle(episode, [])[0] == planned

    def test_nothing_asked_nothing_planned(self, script):
        row = plain_row(script, "routed", 0)
        row["verifier_metadata"]["questions"] = []
        episode = new_episode(row)
        asyncio.run(episode.seed())
        assert [step.move for step in plan(episode)] == [None]


class TestReasons:
    def test_by_hand(self, script):
        found = reachability(load_script(script), Mode.ROUTED)
        assert found.exhaustive and found.reached == {"Read_Book", "Read_Channel"}
        assert found.reasons == {
            "Read_Seal": "`@variables.sealed` never holds: sealed is set by nothing (it stays False)",
            "Read_Map": "no edge leads to `cellar`",
        }

    def test_without_guards_all_is_in_reach(self, script):
        found = reachability(load_script(script), Mode.FLAT)
        assert found.reached == {"Read_Book", "Read_Seal", "Read_Channel", "Read_Map"}
        assert found.reasons == {}
