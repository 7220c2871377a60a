"""Routed mode on the desk: delegates, budgets, guards, errors, and route metrics counted by hand."""

import pytest

from nemo_tau2.agentscript import LoopConfig, apply_sidecar, compile
from nemo_tau2.simulation.options import SpecOptions, budget_of
from tests.simulation.desk import (
    FIND,
    SCRIPT,
    VERIFY,
    Patient,
    episode,
    names,
    results,
    row,
    step,
    verdict,
)

LOOP = {"max_turns": 20, "max_steps_per_turn": 6, "max_errors": 3}
FRONT = ["identity", "go_to_parcels", "go_to_cellar", "person"]


def desk(sidecar=None, row_=None, **options):
    return episode(sidecar=sidecar, row_=row_, customer=Patient(), options=SpecOptions(**options))


class TestDelegates:
    def test_control_comes_back_to_the_caller_when_the_delegate_has_answered(self):
        made = desk(reset_to_initial_node=False)
        step(made, "go_to_parcels")
        assert made.session.node == "parcels"
        step(made, "go_to_front")
        step(made, "identity")
        step(made, VERIFY)
        assert made.session.node == "identity"  # a call is no answer
        seen = step(made, "You are verified.")
        assert made.session.node == "front" and seen.items[-1]["content"] == "Route the caller."

    def test_without_return_the_delegate_keeps_control(self):
        made = desk({"delegates_return": False}, reset_to_initial_node=False)
        step(made, "identity")
        step(made, "What is your birth date?")
        assert made.session.node == "identity"

    def test_the_option_beats_the_sidecar(self):
        made = desk({"delegates_return": False}, reset_to_initial_node=False, delegates_return=True)
        step(made, "identity")
        step(made, "What is your birth date?")
        assert made.session.node == "front"


class TestReset:
    @pytest.mark.parametrize(("value", "node"), [(True, "front"), (False, "parcels")])
    def test_where_the_next_turn_starts(self, value, node):
        made = desk(reset_to_initial_node=value)
        step(made, "go_to_parcels")
        seen = step(made, "Which parcel is it?")
        assert made.session.node == node
        focus = [item for item in seen.items if item["role"] == "system"]
        assert len(focus) == int(value)  # a node that stays active is not announced again

    def test_the_default_is_the_scripts(self):
        made = desk()
        step(made, "go_to_parcels")
        step(made, "Which parcel is it?")
        assert made.session.node == "front"


class TestBudgets:
    """Options over the sidecar over the defaults 40, 12 and 8."""

    @pytest.mark.parametrize(
        ("sidecar", "options", "expected"),
        [
            ({}, {}, (40, 12, 8)),
            ({"loop": LOOP}, {}, (20, 6, 3)),
            ({"loop": LOOP}, {"max_turns": 5}, (5, 6, 3)),
            ({"loop": {"max_errors": 0}}, {"max_steps_per_turn": 1}, (40, 1, 0)),
            ({"loop": LOOP}, {"max_errors": 0}, (20, 6, 0)),
        ],
    )
    def test_precedence(self, sidecar, options, expected):
        graph = apply_sidecar(compile(SCRIPT), sidecar)
        found = budget_of(graph, SpecOptions(**options))
        assert (found.max_turns, found.max_steps_per_turn, found.max_errors) == expected

    def test_the_script_says_whether_it_resets(self):
        keeps = "    reset_to_initial_node: False\n"
        script = SCRIPT.replace("config:\n", "config:\n    runtime:\n    " + keeps, 1)
        assert compile(SCRIPT).loop == LoopConfig()
        graph = compile(script)
        assert not budget_of(graph, SpecOptions()).reset_to_initial_node
        assert budget_of(graph, SpecOptions(reset_to_initial_node=True)).reset_to_initial_node
        over = apply_sidecar(graph, {"loop": {"reset_to_initial_node": True}})
        assert budget_of(over, SpecOptions()).reset_to_initial_node

    def test_the_last_permitted_turn_ends_the_episode(self):
        made = desk(max_turns=3)
        assert not step(made, "go_to_parcels").done and not step(made, FIND).done
        seen = step(made, "It is on the way.")
        assert (seen.done, seen.stop_reason, seen.items) == (True, "max_turns", [])

    def test_too_many_calls_before_a_word(self):
        made = desk(max_steps_per_turn=2)
        assert not step(made, "go_to_parcels").done
        assert step(made, FIND).stop_reason == "max_turns"

    def test_a_word_in_the_last_permitted_step_reaches_the_customer(self):
        made = desk(max_steps_per_turn=2)
        for _ in range(3):
            assert not step(made, "go_to_parcels").done
            seen = step(made, "One moment, please.")
            assert not seen.done and seen.items[0]["content"] == "Please go on."

    def test_one_error_too_many(self):
        made = desk(max_errors=1)
        assert not step(made, "nothing").done
        seen = step(made, "nothing_else")
        assert seen.stop_reason == "max_errors" and verdict(made)["blame"] == "policy"


class TestGuardsAndEffects:
    def test_guards_are_read_again_at_each_step(self):
        made = desk()
        assert names(made) == FRONT
        step(made, "identity")
        step(made, VERIFY)
        step(made, "You are verified.")
        assert names(made) == [
            "identity",
            "go_to_parcels",
            "go_to_refunds",
            "go_to_cellar",
            "person",
        ]

    def test_and_between_two_calls_of_one_generation(self):
        made = desk()
        seen = step(made, "identity", VERIFY)
        assert results(seen) == [{"ok": True}, {"match": True}]
        assert made.session.state["verified"] is True

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({"birth_date": "1999-09-09"}, "no_record"),
            ({"birth_date": 7}, "invalid_arguments"),
            ({}, "invalid_arguments"),
            ("{", "invalid_arguments"),
        ],
    )
    def test_a_call_that_fails_sets_nothing(self, arguments, error):
        made = desk()
        seen = step(made, "identity", ("verify", arguments))
        assert results(seen)[1]["error"] == error
        assert made.session.state["verified"] is False and "go_to_refunds" not in names(made)

    def test_nor_does_one_that_is_temporarily_unavailable(self):
        made = desk(transient_error_rate=0.999)
        seen = step(made, "identity", VERIFY)
        assert results(seen)[1]["error"] == "temporarily_unavailable"
        assert made.session.state["verified"] is False
        assert results(step(made, VERIFY)) == [{"match": True}]  # it fails once
        assert made.session.state["verified"] is True


class TestErrors:
    """Four errors, all distinct, none a success."""

    CALLS = (
        ("find", "wrong_subagent", "wrong_subagent"),
        ("go_to_refunds", "unavailable_now", "error"),
        ("no_such_tool", "unknown_tool", "error"),
        (("identity", "["), "invalid_arguments", "error"),
    )

    @pytest.mark.parametrize(("call", "error", "tier"), CALLS)
    def test_each_alone(self, call, error, tier):
        made = desk(reward="floored_gate")
        assert results(step(made, call))[0]["error"] == error
        found = verdict(made)
        assert found["call_tiers"] == [[tier]] and found["num_tool_errors"] == 1
        assert found["reward"] == 0.0 and found["reward_info"]["coverage"] == 0.0
        assert made.session.node == "front" and made.switches == []

    def test_all_together(self):
        made = desk()
        seen = step(made, *(call for call, _, _ in self.CALLS))
        assert [r["error"] for r in results(seen)] == [error for _, error, _ in self.CALLS]
        assert verdict(made)["num_tool_errors"] == 4

    @pytest.mark.parametrize("told", [True, False])
    def test_whether_the_right_node_is_named(self, told):
        made = desk(name_the_right_subagent=told)
        assert ("parcels" in results(step(made, "find"))[0]["message"]) is told


def routes(made):
    return verdict(made)["reward_info"]["routes"]


class TestRouteMetrics:
    def test_the_straight_way(self):
        made = desk()
        step(made, "go_to_parcels")
        step(made, FIND)
        assert routes(made) == {
            "first_route_correct": True,
            "wrong_subagent_rate": 0.0,
            "redundant_switches": 0,
            "switches": 1,
            "dead_ends": 0,
            "escalation_wanted": False,
            "escalation_unwanted": False,
        }

    def test_a_detour(self):
        """Five calls, two of them in the wrong node; cellar has no way out until verified."""
        made = desk()
        for call in ("go_to_cellar", "find", FIND):
            step(made, call)
        step(made, "Which parcel is it?")  # the only way back: the entry after the customer
        step(made, "go_to_parcels")
        step(made, FIND)
        found = routes(made)
        assert found["first_route_correct"] is False
        assert found["wrong_subagent_rate"] == 2 / 5
        assert found["switches"] == 2
        assert found["dead_ends"] == 3  # before each of the three generations in the cellar

    def test_a_switch_out_of_a_node_in_which_nothing_was_done_is_redundant(self):
        made = desk()
        step(made, "go_to_parcels", "go_to_front", "go_to_parcels", FIND, "go_to_front")
        step(made, "go_to_parcels", "go_to_front")
        # parcels was left three times, and only the second time after something was done there;
        # leaving the entry is never redundant.
        assert routes(made)["redundant_switches"] == 2
        assert routes(made)["switches"] == 6

    def test_the_first_route_is_judged_where_the_right_one_was_on_offer(self):
        """Where parcels open only after the identity check, going there first is no wrong route."""
        needs = {"number": 1, "text": "Am I verified?", "action": "Verify_Caller"}
        assert routes(self._played(row(questions=[needs]), "identity"))["first_route_correct"]
        assert not routes(self._played(row(), "identity"))["first_route_correct"]
        script = SCRIPT.replace(
            'description: "Parcels"\n            refunds',
            'description: "Parcels"\n                available when @variables.verified\n'
            "            refunds",
            1,
        )
        made = episode(script=script, customer=Patient())
        assert "go_to_parcels" not in names(made)
        step(made, "identity", VERIFY)
        step(made, "You are verified.")
        step(made, "go_to_parcels")
        assert routes(made)["first_route_correct"] is True

    def test_a_refused_route_and_none_at_all_are_not_judged(self):
        assert routes(self._played(row(), "go_to_refunds"))["first_route_correct"] is None
        assert routes(self._played(row(questions=[]), "identity"))["first_route_correct"] is None

    def test_asking_for_the_tools_changes_nothing(self):
        made = desk()
        step(made, "go_to_cellar")
        for _ in range(5):
            assert made.tools() == []
        assert routes(made)["dead_ends"] == 1

    @pytest.mark.parametrize(
        ("belongs", "wanted", "unwanted", "reward"),
        [(True, True, False, 1.0), (False, False, True, 0.0), (None, False, False, 0.0)],
    )
    def test_escalations(self, belongs, wanted, unwanted, reward):
        made = self._played(row(transfer=belongs), "person")
        assert made.stop_reason == "transfer"
        found = routes(made)
        assert (found["escalation_wanted"], found["escalation_unwanted"]) == (wanted, unwanted)
        assert verdict(made)["reward"] == reward

    def _played(self, row_, *calls):
        made = desk(row_=row_)
        step(made, *calls)
        return made
