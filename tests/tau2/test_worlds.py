"""Worlds share one database and never see each other's changes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_tau2.tau2.domains import DOMAINS, load_domain
from nemo_tau2.tau2.worlds import CowTable, copy_plain


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_new_world_differs_in_nothing(domain):
    assert load_domain(domain).new_world().delta() == {}


def test_two_worlds_that_change_the_same_rows_do_not_see_each_other():
    domain = load_domain("airline")
    first, second = domain.new_world(), domain.new_world()
    args = {"user_id": "mia_li_3668", "amount": 100}
    assert not first.execute("assistant", "send_certificate", args).error
    user = {"user_id": "mia_li_3668"}
    seen = second.execute("assistant", "get_user_details", user).content
    assert seen == domain.new_world().execute("assistant", "get_user_details", user).content
    assert "certificate" in first.execute("assistant", "get_user_details", user).content
    assert second.delta() == {}
    assert list(first.delta()) == [("agent", "users", "mia_li_3668")]


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_shared_database_survives_every_tool(domain):
    """Every tool is called on real rows; the shared database keeps its hash."""
    shared = load_domain(domain)
    before = {side: base.get_hash() for side, base in shared.bases.items()}
    from nemo_tau2.tau2.tasks import load_tasks

    for task in load_tasks(domain).split("base")[:40]:
        world = shared.new_world()
        world.initialise(task)
        for action in task.evaluation_criteria.actions or []:
            world.execute(action.requestor, action.name, action.arguments)
    assert {side: base.get_hash() for side, base in shared.bases.items()} == before


def test_a_tool_that_stores_its_arguments_does_not_share_them_with_the_trajectory():
    world = load_domain("airline").new_world()
    flights = [{"flight_number": "HAT001", "date": "2024-05-16"}]
    arguments = {
        "reservation_id": "4WQ150",
        "cabin": "business",
        "flights": flights,
        "payment_id": "x",
    }
    world.execute("assistant", "update_reservation_flights", arguments)
    assert arguments["flights"] == [{"flight_number": "HAT001", "date": "2024-05-16"}]


def test_integers_and_floats_differ_as_they_do_in_json():
    domain = load_domain("airline")
    deltas = []
    for count in (3, 3.0):
        world = domain.new_world()
        args = {"reservation_id": "4WQ150", "total_baggages": count, "nonfree_baggages": 0}
        user = json.loads(
            world.execute(
                "assistant", "get_reservation_details", {"reservation_id": "4WQ150"}
            ).content
        )["user_id"]
        methods = json.loads(
            world.execute("assistant", "get_user_details", {"user_id": user}).content
        )
        card = next(k for k in methods["payment_methods"] if k.startswith(("credit", "gift")))
        world.execute("assistant", "update_reservation_baggages", args | {"payment_id": card})
        deltas.append(world.delta())
    assert deltas[0] and deltas[0] != deltas[1]


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(plain)
def test_copies_are_equal_and_share_no_container(value):
    twin = copy_plain(value)
    assert twin == value
    if isinstance(value, list | dict):
        assert twin is not value


operations = st.lists(
    st.tuples(
        st.sampled_from(["get", "item", "set", "del", "pop", "default", "update"]),
        st.integers(0, 5),
    ),
    max_size=15,
)


@settings(max_examples=200)
@given(operations)
def test_a_table_behaves_like_a_dict_and_leaves_its_base_alone(steps):
    base = {key: [key] for key in range(4)}
    table, model = CowTable(base), {key: [key] for key in range(4)}
    for name, key in steps:
        for mapping in (table, model):
            if name == "get" and mapping.get(key) is not None:
                mapping.get(key).append("seen")
            elif name == "item" and key in mapping:
                mapping[key].append("changed")
            elif name == "set":
                mapping[key] = ["new"]
            elif name == "del" and key in mapping:
                del mapping[key]
            elif name == "pop":
                mapping.pop(key, None)
            elif name == "default":
                mapping.setdefault(key, []).append("default")
            elif name == "update":
                mapping.update({key: ["updated"]})
    assert dict(table.items()) == model
    assert base == {key: [key] for key in range(4)}
