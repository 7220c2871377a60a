"""Sidecars: what they add, and what they may not say."""

import pytest

from nemo_tau2.agentscript import Effect, apply_sidecar
from nemo_tau2.errors import UserError

from .snippets import graph_of

TOOLS = "actions:\n    get: @actions.Get_Order\n    back: @utils.transition to @subagent.router\n"


def test_annotations_are_applied() -> None:
    graph = apply_sidecar(
        graph_of(TOOLS),
        {
            "effects": {"Get_Order": "write", "orders.Cancel_Order": "read"},
            "tool_names": {"orders.get": "find_order", "orders.back": "home"},
            "delegates_return": False,
            "loop": {"max_turns": 12, "max_errors": 3},
        },
        "x.tau2.yaml",
    )
    node = graph.nodes["orders"]
    assert node.actions["Get_Order"].effect.effect is Effect.WRITE
    assert node.actions["Get_Order"].effect.reason == "x.tau2.yaml says so"
    assert node.actions["Cancel_Order"].effect.effect is Effect.READ
    assert list(node.tools) == ["find_order", "home"]
    assert node.tools["home"].aliases == ("back", "go_to_router")
    assert [e.tool for e in graph.edges_from("orders")] == ["home"]
    assert (graph.loop.max_turns, graph.loop.max_errors) == (12, 3)
    assert not graph.loop.delegates_return


def test_an_empty_sidecar_changes_nothing() -> None:
    assert apply_sidecar(graph_of(TOOLS), None) == graph_of(TOOLS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"effect": {}}, "effect"),
        ({"effects": {"Get_Order": "both"}}, "effects.Get_Order"),
        ({"effects": {"Get_Ordr": "read"}}, "no action `Get_Ordr`"),
        ({"tool_names": {"get": "x"}}, "write `node.tool`"),
        ({"tool_names": {"orders.nope": "x"}}, "no tool `orders.nope`"),
        ({"tool_names": {"orders.get": "go_to_router"}}, "already a tool"),
        ({"loop": {"max_turns": 0}}, "loop.max_turns"),
        ([1], "the file"),
    ],
)
def test_mistakes_are_named(data: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        apply_sidecar(graph_of(TOOLS), data, "x.tau2.yaml")
