"""Rows that begin in the middle: what was done stays done, and counts for nobody (K4)."""

import asyncio
import copy

import pytest

from nemo_tau2.errors import UserError
from nemo_tau2.simulation.customer import LLMCustomer
from nemo_tau2.simulation.factory import new_episode
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.policies import message
from nemo_tau2.simulation.rows import play
from nemo_tau2.simulation.scenario import parse_row
from tests.koa.conftest import built


def meta(row):
    return row["verifier_metadata"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefixes")
    return [r for part in built(folder, "routed", prefixes="0 1 3") for r in part]


def at(rows, depth):
    return [row for row in rows if meta(row)["task_id"].endswith(f"/{depth}")]


def is_turn(item):
    return item.get("type") == "function_call" or item.get("role") == "assistant"


def test_the_depth_is_the_number_of_policy_turns(rows):
    for depth in (1, 3):
        assert at(rows, depth)
        for row in at(rows, depth):
            assert sum(map(is_turn, meta(row)["prefix"])) == depth


def test_state_node_and_records_are_those_of_the_play(rows):
    for row in at(rows, 3):
        begun = new_episode(row)
        asyncio.run(begun.seed())
        opening = copy.deepcopy(row)
        meta(opening)["prefix"] = []
        played = new_episode(opening)
        asyncio.run(played.seed())
        for item in filter(is_turn, meta(row)["prefix"]):
            asyncio.run(played.step([item]))
        assert begun.session.state == played.session.state
        assert begun.session.node == played.session.node
        assert begun.session.records.fields == played.session.records.fields
        assert begun.tools() == played.tools()


def test_its_turns_have_no_reward_and_no_count(rows):
    episode = new_episode(at(rows, 3)[0])
    asyncio.run(episode.seed())
    asyncio.run(episode.step(message("")))
    found = asyncio.run(episode.verify())
    assert found["num_turns"] == len(found["turn_rewards"]) == 1
    assert found["num_tool_calls"] == 0 and found["reward_info"]["routes"]["switches"] == 0


def test_repeating_its_last_call_is_a_duplicate(tmp_path):
    train, _ = built(tmp_path, "flat", prefixes="1", scenarios=2)
    row = train[0]
    (last,) = [i for i in meta(row)["prefix"] if i.get("type") == "function_call"]
    episode = new_episode(row)
    asyncio.run(episode.seed())
    asyncio.run(episode.step([last | {"call_id": "again"}]))
    asyncio.run(episode.step(message("")))
    found = asyncio.run(episode.verify())
    assert len(found["reward_info"]["duplicates"]) == 1 and found["reward"] == 0.0
    assert found["turn_tiers"] == ["duplicate", "message"] and found["num_tool_calls"] == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"transient_error_rate": 0.9},
        {"max_turns": 1, "max_steps_per_turn": 1, "max_errors": 0},
        {"focus": "change"},
        {"focus_role": "user"},
        {"reset_to_initial_node": False, "delegates_return": False},
        {"flat_guards": True},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_it_stands_under_every_setting_of_the_episode(rows, settings):
    options = SpecOptions(**settings)
    for row in at(rows, 3):
        begun, plain = new_episode(row, options=options), new_episode(row)
        items, made = asyncio.run(begun.seed()).items, asyncio.run(plain.seed()).items
        role = settings.get("focus_role", "system")
        assert items[1:] == [
            i | {"role": role} if i.get("role") == "system" else i for i in made[1:]
        ]
        assert begun.session.state == plain.session.state and begun.options is options
        assert begun.budget.max_turns == settings.get("max_turns", plain.budget.max_turns)
        assert begun.session.transient_rate == settings.get("transient_error_rate", 0.0)


def test_a_prefix_that_the_script_no_longer_gives_is_refused(rows):
    row = copy.deepcopy(at(rows, 3)[0])
    output = next(i for i in meta(row)["prefix"] if i.get("type") == "function_call_output")
    output["output"] = '{"match": false}'
    with pytest.raises(UserError, match=r"prefix item \d+ .* make the rows again"):
        asyncio.run(new_episode(row).seed())


def test_a_model_in_the_customers_role_remembers_it(rows):
    row = at(rows, 3)[0]

    async def complete(messages, tools):
        return {"content": "And now?"}

    customer = LLMCustomer(parse_row(meta(row)), {}, complete)
    episode = new_episode(row, customer=customer)
    asyncio.run(episode.seed())
    spoken = [i["content"] for i in meta(row)["prefix"] if i.get("role") == "user"]
    assert [m["content"] for m in customer._messages if m["role"] == "assistant"] == spoken
    with_same = asyncio.run(customer.reply("Anything else?"))
    assert with_same == "And now?"


def test_every_row_of_a_build_was_solved(rows):
    for row in at(rows, 0):
        if not meta(row)["transfer"]:
            assert asyncio.run(play(row)).verdict["reward"] == 1.0
