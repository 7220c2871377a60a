"""Customers out of role: typed, asked again where a model can mend it, blamed, masked; none hangs."""

import asyncio

import pytest

from nemo_tau2.simulation.customer import IDLE_REPLIES, SAME_REPLIES, LLMCustomer, ScriptedCustomer
from nemo_tau2.simulation.judge import needless
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.policies import play
from tests.simulation.desk import FIND, WHERE, Patient, Says, episode, message, results, row, step
from tests.simulation.desk import verdict as verdict_of

BUDGET = SpecOptions(max_turns=30)


def desk(customer=None, questions=(WHERE,), **settings):
    made = row("flat", questions=questions)
    return episode("flat", row_=made, customer=customer, options=BUDGET, **settings)


def model(*answers):
    says = Says(*answers)
    return LLMCustomer(row("flat"), {}, says), says


def failed(made, words):
    found = verdict_of(made)
    assert (found["stop_reason"], found["blame"]) == ("user_simulator_failed", "customer")
    assert found["mask_sample"] and found["reward"] == 0.0
    assert words in found["failure"]["message"]


def answer(made):
    """Says all that the parcel's record holds."""
    shown = results(step(made, FIND))[0]
    return step(made, f"It is at {shown['place']}, and {shown['owner']} owns it.")


class TestFirstMessage:
    @pytest.mark.parametrize(
        ("answers", "words"),
        [
            (["Never mind. ###STOP###"], "it stopped at once"),
            (["###STOP###"], "it stopped at once"),
            ([""], "an empty message"),
            ([" \n "], "an empty message"),
            (["<think>What do I say?</think>"], "an empty message"),
            (["y" * 9000], "9000 characters"),
        ],
    )
    def test_asked_three_times_and_then_failed(self, answers, words):
        customer, says = model(*answers)
        made = desk(customer)
        assert made.stop_reason == "user_simulator_failed" and says.asked == 3
        failed(made, words)

    def test_mended_in_time(self):
        customer, says = model("", "###STOP###", "Hello, where is my parcel?")
        assert desk(customer).stop_reason is None and says.asked == 3

    def test_the_same_holds_for_a_customer_that_is_no_model(self):
        class Leaves:
            async def reply(self, said):
                return "###STOP###"

        class Mute:
            async def reply(self, said):
                return "" if said else "Hello."

        failed(desk(Leaves()), "it stopped at once")
        mute = desk(Mute())
        assert step(mute, "How can I help?").done
        failed(mute, "it said nothing")


class TestRestart:
    @pytest.mark.parametrize(
        "again", ["Hello, a parcel!", "hello,  a PARCEL!", "Hello, a parcel! ###STOP###"]
    )
    def test_the_opening_again(self, again):
        customer, says = model("Hello, a parcel!", again)
        made = desk(customer)
        assert step(made, "Which parcel is it?").stop_reason == "user_simulator_failed"
        assert says.asked == 1 + 3
        failed(made, "it restarted the conversation")

    def test_mended_in_time(self):
        customer, _ = model("Hello, a parcel!", "Hello, a parcel!", "P1.")
        seen = step(desk(customer), "Which parcel is it?")
        assert seen.items[0]["content"] == "P1."

    def test_later_on_too(self):
        customer, _ = model("Hello, a parcel!", "P1.", "Hello, a parcel!")
        made = desk(customer)
        step(made, "Which parcel is it?")
        assert step(made, "Whose is it then?").stop_reason == "user_simulator_failed"


class TestNeverStops:
    def test_the_same_answer_to_five_different_messages(self):
        customer, says = model("Hello.", "I want my parcel.")
        made = desk(customer)
        seen = [step(made, f"Message number {n}") for n in range(SAME_REPLIES)]
        assert [s.done for s in seen] == [False] * 4 + [True]
        assert says.asked == 1 + 4 + 3
        failed(made, "the same answer 5 times in a row")

    def test_a_policy_that_repeats_itself_gets_the_same_answer_and_the_blame(self):
        made = desk(model("Hello.", "I want my parcel.")[0])
        for _ in range(29):
            assert not step(made, "Please be patient.").done
        assert step(made, "Please be patient.").stop_reason == "max_turns"
        found = verdict_of(made)
        assert (found["blame"], found["mask_sample"], found["reward"]) == ("policy", False, 0.0)

    def test_a_different_answer_between_them_counts_anew(self):
        same = ["No."] * 4
        made = desk(model("Hello.", *same, "Yes.", *same, "###STOP###")[0])
        seen = [step(made, f"Message number {n}") for n in range(10)]
        assert seen[-1].stop_reason == "user_stop" and not any(s.done for s in seen[:-1])

    def test_going_on_after_everything_was_answered(self):
        """The answer and three questions more: four messages of a customer without a need."""
        made = desk(Patient())
        assert not answer(made).done  # 1
        seen = [step(made, "Is there anything else?") for _ in range(IDLE_REPLIES - 1)]
        assert [s.done for s in seen] == [False, False, True]
        failed(made, "it went on for 4 messages after everything was answered")

    def test_a_call_says_that_there_was_a_need(self):
        made = desk(Patient())
        answer(made)
        for _ in range(5):
            step(made, "Let me look again.")
            step(made, "no_such_tool")
        assert made.stop_reason is None

    def test_with_a_need_left_the_policy_is_to_blame(self):
        made = desk(Patient())
        for _ in range(30):
            step(made, "Goodbye and farewell!")
        found = verdict_of(made)
        assert (found["stop_reason"], found["blame"]) == ("max_turns", "policy")

    def test_nobody_can_tell_whether_a_generic_question_was_answered(self):
        made = desk(Patient(), questions=[{"number": 1, "text": "Are you open?"}])
        for _ in range(30):
            step(made, "Yes, we are.")
        found = verdict_of(made)
        assert (found["stop_reason"], found["blame"]) == ("max_turns", "policy")

    def test_half_an_answer_leaves_a_need(self):
        questions = [WHERE | {"fields": ["place", "owner"]}]
        made = desk(Patient(), questions=questions)
        place = results(step(made, FIND))[0]["place"]
        for _ in range(8):
            assert not step(made, f"It is at {place}.").done

    def test_counted_by_hand(self):
        made = desk(Patient())
        assert needless(made.row.questions, made.transcript) == 0
        answer(made)
        assert needless(made.row.questions, made.transcript) == 1
        assert needless((), made.transcript) == 0


class TestScripted:
    def test_its_patience_ends(self):
        made = desk()
        assert isinstance(made.customer, ScriptedCustomer)
        seen = asyncio.run(made.step(message("One moment.")))
        for _ in range(8):
            assert not seen.done
            seen = asyncio.run(made.step(message("One moment.")))
        assert seen.stop_reason == "user_stop" and verdict_of(made)["blame"] == "policy"

    def test_it_leaves_once_it_is_served(self):
        made = desk()
        assert answer(made).stop_reason == "user_stop"
        assert verdict_of(made)["reward"] == 1.0


@pytest.mark.parametrize("answers", [[""], ["###STOP###"], ["Hello."], ["Hello.", "Go on."]])
def test_none_hangs(answers):
    def talks(made, tools):
        return message(f"Let me see, {len(made.turns)}.")

    made = desk(model(*answers)[0])
    found = asyncio.run(asyncio.wait_for(play(made, talks), 20))
    assert (found["blame"], found["mask_sample"]) == ("customer", True)


def test_a_model_hears_a_bounded_message():
    class Listens(Says):
        async def __call__(self, messages, tools):
            self.heard = messages[-1]["content"]
            return await super().__call__(messages, tools)

    says = Listens("Hello.", "Go on.")
    step(desk(LLMCustomer(row("flat"), {}, says)), "word " * 1_000_000)
    assert len(says.heard) == 4000
