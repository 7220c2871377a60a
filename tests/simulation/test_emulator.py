"""The world stays one world: what was shown stays, what was written is read, whoever emulates."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.agentscript.graph import Action, Effect, EffectEvidence, Parameter, TypeRef
from nemo_tau2.outcomes import InfrastructureFailure
from nemo_tau2.simulation.emulator import LLMEmulator, ScriptedEmulator
from nemo_tau2.simulation.records import Records
from tests.simulation.desk import FIND, Patient, Says, episode, results, step, verdict

TEXT = TypeRef("string")
MOVE = ("move", {"parcel_id": "P1", "place": "Oslo"})
FOUND = '{"place": "Rome", "owner": "Ada"}'


def action(name, inputs, outputs, effect=Effect.READ):
    made = {
        key: tuple(Parameter(n, TEXT) for n in names.split())
        for key, names in (("inputs", inputs), ("outputs", outputs))
    }
    return Action(name, **made, effect=EffectEvidence(effect, "the test says so"))


LOOK = action("Look", "parcel_id", "place owner")
CARRY = action("Carry", "parcel_id place", "receipt", Effect.WRITE)
GIVE = action("Give", "parcel_id owner", "receipt", Effect.WRITE)


def do(records, what, **arguments):
    outputs = asyncio.run(ScriptedEmulator()(what, arguments, records))
    records.remember(what, arguments, outputs)
    return outputs


class TestDeterministic:
    @given(
        st.integers(0, 5),
        st.lists(
            st.tuples(st.sampled_from(["look", "carry", "give"]), st.sampled_from("PQR"), st.text())
        ),
    )
    def test_any_sequence_is_that_of_one_dictionary_per_record(self, seed, steps):
        records, world = Records(seed), {}
        for kind, parcel, value in steps:
            known = world.setdefault(parcel, {})
            if kind == "carry":
                do(records, CARRY, parcel_id=parcel, place=value)
                known["place"] = value
            elif kind == "give":
                do(records, GIVE, parcel_id=parcel, owner=value)
                known["owner"] = value
            else:
                shown = do(records, LOOK, parcel_id=parcel)
                assert known.items() <= shown.items()
                known |= shown

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["look", "order", "carry", "reroute"]),
                st.sampled_from("PQ"),
                st.sampled_from("abc"),
            )
        )
    )
    def test_a_record_with_two_names_has_one_place(self, steps):
        """Looking at a parcel names its order; from then on either name will do."""
        look = action("Look", "parcel_id", "order_id place")
        order = action("Order", "order_id", "place")
        reroute = action("Reroute", "order_id place", "receipt", Effect.WRITE)
        records, place, orders = Records(1), {}, {}
        for kind, parcel, value in steps:
            if kind == "look":
                shown = do(records, look, parcel_id=parcel)
                assert orders.setdefault(parcel, shown["order_id"]) == shown["order_id"]
            elif kind == "carry":
                do(records, CARRY, parcel_id=parcel, place=value)
                place[parcel] = value
                continue
            elif parcel not in orders:
                continue
            elif kind == "order":
                shown = do(records, order, order_id=orders[parcel])
            else:
                do(records, reroute, order_id=orders[parcel], place=value)
                place[parcel] = value
                continue
            assert place.setdefault(parcel, shown["place"]) == shown["place"]

    def test_two_records_that_name_a_third_leave_it_as_it_was_shown(self):
        look = action("Look", "parcel_id", "owner_id place")
        person = action("Person", "owner_id", "place")
        records = Records(1)
        records.remember(look, {"parcel_id": "P"}, {"owner_id": "A", "place": "Rome"})
        assert do(records, person, owner_id="A") == {"place": "Rome"}
        records.remember(look, {"parcel_id": "Q"}, {"owner_id": "A", "place": "Oslo"})
        assert do(records, person, owner_id="A") == {"place": "Rome"}
        assert do(records, look, parcel_id="Q")["place"] == "Oslo"

    def test_a_filter_of_a_read_is_echoed_and_settles_nothing(self):
        slots = action("Slots", "room_id day", "day first")
        records = Records(1)
        monday = do(records, slots, room_id="R", day="Monday")
        friday = do(records, slots, room_id="R", day="Friday")
        assert (monday["day"], friday["day"]) == ("Monday", "Friday")

    def test_an_episode_reads_what_it_wrote(self):
        made = episode("flat", customer=Patient())
        before = results(step(made, FIND))[0]
        assert results(step(made, FIND))[0] == before
        assert results(step(made, MOVE)) == [{"moved": True}]
        assert results(step(made, FIND))[0] == before | {"place": "Oslo"}


class TestModelEmulator:
    """A contradiction is asked for again, three attempts in all; then the emulator has failed."""

    def test_a_contradiction_of_what_was_shown(self):
        model = Says(FOUND, '{"place": "Bonn", "owner": "Ada"}')
        made = episode("flat", customer=Patient(), emulator=LLMEmulator(model))
        assert results(step(made, FIND)) == [json.loads(FOUND)]
        seen = step(made, FIND)
        assert (seen.done, seen.stop_reason) == (True, "tool_emulator_failed")
        assert model.asked == 1 + 3
        row = verdict(made)
        assert (row["blame"], row["mask_sample"], row["reward"]) == ("emulator", True, 0.0)
        assert "contradicts the settled value of place" in row["failure"]["message"]

    def test_one_that_mends_its_ways_in_time(self):
        wrong = '{"place": "Bonn", "owner": "Ada"}'
        model = Says(FOUND, wrong, wrong, FOUND)
        made = episode("flat", customer=Patient(), emulator=LLMEmulator(model))
        step(made, FIND)
        assert results(step(made, FIND)) == [json.loads(FOUND)] and model.asked == 4

    def test_it_is_held_to_what_was_written(self):
        oslo = '{"place": "Oslo", "owner": "Ada"}'
        model = Says(FOUND, '{"moved": true}', FOUND, oslo)
        made = episode("flat", customer=Patient(), emulator=LLMEmulator(model))
        for call in (FIND, MOVE):
            step(made, call)
        assert results(step(made, FIND)) == [json.loads(oslo)]
        assert model.asked == 4  # the stale answer was not accepted

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ('{"place": "Rome", "owner": "Ada", "colour": "red"}', "colour"),
            ('{"place": "Rome"}', "owner"),
            ('{"place": 7, "owner": "Ada"}', "7 is not of type"),
            ('{"place": "Rome", "owner": "Ada"', "not JSON"),
            ('{"place": "\\ud800", "owner": "Ada"}', "half a character"),
            ('{"place": NaN, "owner": "Ada"}', "not finite"),
            ('{"place": ' + "[" * 100 + "]" * 100 + "}", "64 levels"),
            ("I have found it.", "not JSON"),
            ("", "not JSON"),
            ('{"place": "' + "x" * 1_000_000 + '", "owner": "Ada"}', "characters"),
        ],
        ids=[
            "invented",
            "missing",
            "type",
            "broken",
            "surrogate",
            "nan",
            "deep",
            "prose",
            "",
            "1MB",
        ],
    )
    def test_what_it_may_not_say(self, answer, words):
        model = Says(answer)
        made = episode("flat", customer=Patient(), emulator=LLMEmulator(model))
        seen = step(made, FIND)
        row = verdict(made)
        assert seen.stop_reason == "tool_emulator_failed" and model.asked == 3
        assert words in row["failure"]["message"] and len(row["failure"]["message"]) < 1000
        assert (row["blame"], row["mask_sample"]) == ("emulator", True)

    def test_json_within_words_and_thoughts_is_read(self):
        model = Says(f"<think>{{}}</think>Here it is: {FOUND} as asked.")
        made = episode("flat", customer=Patient(), emulator=LLMEmulator(model))
        assert results(step(made, FIND)) == [json.loads(FOUND)]

    def test_a_failed_answer_is_not_remembered(self):
        records = Records(1)
        with pytest.raises(InfrastructureFailure):
            asyncio.run(LLMEmulator(Says("no"))(LOOK, {"parcel_id": "P"}, records))
        assert records.fields == {} == records.written


@pytest.mark.parametrize(
    "arguments",
    [
        '{"parcel_id": "\\ud800"}',
        '{"parcel_id": NaN}',
        '{"parcel_id": ' + "[" * 100 + "]" * 100 + "}",
        '{"parcel_id": 1e999}',
        "[" * 100_000,
    ],
    ids=["surrogate", "nan", "deep", "infinite", "long"],
)
def test_a_policy_cannot_break_the_world_with_its_arguments(arguments):
    """Otherwise a policy could have its own failures masked."""
    made = episode("flat", customer=Patient())
    assert results(step(made, ("find", arguments)))[0]["error"] == "invalid_arguments"
    row = verdict(made)
    assert (row["blame"], row["mask_sample"]) == ("policy", False)
