"""Our own checks: can the workflow be walked, and is it worth training on?"""

import pytest

from nemo_tau2.agentscript import lint

from .snippets import HEAD, script


def ours(text: str) -> list[tuple[str, int]]:
    return [(d.code, d.span.line) for d in lint(text) if d.code.startswith("nt-")]


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_unreachable_nodes() -> None:
    text = script() + 'subagent lost:\n    description: "Lost"\n'
    assert ("nt-unreachable-node", line_of(text, "subagent lost")) in ours(text)


def test_no_way_back() -> None:
    text = script()
    assert ("nt-no-way-back", line_of(text, "subagent orders")) in ours(text)
    back = script("actions:\n    back: @utils.transition to @subagent.router\n")
    assert "nt-no-way-back" not in dict(ours(back))


def test_a_delegate_comes_back() -> None:
    text = script().replace("@utils.transition to @subagent.orders", "@subagent.orders")
    assert "nt-no-way-back" not in dict(ours(text))


@pytest.mark.parametrize(
    ("guard", "dead"),
    [
        ("@variables.verified", True),
        ("@variables.verified == True and @variables.tries == 0", True),
        ("@variables.verified or @variables.tries == 0", False),
        ("@variables.order_id == \"paid\"", True),
        ("@variables.order_id == \"open\"", False),
        ("@variables.order_id != \"\"", False),
        ("@variables.tries > 3", False),
        ("@variables.user == \"x\"", False),
        ("@variables.note.done", True),
    ],
)  # fmt: skip
def test_guards_that_can_never_open(guard: str, dead: bool) -> None:
    text = script(
        f"""\
        instructions: ->
            set @variables.order_id = "open"
            set @variables.tries = @variables.tries + 1
        actions:
            back: @utils.transition to @subagent.router
                available when {guard}
        """
    )
    assert ("nt-dead-guard" in dict(ours(text))) is dead


def test_tools_the_model_gives_nothing_to() -> None:
    bound = script('actions:\n    get: @actions.Get_Order\n        with order_id = "x"\n')
    filled = script("actions:\n    get: @actions.Get_Order\n        with order_id = ...\n")
    assert "nt-no-model-input" in dict(ours(bound))
    assert "nt-no-model-input" not in dict(ours(filled))


def test_loops_of_routers() -> None:
    text = HEAD + (
        'start_agent a:\n    description: "A"\n    reasoning:\n        actions:\n'
        "            b: @utils.transition to @subagent.b\n"
        'subagent b:\n    description: "B"\n    reasoning:\n        actions:\n'
        "            a: @utils.transition to @subagent.a\n"
    )
    assert [code for code, _ in ours(text)].count("nt-router-loop") == 2


def test_two_tools_to_one_target() -> None:
    text = script(
        "actions:\n    a: @utils.transition to @subagent.router\n"
        "    b: @utils.transition to @subagent.router\n"
    )
    assert ("nt-same-target", line_of(text, "    b: @utils")) in ours(text)


def test_actions_that_may_read_or_write() -> None:
    text = script().replace("Get_Order:", "Frobnicate_Order:")
    assert ("nt-ambiguous-effect", line_of(text, "Frobnicate_Order:")) in ours(text)


def test_statements_that_do_nothing() -> None:
    text = script(
        """\
        actions:
            get: @actions.Get_Order
                transition to @subagent.router
            save: @utils.setVariables
                with tries = 1
                transition to @subagent.router
        """
    )
    codes = dict(ours(text))
    assert codes["nt-ignored-transition"] == line_of(text, "transition to @subagent.router\n")
    assert "nt-ignored-statement" in codes


def test_action_references_outside_templates() -> None:
    text = script(
        "actions:\n    get: @actions.Get_Order\n        with order_id = @actions.Get_Order\n"
    )
    assert "nt-action-in-expression" in dict(ours(text))
