"""Every `nemo-tau2` command in a code block of the documentation is one that the CLI accepts.

Flags and choices are checked, files are not: a page may speak of rows that its reader will make.
"""

import re
import shlex
from pathlib import Path

import pytest

from nemo_tau2.cli.main import build_app

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "nemo_tau2" / "gym_root" / "environments").glob("*/README.md")),
]
ELLIPSES = ("…", "...", "|", "$(")


def commands(page: Path) -> list[str]:
    blocks = re.findall(
        r"^```(?:\w*)\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [
        line
        for line in lines
        if line.startswith("nemo-tau2 ") and not any(part in line for part in ELLIPSES)
    ]


CASES = [(str(page.relative_to(ROOT)), line) for page in PAGES for line in commands(page)]


@pytest.mark.parametrize(("page", "line"), CASES)
def test_it_is_accepted(page, line):
    tokens = shlex.split(line, comments=True)[1:]
    if ">" in tokens:
        tokens = tokens[: tokens.index(">")]
    build_app().parse_args(tokens, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("name", ["support_flat", "service_routed", "tool_sandbox", "pivot_turn"])
def test_an_environment_says_how_to_make_rows_play_and_choose_them(name):
    lines = [line for page, line in CASES if page.endswith(f"environments/{name}/README.md")]
    verbs = [" ".join(line.split()[1:3]) for line in lines]
    assert verbs[:4] == ["spec rows", "rollout --rows", f"report runs/{name}", "data select"]
