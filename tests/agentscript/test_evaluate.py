"""Expressions on state: Python-like values, typed errors, bounded results; templates."""

from typing import Any

import pytest

from nemo_tau2.agentscript import (
    EvaluationError,
    NoneAccessError,
    Scope,
    evaluate,
    is_true,
    parse_expression,
    render,
)

from .snippets import parsed

STATE = {
    "n": 3,
    "name": "Ada",
    "none": None,
    "yes": True,
    "items": [1, 2],
    "order": {"id": "A1", "total": 9.5, "none": None},
}
SCOPE = Scope(STATE, outputs={"ok": False}, system={"user_input": "hi"}, namespaces={"k": {"u": 1}})


def value(text: str) -> Any:
    return evaluate(parse_expression(text), SCOPE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@variables.n + 1 * 2", 5),
        ("(@variables.n + 1) / 2", 2.0),
        ("-@variables.n", -3),
        ('@variables.name + "!"', "Ada!"),
        ("@variables.items + [3]", [1, 2, 3]),
        ("[*@variables.items, 9]", [1, 2, 9]),
        ("@variables.items[1]", 2),
        ("@variables.order.total", 9.5),
        ('@variables.order["id"]', "A1"),
        ("@variables.items.length", 2),
        ("len(@variables.name)", 3),
        ("max(1, @variables.n, 2)", 3),
        ("@variables.none is None", True),
        ("@variables.none is not None", False),
        ("1 is True", False),
        ("@variables.yes is True", True),
        ('@variables.none or "x"', "x"),
        ("@variables.none and @variables.none.x", None),
        ("not @variables.none", True),
        ('"a" if @variables.yes else "b"', "a"),
        ("@variables.n < 4", True),
        ('"a" == 1', False),
        ("@outputs.ok", False),
        ("@system_variables.user_input", "hi"),
        ("@k.u", 1),
        ('{a: 1, "b": [2]}', {"a": 1, "b": [2]}),
        ("2025-09-04", "2025-09-04"),
    ],
)
def test_values(text: str, expected: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text", ["@variables.none.x", "@variables.none[0]", "len(@variables.none)"]
)
def test_reading_a_member_of_none_has_its_own_error(text: str) -> None:
    with pytest.raises(NoneAccessError):
        value(text)


@pytest.mark.parametrize(
    "text",
    ["@variables.missing", "@variables.items[5]", "@variables.n.x", '"a" + 1', '"a" < 1', "1 / 0",
     "[*1]", "bare", "@variables", "...", "open(1)", "@variables.name.upper()", "min()",
     "@nowhere.x", '"a" * 3', "@variables.none + 1"],
)  # fmt: skip
def test_what_has_no_value(text: str) -> None:
    with pytest.raises(EvaluationError):
        value(text)


def test_results_are_bounded() -> None:
    doubled = "+".join(["@variables.long"] * 4)
    with pytest.raises(EvaluationError, match="longer"):
        evaluate(parse_expression(doubled), Scope({"long": "x" * 400_000}))
    squared = "*".join(["@variables.big"] * 9)
    with pytest.raises(EvaluationError, match="too large"):
        evaluate(parse_expression(squared), Scope({"big": 2**60}))


def test_a_guard_without_a_value_is_false() -> None:
    assert not is_true(parse_expression("@variables.none.x == 1"), SCOPE)
    assert is_true(None, SCOPE)


def test_templates_render_values_as_they_read() -> None:
    template = (
        parsed(
            "a: | {!@variables.name} {!@variables.n} {!@variables.none}|{!@variables.yes} "
            "{!@variables.items} {!@variables.none.x}{!@actions.find}\n"
        )
        .items[0]
        .value
    )
    assert render(template, SCOPE, str.upper) == "Ada 3 |True [1, 2] FIND"
