"""How the official compiler writes things, on snippets."""

import pytest

from nemo_tau2.agentscript import compile, parse_expression, to_agentjson
from nemo_tau2.agentscript.agentjson_text import Dialect, text_of
from nemo_tau2.agentscript.names import capitalised, title_case

from .snippets import graph_of, script

DIALECT = Dialect(frozenset({"user"}), {"url": 'a"b', "on": True})


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("@variables.x", "state.x"),
        ("@variables.user", "variables.user"),
        ("@outputs.a.b", "result.a.b"),
        ('@outputs["a"]', 'result["a"]'),
        ("@variables.x.length", "len(state.x)"),
        ("@variables.x  ==   1", "state.x  ==   1"),
        ("@variables.x+1", "state.x + 1"),
        ("5.0 + .5", "5 + 0.5"),
        ("(1 + 2) - 3", "(1 + 2) - 3"),
        ("(a or b) and (c or d)", "a or b and (c or d)"),
        ("not (a and b)", "not a and b"),
        ("1 - (x)", "1 - x"),
        ("@system_variables.user_input", "system.input_text"),
        ("@knowledge.url", '"a\\"b"'),
        ("@knowledge.on", "True"),
        ('"{!@variables.user}"', '"{!variables.user}"'),
        ("1 if x else 2", "1 if x else 2"),
        ("[1]", ""),
    ],
)
def test_expressions(source: str, text: str) -> None:
    assert text_of(parse_expression(source), DIALECT) == text


@pytest.mark.parametrize(
    ("name", "label"),
    [("order_id", "Order Id"), ("OrderId2", "Order Id 2"), ("S4S", "S 4 S"), ("URL", "URL")],
)
def test_labels(name: str, label: str) -> None:
    assert title_case(name) == label


def test_context_variable_descriptions() -> None:
    assert capitalised("human_profile_id") == "Human_Profile_Id"


def test_an_else_if_chain_uses_one_slot_per_condition() -> None:
    text = script() + (
        "    before_reasoning:\n        if @variables.verified:\n"
        "            set @variables.tries = 1\n        else if @variables.tries > 1:\n"
        "            set @variables.tries = 2\n        else:\n"
        "            set @variables.tries = 3\n"
    )
    document = to_agentjson(compile(text))["agent_version"]
    actions = document["nodes"][1]["before_reasoning"]
    empty = 'state.AgentScriptInternal_next_topic=="__EMPTY__"'
    one, two = (f"state.AgentScriptInternal_condition_{i}" for i in (1, 2))
    assert [a["enabled"] for a in actions] == [
        "True",
        empty,
        f"({empty}) and ({one})",
        empty,
        f"({empty}) and ((not ({one})) and ({two}))",
        f"({empty}) and ((not ({one})) and (not ({two})))",
    ]
    names = [v["developer_name"] for v in document["state_variables"]]
    assert names[-2:] == ["AgentScriptInternal_condition_1", "AgentScriptInternal_condition_2"]


def test_neighbouring_instructions_with_one_gate_are_joined() -> None:
    graph = graph_of(
        "instructions: ->\n    | one\n    | two\n    set @variables.tries = 1\n    | three\n"
    )
    actions = to_agentjson(graph)["agent_version"]["nodes"][1]["before_reasoning_iteration"]
    key = "AgentScriptInternal_agent_instructions"
    texts = [a["state_updates"][0].get(key) for a in actions]
    prefix = f"template::{{{{state.{key}}}}}\n"
    assert texts == ["''", f"{prefix}one\ntwo", None, f"{prefix}three"]
