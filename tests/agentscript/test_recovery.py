"""Broken scripts: each mistake is found where a person would point, and hides nothing below it."""

import pytest

from nemo_tau2.agentscript import parse

from .snippets import problems

AFTER = "z: ->\n    set @variables.z == 1\n"
"""A later block with a mistake of its own, which must be found too."""

CASES = [
    ("config\n    a: 1\n", "1:7 missing-token"),
    ('config:\n    agent_name "x"\n', "2:15 missing-token"),
    ('config:\n    a: "x\n    b: "y"\n', "2:8 missing-token"),
    ("a: 1 2\n", "1:6 syntax-error"),
    ("a: $x\n", "1:4 syntax-error"),
    ("a: 'x'\n", "1:4 syntax-error"),
    (': "x"\n', "1:1 syntax-error"),
    ("3x: mutable string\n", "1:1 syntax-error"),
    ('a: "x\\q"\n', "1:6 syntax-error"),
    ("x: mutabel string\n", "1:4 invalid-modifier"),
    ("x: mutable linked string\n", "1:12 syntax-error"),
    ("x: mutable list[string = []\n", "1:16 missing-token"),
    ("a: ->\n    run\n", "2:8 syntax-error"),
    ("a: ->\n    else:\n        run @actions.b\n", "2:5 syntax-error"),
    ("a: ->\n    for x in y:\n        run @actions.b\n", "2:5 syntax-error"),
    ("a: ->\n    if x:\n        run @actions.b\n    elif y:\n        run @actions.c\n",
     "4:5 syntax-error"),
    ("a: ->\n    if x = 1:\n        run @actions.b\n", "2:10 syntax-error"),
    ("a: ->\n    if x\n        run @actions.b\n", "2:9 missing-token"),
    ("a: ->\n    if x: run @actions.b\n", "2:11 syntax-error"),
    ("a: ->\n    if x y:\n        run @actions.b\n", "2:10 syntax-error"),
    ("a: ->\n    if (x == 1:\n        run @actions.b\n", "2:8 missing-token"),
    ("a: ->\n    if x:\n    run @actions.b\n", "2:10 syntax-error"),
    ("a: ->\n", "1:6 syntax-error"),
    ("a: ->\n    b: 1\n", "2:5 syntax-error"),
    ("a: ->\n    set @variables.x == 1\n", "2:22 syntax-error"),
    ("a: ->\n    set @variables.x =\n", "2:23 missing-value"),
    ("a: ->\n    set @variables.x = 1 +\n", "2:27 syntax-error"),
    ("a: ->\n    set @variables.x = @variables.\n", "2:34 syntax-error"),
    ("a: ->\n    set @variables.x = @variables.5\n", "2:34 syntax-error"),
    ("a: ->\n    set @variables.x = @\n", "2:24 syntax-error"),
    ("a: ->\n    set @variables.x = ()\n", "2:25 syntax-error"),
    ("a: ->\n    set @variables.x = len(1,)\n", "2:30 syntax-error"),
    ("a: ->\n    set @variables.x = 1 if True\n", "2:33 syntax-error"),
    ("a: ->\n    set @variables.x = 1\n        run @actions.b\n", "3:9 syntax-error"),
    ("a: ->\n    transition @subagent.x\n", "2:16 missing-token"),
    ("a: ->\n    transition to\n", "2:18 syntax-error"),
    ("go: @utils.transition @subagent.x\n", "1:23 missing-token"),
    ("a: ->\n    run @actions.x\n        with ...\n", "3:9 syntax-error"),
    ("a: ->\n    run @actions.x\n        with b\n", "3:15 missing-token"),
    ("a: ->\n    collect @variables.x\n", "2:25 syntax-error"),
    ("a: | hello {!} there\n", "1:12 syntax-error"),
    ("a: | hello {!@variables.x there\n", "1:12 missing-token"),
    ("a: | hello {!@variables.x y} there\n", "1:27 syntax-error"),
    ("a:\n    - 1\n    b: 2\n", "3:5 syntax-error"),
    ("a:\n    b: 1\n    - 2\n", "3:5 syntax-error"),
    ("a: ->\n    available when\n", "2:19 syntax-error"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[c[0].strip() for c in CASES])
def test_a_mistake_is_found_in_its_place_and_hides_nothing(text: str, expected: str) -> None:
    line = text.count("\n") + 2
    assert problems(text + AFTER) == [expected, f"{line}:22 syntax-error"]


def test_placeholders_are_rejected() -> None:
    assert not parse("config:\n    agent_name: {{name}}\n").ok


def test_a_broken_block_leaves_the_others_whole() -> None:
    script = parse('config:\n    a: "x\nsubagent b:\n    description: "d"\n')
    assert [str(item.key) for item in script.items] == ["config", "subagent b"]
    assert script.items[1].body[0].value.value == "d"


def test_hints() -> None:
    (found,) = parse("a: ->\n    transiton to @subagent.x\n").diagnostics
    assert "did you mean `transition`" in found.message
