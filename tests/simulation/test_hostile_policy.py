"""Whatever a policy generates, its episode ends with a row that is its own: never masked, never an error."""

import asyncio
import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.desk import Patient, episode, row

NAMES = st.sampled_from(
    ["find", "move", "verify", "identity", "go_to_parcels", "go_to_cellar", "person", "no_such"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("P1"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
GIVEN = st.dictionaries(st.sampled_from(["parcel_id", "place", "birth_date", "x"]), JSON)
PART = st.fixed_dictionaries({"type": st.just("output_text"), "text": st.text()})
CALL = st.fixed_dictionaries(
    {
        "type": st.just("function_call"),
        "name": NAMES | st.text() | st.none(),
        "call_id": st.text() | st.none(),
        "arguments": st.one_of(GIVEN.map(json.dumps), st.text(), JSON, GIVEN),
    }
)
WORDS = st.fixed_dictionaries(
    {
        "type": st.just("message"),
        "content": st.text() | st.lists(PART),
    }
)
ODD = st.dictionaries(st.sampled_from(["type", "role", "name"]), st.text() | st.none())
OUTPUT = st.lists(CALL | WORDS | ODD, max_size=4)


@pytest.mark.parametrize("mode", ["flat", "routed", "sandbox", "pivot"])
@settings(deadline=None, max_examples=150)
@given(outputs=st.lists(OUTPUT, min_size=1, max_size=8))
def test_it_cannot_have_its_rollout_masked(mode, outputs):
    move = {"number": 1, "text": "Move it", "action": "Move_Parcel", "fields": ["moved"]}
    needs = [move, {"number": 2, "text": "Are you open?"}]  # so that Patient always has a need
    data = row(mode, questions=needs, withheld_tool="move", expected_state={"written": {}})
    made = episode(mode, row_=data, customer=Patient())
    for output in outputs:
        if made.stop_reason:
            break
        seen = asyncio.run(made.step(output))
        orjson.dumps([seen.items, seen.tools])
    found = asyncio.run(made.verify(None if made.stop_reason else "max_turns"))
    orjson.dumps(found)
    assert (found["blame"], found["mask_sample"]) == ("policy", False)
    assert len(found["turn_rewards"]) == len(found["turn_tiers"]) == found["num_turns"]
