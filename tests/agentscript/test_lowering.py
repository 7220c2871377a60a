"""From a script to its graph: nodes, tools, edges, actions, variables."""

import pytest

from nemo_tau2.agentscript import (
    END,
    HUMAN,
    AgentScriptError,
    Effect,
    NodeKind,
    Phase,
    ToolKind,
    Trigger,
    compile,
    to_source,
)
from nemo_tau2.agentscript.graph import Edge

from .snippets import HEAD, graph_of, script


def edges(graph, source: str = "orders") -> list[tuple]:
    def short(edge: Edge) -> tuple:
        condition = to_source(edge.condition) if edge.condition is not None else None
        return (edge.target, edge.trigger, edge.phase, condition)

    return [short(edge) for edge in graph.edges_from(source)]


def test_nodes() -> None:
    graph = graph_of()
    kinds = {name: node.kind for name, node in graph.nodes.items()}
    assert kinds == {
        "router": NodeKind.ROUTER,
        "orders": NodeKind.SUBAGENT,
        HUMAN: NodeKind.TERMINAL,
        END: NodeKind.TERMINAL,
    }
    assert graph.entry == "router"


def test_variables_and_the_initial_state() -> None:
    graph = graph_of()
    assert graph.variables["user"].linked
    assert graph.variables["user"].source == "MessagingEndUser.ContactId"
    assert graph.initial_state({"user": "U1", "other": 1}) == {
        "order_id": "", "verified": False, "tries": 0, "note": None, "user": "U1",
    }  # fmt: skip


def test_the_state_of_one_session_is_not_that_of_another() -> None:
    graph = graph_of(head=HEAD + "# more\n")
    first = graph.initial_state()
    first["order_id"] = "A1"
    assert graph.initial_state()["order_id"] == ""


def test_action_definitions() -> None:
    actions = graph_of().nodes["orders"].actions
    get, cancel = actions["Get_Order"], actions["Cancel_Order"]
    assert get.input_schema == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "description": "Order number"},
            "verbose": {"type": "boolean"},
        },
        "required": ["order_id"],
        "additionalProperties": False,
    }
    assert get.observation({"status": "ok", "secret": "s"}) == {"status": "ok"}
    assert (get.scheme, get.effect.effect) == ("flow", Effect.READ)
    assert cancel.effect.effect is Effect.WRITE
    assert cancel.effect.reason == "require_user_confirmation is True"


def test_an_action_tool_fills_binds_and_updates() -> None:
    tool = (
        graph_of(
            """\
        actions:
            cancel: @actions.Cancel_Order
                available when @variables.verified
                with reason = ...
                set @variables.verified = @outputs.done
        """
        )
        .nodes["orders"]
        .tools["cancel"]
    )
    assert [p.name for p in tool.inputs] == ["reason", "order_id"]
    assert tool.schema["required"] == ["reason", "order_id"]
    assert tool.requires_confirmation
    assert to_source(tool.guard) == "@variables.verified"
    assert [(u.variable, to_source(u.value)) for u in tool.updates] == [
        ("verified", "@outputs.done")
    ]


def test_bound_and_defaulted_inputs_are_hidden_from_the_model() -> None:
    tool = (
        graph_of(
            """\
        actions:
            get: @actions.Get_Order
                with order_id = @variables.order_id
        """
        )
        .nodes["orders"]
        .tools["get"]
    )
    assert tool.inputs == ()
    assert {name: to_source(e) for name, e in tool.bound.items()} == {
        "order_id": "@variables.order_id"
    }
    assert tool.as_function()["function"]["description"] == "Reads an order"


def test_set_variables_is_typed_by_the_variables() -> None:
    tool = (
        graph_of(
            """\
        actions:
            save: @utils.setVariables
                description: "Save"
                with order_id = ...
                with tries = 1
        """
        )
        .nodes["orders"]
        .tools["save"]
    )
    assert tool.kind is ToolKind.SET_VARIABLES
    assert tool.schema["properties"] == {"order_id": {"type": "string", "description": "The order"}}
    assert [(u.variable, to_source(u.value)) for u in tool.updates] == [
        ("order_id", "@outputs.order_id"), ("tries", "1"),
    ]  # fmt: skip


def test_transitions_get_canonical_names() -> None:
    node = graph_of(
        """\
        actions:
            back: @utils.transition to @subagent.router
                description: "Back"
                available when @variables.verified
            again: @utils.transition to @topic.router
            person: @utils.escalate
            done: @utils.end_session
            ask: @subagent.router
        """
    ).nodes["orders"]
    assert list(node.tools) == ["go_to_router", "go_to_router_2", "person", "done", "ask"]
    first = node.tools["go_to_router"]
    assert (first.key, first.aliases, first.description) == ("back", ("back",), "Back")
    assert node.tool("back") is first
    assert node.tools["go_to_router_2"].description == "Routes"
    assert node.tools["person"].target == HUMAN
    assert node.tools["done"].target == END


def test_edges_of_tools() -> None:
    graph = graph_of(
        """\
        actions:
            back: @utils.transition to @subagent.router
                available when @variables.tries > 1
            ask: @subagent.router
            get: @actions.Get_Order
                set @variables.order_id = @outputs.status
                if @variables.order_id == "gone":
                    transition to @subagent.router
                else if @variables.verified:
                    transition to @subagent.orders
        """
    )
    gone = '@variables.order_id == "gone"'
    assert edges(graph) == [
        ("router", Trigger.MODEL, Phase.TOOL, "@variables.tries > 1"),
        ("router", Trigger.MODEL, Phase.TOOL, None),
        ("router", Trigger.DETERMINISTIC, Phase.POST_TOOL, gone),
        ("orders", Trigger.DETERMINISTIC, Phase.POST_TOOL, f"not ({gone}) and @variables.verified"),
    ]
    assert [e.delegate for e in graph.edges_from("orders")] == [False, True, False, False]


def test_edges_of_procedures() -> None:
    text = script(
        """\
        instructions: ->
            if @variables.verified:
                transition to @subagent.router
            else:
                | Verify first.
        """
    )
    text += (
        "    before_reasoning:\n        if not @variables.verified:\n"
        "            transition to @subagent.router\n"
        "    after_reasoning:\n        transition to @subagent.router\n"
    )
    assert edges(compile(text)) == [
        ("router", Trigger.DETERMINISTIC, Phase.BEFORE, "not @variables.verified"),
        ("router", Trigger.DETERMINISTIC, Phase.INSTRUCTIONS, "@variables.verified"),
        ("router", Trigger.DETERMINISTIC, Phase.AFTER, None),
    ]


COLLECT = """\
instructions: ->
    collect @variables.order_id
        message: "Which order?"
    if @variables.verified:
        collect @variables.note
            message: "Why?"
    if not @variables.verified:
        collect @variables.tries
            message: "How often?"
"""


def test_collect_adds_tools_and_keeps_control() -> None:
    graph = graph_of(COLLECT)
    node = graph.nodes["orders"]
    assert [s.variables for s in node.collect] == [("order_id",), ("note", "tries")]
    capture = node.tools["capture_orders_fields"]
    assert [p.name for p in capture.inputs] == ["order_id", "note", "tries"]
    assert capture.schema["required"] == []
    assert node.tools["cancel_orders_collect"].target == "router"
    resume = [e for e in graph.edges_from("orders") if e.target == "orders"]
    assert [to_source(e.condition) for e in resume] == [
        "@variables.order_id is None or (@variables.note is None and @variables.tries is None)"
    ]


def test_a_connected_agent_is_a_node() -> None:
    text = script(
        """\
        actions:
            ask: @connected_subagent.Expert
                with topic = "x"
        """
    )
    text += (
        'connected_subagent Expert:\n    target: "agent://Expert"\n    description: "Knows"\n'
        "    inputs:\n        topic: string = @variables.order_id\n"
    )
    graph = compile(text)
    assert graph.nodes["Expert"].kind is NodeKind.CONNECTED
    assert graph.nodes["orders"].tools["ask"].kind is ToolKind.DELEGATE


def test_a_routing_model_keeps_transitions_only() -> None:
    text = script().replace(
        '    description: "Routes"\n',
        '    description: "Routes"\n    model_config:\n'
        '        model: "model://sfdc_ai__DefaultEinsteinHyperClassifier"\n',
    )
    text = text.replace(
        "            to_orders:", "            save: @utils.setVariables\n            to_orders:"
    )
    assert list(compile(text).nodes["router"].tools) == ["go_to_orders"]


def test_topic_and_subagent_are_the_same() -> None:
    assert compile(script().replace("subagent orders", "topic orders")).nodes.keys() == (
        graph_of().nodes.keys()
    )


def test_what_does_not_compile() -> None:
    with pytest.raises(AgentScriptError, match="start_agent"):
        compile('config:\n    agent_name: "x"\n')
    with pytest.raises(AgentScriptError, match=r"<script>:1:4 .*\(and 1 more\)"):
        compile("a: $\nb: $\n")
