"""The emulated world: its values make the script's branches reachable, and its records must be named."""

import asyncio

import pytest

from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.generations import call
from nemo_tau2.simulation.records import choices_of, is_identifier, sample
from nemo_tau2.simulation.scripts import load_script

SCRIPT = """
config:
    agent_name: "World"
variables:
    age: mutable number = 0
    credit: mutable number = 0
    channel: linked string
        source: @MessagingSession.Channel
    offer_id: mutable string = ""
    booked: mutable string = ""
start_agent desk:
    description: "The desk"
    actions:
        Get_Age:
            inputs:
                person_id: string
                    is_required: True
            outputs:
                years: number
                points: integer
            target: "flow://Get_Age"
        Book:
            inputs:
                offer_id: string
                    is_required: True
                coupon_code: string
                    is_required: False
            outputs:
                booking: string
            target: "flow://Book"
    reasoning:
        instructions: ->
            | Help.
        actions:
            age: @actions.Get_Age
                with person_id = ...
                set @variables.age = @outputs.years
                set @variables.credit = @outputs.points
            book: @actions.Book
                with offer_id = @variables.offer_id
                with coupon_code = ...
                set @variables.booked = @outputs.booking
            old: @utils.transition to @subagent.back
                available when @variables.age > 30 and @variables.credit >= 5
            post: @utils.transition to @subagent.back
                available when @variables.channel == "post"
subagent back:
    description: "The back"
    reasoning:
        instructions: ->
            | Help.
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("world") / "world.agent"
    path.write_text(SCRIPT, encoding="utf-8")
    return str(path)


def opened(script, seed=0):
    episode = new_episode(plain_row(script, "flat", seed))
    asyncio.run(episode.seed())
    return episode


class TestValues:
    def test_numbers_lie_on_either_side_of_what_they_are_compared_with(self, script):
        choices = choices_of(load_script(script))
        assert choices["years"] == choices["age"] == (30, 31)  # > 30
        assert choices["points"] == choices["credit"] == (4, 5)  # >= 5

    @pytest.mark.parametrize(("kind", "values"), [("number", {30, 31}), ("integer", {30, 31})])
    def test_both_sides_occur(self, kind, values):
        schema = {"type": kind}
        assert {sample(schema, "years", str(n), (30, 31, "old")) for n in range(20)} == values

    def test_strings_take_strings_only(self):
        found = {sample({"type": "string"}, "kind", str(n), (30, "old")) for n in range(20)}
        assert found == {"old"}

    def test_a_linked_variable_has_a_value_that_guards_ask_for(self, script):
        assert opened(script).session.state["channel"] == "post"


class TestNames:
    @pytest.mark.parametrize("name", ["email_address", "emailAddress", "address", "email"])
    def test_addresses_name_somebody(self, name):
        assert is_identifier(name)

    @pytest.mark.parametrize("name", ["addressed", "comment", "new_date"])
    def test_other_words_do_not(self, name):
        assert not is_identifier(name)

    def test_an_empty_name_that_is_required_names_no_record(self, script):
        episode = opened(script)
        coupon = episode.session.facts["coupon_code"]
        asyncio.run(episode.step(call("book", {"coupon_code": coupon})))
        assert episode.session.calls[-1].refusal == "no_record"
        assert episode.session.state["booked"] == ""
