"""What counts as an identifying value, and what a person can know: the user's side of blame."""

import asyncio
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.evaluation.blame import blame, findings
from nemo_tau2.evaluation.facts import Known, facts
from nemo_tau2.evaluation.patterns import patterns
from nemo_tau2.evaluation.transcript import OWN, policy_calls
from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.policies import play, silent
from tests.evaluation.test_planted import DID, READ, WANTED, call, gold, row, said


def kinds(text):
    return {(fact.kind, fact.value) for fact in facts(text)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("My order is #W2378156.", {("order_id", "W2378156")}),
        ("reservation EHGLP3 on HAT023", {("reservation_id", "EHGLP3"), ("flight", "HAT023")}),
        ("emma_kim_9957, pay with credit_card_2408938",
         {("user_id", "emma_kim_9957"), ("payment_id", "credit_card_2408938")}),
        ("It is (555) 123-2002 or 555.123.2003",
         {("phone", "(555) 123-2002"), ("phone", "555.123.2003")}),
        ("zip code 19122, mail me at a.b@c.org", {("zip", "19122"), ("email", "a.b@c.org")}),
        ("on May 20th, 2024, or the 3rd of June, or 2024-07-01, or 08/09/2024",
         {("date", (5, 20)), ("date", (6, 3)), ("date", (7, 1)), ("date", (8, 9))}),
        ("$1,250.50 or $ 5", {("amount", 1250.5), ("amount", 5.0)}),
        ("I'm Ann Lee, at 760 Elm Avenue", {("name", "Ann Lee"), ("address", "760 Elm")}),
        ("item 1234567890.", {("item_id", "1234567890")}),
        ("ECONOMY class, 3 bags, at 10:30, I am fine, call 911", set()),
    ],
)  # fmt: skip
def test_values_are_found_and_nothing_else(text, wanted):
    assert kinds(text) == wanted


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("You are in 19122.", "zip code 19122"),
        ("Fly on 2024-05-20.", "May 20"),
        ("Fly on May 20 and return two days later.", "May 22"),
        ("It costs 100 and 25.5 more.", "$125.50 in all, so $74.50 less, or $200 for two"),
        ("phone number 555-123-2002", "555 123 2002"),
        ("user sofia_li_9219 in the table", "I'm Sofia Li"),
        ("ORDER #w2378156", "W2378156"),
        ("You live at 760 elm Avenue", "760 Elm Ave"),
    ],
)
def test_what_a_person_can_know_or_work_out_is_allowed(known, said):
    assert facts(said) and all(Known(known).allows(fact) for fact in facts(said))


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("Fly on May 20.", "May 22"),
        ("Fly on May 20, two days later.", "June 20"),
        ("It costs 100 and 25.5 more.", "$131"),
        ("order #W2378156", "#W2378157"),
        ("555-123-2002", "555-123-2003"),
    ],
)
def test_what_nobody_said_is_not(known, said):
    assert not any(Known(known).allows(fact) for fact in facts(said))


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_text_can_be_read_and_knows_itself(text, more):
    known = Known(more)
    for fact in facts(text):
        known.allows(fact)  # asked before it can know
    known.add(text)
    assert all(known.allows(fact) for fact in facts(text))


@pytest.mark.parametrize("piece", ["a.", "a_", "1,", "A1", "$9", "a@", "zip ", "May 1 ", "9 Elm "])
def test_hostile_length_is_read_in_time(piece):
    started = time.monotonic()
    known = Known(piece * 200_000)
    for value in ("June 30", "$123456.5", "555-123-2002", "I'm Ann Lee", "W2378156"):
        known.allows(facts(value)[0])
    facts(piece * 200_000)
    assert time.monotonic() - started < 5


TOLD = {
    "known_info": "You are Ann Lee, ann_lee_1234.",
    "reason_for_call": "You want to book A1B2C3.",
}
FAKE = call("read", {"id": "Z9Y8X7"}, "error")


def talk(*items, told=TOLD, wanted=WANTED):
    made = row(*items, wanted=wanted)
    return made | {"task": made["task"] | {"scenario": told}}


def verdict(made):
    found = blame(made)
    return found.kind, found.about


class TestTheLink:
    """A false value is the user's fault only where the policy acted on it, and on nothing else wrong."""

    def test_it_is_the_users_where_the_policy_used_it(self):
        made = talk(said("user", "It is reservation Z9Y8X7."), FAKE)
        assert verdict(made) == ("user_simulator", "fabricated_facts")

    def test_not_where_the_policy_never_used_it(self):
        made = talk(said("user", "It is reservation Z9Y8X7."), READ)
        assert verdict(made)[0] == "policy"

    def test_not_where_the_policy_named_it_first(self):
        made = talk(said("assistant", "Is it Z9Y8X7?"), said("user", "Yes, Z9Y8X7."), FAKE)
        assert verdict(made)[0] == "policy"

    def test_not_where_a_tool_had_shown_it(self):
        result = {"type": "function_call_output", "call_id": "c", "output": '["Z9Y8X7"]'}
        made = talk(READ, result, said("user", "The one called Z9Y8X7."), FAKE)
        assert verdict(made)[0] == "policy"

    def test_not_where_the_policy_made_another_mistake_as_well(self):
        other = call("cancel", {"id": "Q"})
        made = talk(said("user", "It is reservation Z9Y8X7."), FAKE, *DID, other)
        assert verdict(made) == ("policy", "over_action")

    def test_not_without_the_task(self):
        made = row(said("user", "It is reservation Z9Y8X7."), FAKE)
        assert verdict(made)[0] == "policy"

    def test_a_wrong_parameter_with_the_false_value_is_the_users(self):
        wanted = [gold("book", {"id": "A1B2C3", "seat": "1C"})]
        wrong = call("book", {"id": "Z9Y8X7", "seat": "1C"}, "soft_match")
        made = talk(said("user", "Book Z9Y8X7."), wrong, wanted=wanted)
        assert verdict(made) == ("user_simulator", "fabricated_facts")
        assert "Z9Y8X7" in blame(made).evidence

    def test_another_id_of_their_own_contradicts_the_task(self):
        lookup = call("read", {"id": "bob_ray_5555"}, "read_only")
        made = talk(said("user", "I am Ann Lee, my id is bob_ray_5555."), lookup)
        assert verdict(made) == ("user_simulator", "contradicted_instructions")
        assert "ann_lee_1234" in blame(made).evidence

    def test_knowing_what_they_do_not_know_contradicts_the_task(self):
        told = TOLD | {"unknown_info": "You do not remember your email address."}
        lookup = call("read", {"id": "ann@example.com"}, "error")
        made = talk(said("user", "My email is ann@example.com."), lookup, told=told)
        assert verdict(made) == ("user_simulator", "contradicted_instructions")
        assert "do not remember your email" in blame(made).evidence


class TestSpecificationRows:
    """Rows of environments made from specifications say themselves whose they are."""

    @pytest.mark.parametrize(
        ("stored", "party"), [("customer", "user_simulator"), ("emulator", "tool_emulator"),
                              ("judge", "judge"), ("harness", "harness")]
    )  # fmt: skip
    def test_their_own_word_is_kept(self, stored, party):
        planned = plain_row("bank_cards", "routed", 1)
        scored = planned | asyncio.run(play(new_episode(planned), silent))
        assert scored["blame"] == "policy" and blame(scored).kind == "policy"
        for named in (
            {"blame": stored},
            {"reward_info": scored["reward_info"] | {"blame": stored}},
        ):
            found = blame(scored | named)
            assert (found.kind, found.by) == (party, OWN) and stored in found.evidence

    def test_their_customers_facts_are_never_called_fabricated(self):
        """Facts drawn from a specification's records are not in the row."""
        planned = plain_row("bank_cards", "routed", 1)
        scored = planned | asyncio.run(play(new_episode(planned), silent))
        spoken = [
            said("user", "It is order #W1234567."),
            {
                "type": "function_call",
                "call_id": "c",
                "name": "x",
                "arguments": '{"id": "#W1234567"}',
            },
        ]
        scored["response"] = {"output": spoken}
        scored["responses_create_params"] = {"tools": [{"name": "x"}]}
        assert findings(json.loads(json.dumps(scored)))[1].kind == "policy"


def test_a_failed_call_gives_way_to_the_same_call_that_ran():
    failed, ran = call("book", {"id": "A", "seat": "1C"}, "error"), DID[0]
    assert patterns(row(READ, failed, ran, DID[1])) == []


def test_a_tool_that_the_environment_brought_is_no_hallucination():
    made = row(READ, call("fly", {}, "read_only"), *DID)
    assert "hallucinated_tool" in {f.kind for f in patterns(made)}
    made |= {"tool_changes": [{"turn": 1, "tools": [{"name": "fly"}]}]}
    assert patterns(made) == []


def test_what_a_prefix_holds_is_not_the_policys_doing():
    """Three equal calls of a tool that is not there, and the welcome thrice: all before its first turn."""
    ghost = [
        item for n in range(3) for item in (said("assistant", "Hm."), call("ghost", {"n": 1}, ""))
    ]
    made = row(*ghost, said("user", "And A?"), READ, *DID)
    assert {f.kind for f in patterns(made)} == {"hallucinated_tool", "loop"}
    made |= {
        "turn_output_indices": [8, *range(9, 9 + len(DID))],
        "call_tiers": [["gold_exact"]] * 3,
    }
    assert patterns(made) == []
    assert [(c.name, c.number) for c in policy_calls(made)] == [
        ("read", 0),
        ("book", 1),
        ("cancel", 2),
    ]


def test_gold_may_repeat_itself_and_so_may_the_policy():
    reads = [gold("read", {"id": "A"})] * 3
    assert patterns(row(READ, READ, READ, *DID, wanted=[*reads, *WANTED[1:]])) == []
    found = patterns(row(READ, READ, READ, READ, *DID, wanted=[*reads, *WANTED[1:]]))
    assert [f.kind for f in found] == ["loop"]


def test_an_empty_last_turn_is_a_stall():
    made = row(READ, said("assistant", ""), stop="agent_stop")
    assert "stall" in {f.kind for f in patterns(made)}
