"""The rule judge: an answer says a value that a tool showed, unless there is none to say."""

import pytest

from nemo_tau2.rewards.coverage import Evidence
from nemo_tau2.simulation.judge import is_telling, judged
from nemo_tau2.simulation.scenario import Question

ASKED = Question(number=1, text="?", action="Check", fields=("ok", "name"))


def resolved(outputs, said, question=ASKED):
    transcript = [("tool", Evidence("Check", {}, outputs)), ("agent", said)]
    return judged([question], transcript)[1]


@pytest.mark.parametrize(
    ("value", "telling"),
    [
        (True, False),
        (None, False),
        ("", False),
        ([], False),
        ([True], False),
        ({"a": {"b": False}}, False),
        (0, True),
        ("no", True),
        ([True, "x"], True),
        ({"a": {"b": 1}}, True),
    ],
)
def test_a_yes_or_no_can_be_guessed(value, telling):
    assert is_telling(value) is telling


def test_a_boolean_beside_a_name_does_not_answer_for_it():
    assert not resolved({"ok": True, "name": "Ada"}, "All done!")
    assert resolved({"ok": True, "name": "Ada"}, "It is Ada.")


def test_where_there_is_only_a_yes_any_words_will_do():
    assert resolved({"ok": True}, "All done!")


def test_before_the_call_nothing_is_an_answer():
    transcript = [("agent", "It is Ada."), ("tool", Evidence("Check", {}, {"name": "Ada"}))]
    assert not judged([ASKED], transcript)[1]
