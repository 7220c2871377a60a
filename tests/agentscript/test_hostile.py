"""Input made to break a parser gives diagnostics: no traceback, no hang, no RecursionError."""

import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemo_tau2.agentscript import (
    AgentScriptError,
    Interpreter,
    StepLimitError,
    compile,
    lint,
    parse,
    print_script,
    to_agentjson,
)
from nemo_tau2.agentscript.draw import to_mermaid, to_svg
from nemo_tau2.agentscript.export import graph_to_json
from nemo_tau2.errors import UserError

from .snippets import script

N = 10**5
TEXTS = {
    "open parentheses": "a: " + "(" * N,
    "nested lists": "a: " + "[" * N + "]" * N,
    "open dictionaries": "a: " + "{a:" * N,
    "nots": "a: " + "not " * N + "x",
    "signs": "a: " + "-" * N + "1",
    "members": "a: @b" + ".c" * N,
    "calls": "a: f" + "(0)" * N,
    "sums": "a: " + "1+" * N + "1",
    "ternaries": "a: " + "1 if " * N,
    "a million columns": "a: " + "b " * (5 * N),
    "a long string": 'a: "' + "\\" * (10 * N),
    "a long list": "a: [" + "1," * (N // 2) + "]",
    "colons": ":" * (10 * N),
    "quotes": '"' * (10 * N),
    "open interpolations": "a: | " + "{!" * N,
    "many interpolations": "a: | " + "{!x}" * (N // 4),
    "unclosed templates": "a: |\n" + "  {!(((\n" * (N // 10),
    "deep blocks": "\n".join(" " * i + "a:" for i in range(3000)),
    "deep ifs": "\n".join(" " * i + "if x:" for i in range(3000)),
    "else without if": "else:\n" * (N // 10),
    "dashes": "- " * N,
    "unclosed strings": 'a: "\n' * (N // 10),
    "carriage returns": "\r" * (10 * N),
    "nul": "\0" * N,
    "continuations": "\\\n" * N,
    "an open bracket over lines": "a: [\n" + "  1,\n" * (N // 10),
    "blank lines in a bracket": "a: (\n" + "\n" * N + "  1)",
    "a lone surrogate": 'a: "\ud800"',
    "not letters": "a: 😀\u2028\u0085",
}


def survive(text: str) -> None:
    """Runs everything there is on a text."""
    parsed = parse(text)
    lint(parsed)
    if parsed.ok:
        again = parse(print_script(parsed))
        assert again == parsed
    try:
        graph = compile(parsed)
    except AgentScriptError:
        return
    to_agentjson(graph), graph_to_json(graph), to_mermaid(graph), to_svg(graph)
    runner, state = Interpreter(graph, lambda node, action, arguments: {}), graph.initial_state()
    for name in graph.nodes:
        try:
            runner.enter(name, state), runner.focus(name, state), runner.identity(name, state)
            for tool in runner.visible_tools(name, state):
                runner.complete(name, tool, {}, state)
            runner.leave(name, state)
        except StepLimitError:
            continue


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_hostile_texts(text: str) -> None:
    survive(script() + text)


PIECES = st.sampled_from(
    ['"', "{!", "}", "|", "->", ":", "(", ")", "[", "]", "\n", "    ", "\t", "\r", "...", "@",
     "if x:", "else:", "else if y:", "set ", "run ", "with ", "transition to ", "collect ", "- ",
     "#", "\\", "=", "==", "None", "mutable ", "linked ", "list[", " is not ", "not ", " and ",
     "start_agent a:", "subagent b:", "actions:", "reasoning:", "instructions: ->", "a", "1.5"]
)  # fmt: skip


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text(text: str) -> None:
    survive(text)


@given(st.lists(PIECES, max_size=60).map("".join))
@settings(max_examples=150, deadline=None)
def test_any_arrangement_of_tokens(text: str) -> None:
    survive(text)


@given(st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "x.agent"
    path.write_bytes(content)
    try:
        lint(path)
    except UserError as error:
        assert "not UTF-8" in str(error)


def test_size_is_no_problem() -> None:
    """A script of 100,000 lines compiles; `nemo-tau2 bench` holds the time."""
    node = script().partition("subagent orders:")[2]
    lines = node.count("\n")
    text = script() + "".join(f"subagent s{i}:{node}" for i in range(N // lines + 1))
    assert text.count("\n") > N
    assert len(compile(text).nodes) > N // lines


def mutated(text: str, dice: random.Random, pool: list[str]) -> str:
    """A script with a few random cuts, copies, moves and strange characters."""
    for _ in range(dice.randint(1, 6)):
        i = dice.randrange(len(text) + 1)
        j = min(len(text), i + dice.randint(1, 60))
        other = dice.choice(pool)
        k = dice.randrange(len(other))
        text = dice.choice(
            [
                text[:i] + text[j:],
                text[:i] + text[i:j] * 3 + text[j:],
                text[:i] + other[k : k + dice.randint(1, 200)] + text[i:],
                text[:i] + chr(dice.choice([0, 9, 10, 13, 32, 34, 35, 0x2028, 0xD800])) + text[i:],
                text[:i] + "\n" + " " * dice.randint(0, 12) + text[j:],
            ]
        )
    return text or "a"


@pytest.mark.slow
def test_a_minute_of_mutated_scripts(data: Path) -> None:
    dice = random.Random(0)
    pool = [path.read_text("utf-8") for path in sorted(data.glob("*/*.agent"))]
    pool = [text for text in pool if len(text) < 9000]
    end = time.monotonic() + 60
    while time.monotonic() < end:
        text = mutated(dice.choice(pool), dice, pool)
        try:
            survive(text)
        except Exception as error:
            raise AssertionError(f"{error!r} on {text!r}") from error
