"""The example agents: clean, walkable, and worth training on."""

from pathlib import Path

import pytest

from nemo_tau2.agentscript import (
    END,
    HUMAN,
    Effect,
    Interpreter,
    NodeKind,
    ToolKind,
    WorkflowGraph,
    lint,
    parse,
    print_script,
)
from nemo_tau2.simulation.scripts import load_graph, sidecar_of

FOLDER = Path(__file__).resolve().parents[2] / "nemo_tau2" / "simulation" / "agents"
SCRIPTS = sorted(FOLDER.glob("*.agent"))


def test_there_are_six() -> None:
    assert [path.stem for path in SCRIPTS] == [
        "bank_cards", "clinic_scheduling", "home_inspections", "it_helpdesk", "retail_support",
        "travel",
    ]  # fmt: skip


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def graph(path: Path) -> WorkflowGraph:
    return load_graph(path)


def test_nothing_is_found_wrong(path: Path) -> None:
    assert lint(path) == []
    assert sidecar_of(path).is_file()


def test_it_is_in_the_canonical_layout(path: Path) -> None:
    script = parse(path)
    assert print_script(script) == script.source.text


def test_it_teaches_what_it_should(graph: WorkflowGraph) -> None:
    tools = [tool for node in graph.nodes.values() for tool in node.tools.values()]
    kinds = {tool.kind for tool in tools}
    assert {ToolKind.ACTION, ToolKind.TRANSITION, ToolKind.ESCALATE} <= kinds
    assert sum(bool(tool.inputs) for tool in tools) >= 4, "model-filled arguments"
    assert any(tool.guard is not None for tool in tools), "guards"
    assert any(tool.updates for tool in tools if tool.kind is ToolKind.ACTION), "effects"
    effects = {a.effect.effect for n in graph.nodes.values() for a in n.actions.values()}
    assert effects == {Effect.READ, Effect.WRITE}
    assert graph.loop.max_turns is not None


def test_every_edge_leads_to_a_node_and_some_end_the_session(graph: WorkflowGraph) -> None:
    assert {edge.target for edge in graph.edges} <= graph.nodes.keys()
    assert any(edge.target in (HUMAN, END) for edge in graph.edges)


def test_every_node_renders_on_the_initial_state(graph: WorkflowGraph) -> None:
    runner = Interpreter(graph)
    for node in graph.nodes.values():
        if node.kind in (NodeKind.ROUTER, NodeKind.SUBAGENT):
            text, outcome = runner.focus(node.name, graph.initial_state())
            assert text
            assert outcome.problems == []
            assert "{!" not in text
            assert runner.identity(node.name, graph.initial_state())


def test_a_return_from_start_to_end() -> None:
    """Retail: look up, keep, register; guards open as the effects of each call come in."""
    graph = load_graph(FOLDER / "retail_support.agent")
    runner, state = Interpreter(graph), graph.initial_state()

    def visible(node: str) -> list[str]:
        return [tool.name for tool in runner.visible_tools(node, state)]

    def call(node: str, name: str, outputs: dict) -> str | None:
        return runner.complete(node, graph.nodes[node].tools[name], outputs, state).goto

    assert call("front_desk", "go_to_order_care", {}) == "order_care"
    assert visible("order_care") == ["find_order", "remember", "go_to_front_desk"]
    found = {"status": "delivered", "days_since_delivery": 3, "warehouse_code": "W"}
    call("order_care", "find_order", found)
    action = graph.nodes["order_care"].actions["Get_Order"]
    assert "warehouse_code" not in action.observation(found)
    call("order_care", "remember", {"order_number": "AF-1", "customer_email": "a@b"})
    assert "go_to_return_desk" in visible("order_care")
    assert runner.enter("return_desk", state).goto is None
    register = graph.nodes["return_desk"].tools["register"]
    assert register.requires_confirmation
    given = {"articles": ["lamp"], "reason": "broken"}
    assert runner.arguments(register, given, state) == {
        **given, "order_number": "AF-1", "email": "a@b",
    }  # fmt: skip
    call("return_desk", "register", {"label_url": "u", "refund": 10})
    assert visible("return_desk") == ["go_to_front_desk"]
    state["days_since_delivery"] = 31
    assert runner.enter("return_desk", state).goto == "late_returns"


def test_a_likely_fraud_moves_on_by_itself() -> None:
    """Bank: the script, not the model, leaves for the node that blocks the card."""
    graph = load_graph(FOLDER / "bank_cards.agent")
    runner, state = Interpreter(graph), graph.initial_state()
    tool = graph.nodes["disputes"].tools["dispute"]
    outputs = {"dispute_id": "D1", "risk_score": 85}
    assert runner.complete("disputes", tool, outputs, state).goto == "lost_cards"
    assert runner.complete("disputes", tool, {**outputs, "risk_score": 5}, state).goto is None
    assert graph.nodes["disputes"].actions["Open_Dispute"].observation(outputs) == {
        "dispute_id": "D1"
    }
