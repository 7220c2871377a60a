"""How a sandbox's state is compared: options, single rules replaced by the row, bad ones refused."""

import json

import pytest
from pydantic import ValidationError

from nemo_tau2.errors import UserError
from nemo_tau2.rewards.state_equivalence import FieldRules, differences
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.scenario import parse_scenario
from tests.simulation.desk import episode, row, step, verdict

EXPECTED = {"written": {"parcel_id=p1": {"parcel_id": "P1", "place": "Oslo", "moved": True}}}


def moved(place, options=None, **metadata):
    """Reward and differences after the parcel was sent to a place; Oslo was wanted."""
    data = row("sandbox", expected_state=EXPECTED, **metadata)
    made = episode("sandbox", row_=data, options=SpecOptions.model_validate(options or {}))
    step(made, ("move", {"parcel_id": "P1", "place": place}))
    step(made, "It is done.")
    found = verdict(made)
    return found["reward"], found["reward_info"]["state_diff"]


WHERE_IT_DIFFERS = ["written.parcel_id=p1.place"]


@pytest.mark.parametrize(
    ("place", "options", "rules", "reward"),
    [
        ("Oslo", {}, None, 1.0),
        ("OSLO", {}, None, 1.0),
        ("Rome", {}, None, 0.0),
        ("OSLO", {"state": {"case_sensitive": ["place"]}}, None, 0.0),
        ("Rome", {"state": {"ignore": ["place"]}}, None, 1.0),
        ("Rome", {"state": {"ignore": ["written.parcel_id=p1.place"]}}, None, 1.0),
        ("OSLO", {}, {"case_sensitive": ["place"]}, 0.0),
        ("Rome", {}, {"ignore": ["place"]}, 1.0),
        # the row replaces the rule that it names, and no other
        ("Rome", {"state": {"ignore": ["place"]}}, {"ignore": []}, 0.0),
        ("OSLO", {"state": {"case_sensitive": ["place"]}}, {"ignore": []}, 0.0),
        ("Rome", {"state": {"ignore": ["place"]}}, {"tolerance": 0.5}, 1.0),
    ],
)
def test_options_and_row(place, options, rules, reward):
    more = {"state_rules": rules} if rules is not None else {}
    assert moved(place, options, **more) == (reward, [] if reward else WHERE_IT_DIFFERS)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"ignored": ["place"]}, "unknown key 'ignored': did you mean 'ignore'?"),
        ({"casing": []}, "the keys are ignore, case_sensitive, unordered, tolerance"),
        ({"ignore": "place"}, "should be a valid tuple"),
        ({"tolerance": -1}, "greater than or equal to 0"),
        ({"tolerance": float("nan")}, "finite"),
    ],
)
class TestBadRules:
    def test_in_a_row(self, rules, words):
        with pytest.raises(UserError, match="verifier_metadata: state_rules") as caught:
            row("sandbox", state_rules=rules)
        assert words in str(caught.value) and "\n" not in str(caught.value)

    def test_in_a_scenario(self, rules, words):
        with pytest.raises(UserError) as caught:
            parse_scenario({"scenario_id": "a", "state_rules": rules}, "s.yaml: scenario 1")
        assert words in str(caught.value)

    def test_in_the_options(self, rules, words):
        with pytest.raises(ValidationError) as caught:
            SpecOptions.model_validate({"state": rules})
        assert words in str(caught.value)


def test_an_unknown_option_is_refused_with_the_fix():
    with pytest.raises(ValidationError, match="'max_turn': did you mean 'max_turns'"):
        SpecOptions.model_validate({"max_turn": 3})


class TestComparison:
    def test_unordered_lists_do_not_take_true_for_one(self):
        rules = FieldRules(unordered=["x"])
        assert differences({"x": [1, True]}, {"x": [True, 1]}, rules) == []
        assert differences({"x": [1, 1]}, {"x": [True, 1]}, rules) == ["x"]
        assert differences({"x": [1, 2, 2]}, {"x": [2, 1, 1]}, rules) == ["x"]

    def test_whole_numbers_beyond_what_a_float_holds(self):
        assert differences({"x": 2**60}, {"x": 2**60 + 1}) == ["x"]
        assert differences({"x": 10**400}, {"x": 1.0}) == ["x"]

    def test_tolerance(self):
        rules = FieldRules(tolerance=0.01)
        assert differences({"x": 1.0}, {"x": 1.005}, rules) == []
        assert differences({"x": 1.0}, {"x": 1.1}, rules) == ["x"]


def test_a_policys_huge_number_is_no_masked_row():
    made = episode("sandbox", row_=row("sandbox", expected_state=EXPECTED))
    step(made, ("move", json.dumps({"parcel_id": "P1", "place": 10**400})))
    found = verdict(made)
    assert (found["reward"], found["mask_sample"]) == (0.0, False)
    assert found["call_tiers"] == [["error"]]
