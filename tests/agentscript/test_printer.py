"""Formatting: print and parse give the same tree; the layout is canonical."""

from pathlib import Path

import pytest

from nemo_tau2.agentscript import parse, print_script

from .snippets import parsed

UNTIDY = """\
# top
config:
  agent_name:   "x"   # name


subagent  a :
\tinstructions:|
\t\tone
\t\t  two
\tp: ->
\t  if   (a)==1 :
\t    with  b=1,c = ...
\t  else:
\t    | x
\t      y
"""
TIDY = """\
# top
config:
    agent_name: "x"  # name

subagent a:
    instructions: |
        one
          two
    p: ->
        if (a) == 1:
            with b = 1, c = ...
        else:
            | x
              y
"""


def test_the_canonical_layout() -> None:
    assert print_script(parsed(UNTIDY)) == TIDY


@pytest.mark.parametrize(
    "text",
    [
        "a: |\n\n    blank first\n",
        "a: | x\n      y\n\n     z\n",
        "a: |x\n    y\n",
        "a:\n    - k: | t\n           u\n      l: 1\n",
        'a: "q\\"\\n"\n"k k": 1\n',
        "a: [\n    1, # one\n    2\n] # end\n",
        "a: ->\n    transition to @b.c, with d = 1\n    set x = -1\n",
    ],
)
def test_print_then_parse_is_the_identity(text: str) -> None:
    script = parsed(text)
    again = parsed(print_script(script))
    assert again == script
    assert print_script(again) == print_script(script)


def test_the_official_scripts_round_trip(data: Path) -> None:
    for path in sorted(data.glob("*/*.agent")):
        script = parse(path)
        again = parse(print_script(script))
        assert again.ok, path.name
        assert again == script, path.name
