"""Running a graph's procedures: hooks, focus messages, effects, limits."""

from typing import Any

import pytest

from nemo_tau2.agentscript import (
    END,
    CallFailedError,
    EvaluationError,
    Interpreter,
    StepLimitError,
    compile,
)

from .snippets import graph_of, script
from .test_lowering import COLLECT

RUN = """\
instructions: ->
    | Hello {!@variables.user}.
    run @actions.Get_Order
        with order_id = @variables.order_id
        set @variables.note = @outputs
        set @variables.tries = @variables.tries + 1
    if @variables.tries > 1:
        | Again: use {!@actions.back}, {!@actions.get} or {!@actions.Get_Order}.
    else if @variables.tries == 1:
        | First.
    else:
        | Never.
actions:
    back: @utils.transition to @subagent.router
        available when @variables.note.status == "open"
    get: @actions.Get_Order
        with order_id = @variables.order_id
        set @variables.verified = True
        run @actions.Cancel_Order
            with reason = "auto"
            set @variables.order_id = @outputs.id
        if @variables.order_id == "gone":
            transition to @subagent.router
"""


def answering(*answers: Any) -> Any:
    """An `invoke` that gives these outputs in turn; an exception is raised."""
    queue = list(answers)

    def invoke(node: str, action: str, arguments: dict) -> dict:
        answer = queue.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return invoke


def test_instructions_run_calls_and_render_what_follows_from_them() -> None:
    graph = graph_of(RUN.replace("note = @outputs", "note = {s: @outputs.status}"))
    state = graph.initial_state({"user": "U1"})
    runner = Interpreter(graph, answering({"status": "open"}, {"status": "open"}))
    text, outcome = runner.focus("orders", state)
    assert text == "Hello U1.\nFirst."
    assert (outcome.calls[0].action, outcome.calls[0].arguments) == (
        "Get_Order", {"order_id": ""},
    )  # fmt: skip
    assert state["note"] == {"s": "open"}
    assert runner.focus("orders", state)[0] == ("Hello U1.\nAgain: use go_to_router, get or get.")


def test_a_failed_call_has_no_effects() -> None:
    graph = graph_of(RUN)
    state = graph.initial_state()
    text, outcome = Interpreter(graph, answering(CallFailedError("down"))).focus("orders", state)
    assert text == "Hello .\nNever."
    assert outcome.calls[0].error == "down"
    assert state == graph.initial_state()


def test_without_anyone_to_run_actions_a_run_fails() -> None:
    graph = graph_of(RUN)
    _, outcome = Interpreter(graph).focus("orders", graph.initial_state())
    assert outcome.calls[0].outputs is None


def test_tools_whose_guard_has_no_value_are_hidden() -> None:
    graph = graph_of(RUN)
    runner, state = Interpreter(graph), graph.initial_state()
    assert [t.name for t in runner.visible_tools("orders", state)] == ["get"]
    state["note"] = {"status": "open"}
    assert [t.name for t in runner.visible_tools("orders", state)] == ["go_to_router", "get"]


def test_completing_a_tool_applies_updates_then_callbacks() -> None:
    graph = graph_of(RUN)
    state = graph.initial_state()
    runner = Interpreter(graph, answering({"id": "gone"}))
    tool = graph.nodes["orders"].tools["get"]
    assert runner.arguments(tool, {}, state) == {"order_id": ""}
    outcome = runner.complete("orders", tool, {"status": "open"}, state)
    assert (outcome.goto, outcome.calls[0].arguments) == ("router", {"reason": "auto"})
    assert (state["verified"], state["order_id"]) == (True, "gone")


def test_transitions_and_endings_say_where_control_goes() -> None:
    graph = graph_of("actions:\n    done: @utils.end_session\n    ask: @subagent.router\n")
    runner, tools = Interpreter(graph), graph.nodes["orders"].tools
    assert runner.complete("orders", tools["done"], {}, {}).goto == END
    assert runner.complete("orders", tools["ask"], {}, {}).goto == "router"


def test_a_transition_ends_its_procedure() -> None:
    text = script() + (
        "    before_reasoning:\n        if not @variables.verified:\n"
        "            transition to @subagent.router\n        set @variables.tries = 9\n"
        "    after_reasoning:\n        set @variables.tries = @variables.tries + 1\n"
    )
    graph = compile(text)
    runner, state = Interpreter(graph), graph.initial_state()
    assert (runner.enter("orders", state).goto, state["tries"]) == ("router", 0)
    state["verified"] = True
    assert (runner.enter("orders", state).goto, state["tries"]) == (None, 9)
    assert (runner.leave("orders", state).goto, state["tries"]) == (None, 10)


def test_a_collect_asks_one_thing_at_a_time() -> None:
    graph = graph_of(COLLECT.replace("order_id", "user_name"), head=_head_with_names())
    runner, state = Interpreter(graph), graph.initial_state()
    capture = graph.nodes["orders"].tools["capture_orders_fields"]
    assert '"Which order?"' in runner.focus("orders", state)[0]
    assert runner.leave("orders", state).goto == "orders"
    runner.complete("orders", capture, {"user_name": "A1"}, state)
    assert '"How often?"' in runner.focus("orders", state)[0]
    runner.complete("orders", capture, {"tries": 2}, state)
    assert state["user_name"] == "A1"
    assert "All required details are collected" in runner.focus("orders", state)[0]
    assert runner.leave("orders", state).goto is None


def _head_with_names() -> str:
    from .snippets import HEAD

    return HEAD.replace("tries: mutable number = 0", "tries: mutable number").replace(
        "    note:", "    user_name: mutable string\n    note:"
    )


def test_linked_and_unknown_variables_are_not_written() -> None:
    graph = graph_of(
        "instructions: ->\n    set @variables.user = 1\n    set @variables.nope = 1\n"
        "    set @variables.tries = @variables.note.x\n"
    )
    state = graph.initial_state({"user": "U"})
    _, outcome = Interpreter(graph).focus("orders", state)
    assert state == graph.initial_state({"user": "U"})
    assert len(outcome.problems) == 3


def test_a_bound_argument_without_a_value_is_an_error() -> None:
    graph = graph_of(
        "actions:\n    g: @actions.Get_Order\n        with order_id = @variables.note.x\n"
    )
    with pytest.raises(EvaluationError):
        Interpreter(graph).arguments(graph.nodes["orders"].tools["g"], {}, graph.initial_state())


def test_steps_are_limited() -> None:
    many = "".join("    set @variables.tries = 1\n" for _ in range(20))
    graph = graph_of(f"instructions: ->\n{many}")
    with pytest.raises(StepLimitError):
        Interpreter(graph, max_steps=10).focus("orders", graph.initial_state())


def test_the_identity_is_the_nodes_own_or_the_agents() -> None:
    head = 'system:\n    instructions: "I am {!@variables.user}"\n'
    text = head + script() + "    system:\n        instructions: | I sell to {!@variables.user}\n"
    graph = compile(text)
    state = graph.initial_state({"user": "U1"})
    assert Interpreter(graph).identity("orders", state) == "I sell to U1"
    assert Interpreter(graph).identity("router", state) == "I am U1"


def test_fixed_messages() -> None:
    head = 'system:\n    messages:\n        welcome: | Hi {!@variables.user}\n        error: "Oh"\n'
    graph = compile(head + script())
    state = graph.initial_state({"user": "Ada"})
    runner = Interpreter(graph)
    assert (runner.message("welcome", state), runner.message("error", state)) == ("Hi Ada", "Oh")
    assert Interpreter(graph_of()).message("welcome", state) == ""


def test_sessions_share_nothing() -> None:
    graph = compile(
        script(head="").replace(
            "start_agent",
            'config:\n    agent_name: "x"\nvariables:\n    user: linked string\n'
            "        source: @knowledge.user\nstart_agent",
            1,
        )
    )
    Interpreter(graph).scope({"user": "U1"})
    assert graph.knowledge == {}
