"""Against the official compiler: everything the graph holds is equal."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nemo_tau2.agentscript import compile, to_agentjson
from nemo_tau2.agentscript.agentjson import OMITTED
from nemo_tau2.agentscript.conformance import KINDS, check_directory, expected_file, facts
from nemo_tau2.errors import UserError

from .snippets import script


@pytest.mark.parametrize(("folder", "files"), [("scripts", 25), ("pairs", 103)])
def test_nodes_edges_actions_and_tools_are_all_equal(data: Path, folder: str, files: int) -> None:
    report = check_directory(data / folder)
    assert report.differences == []
    assert report.files == files
    for kind in KINDS:
        count = report.counts[kind]
        assert (count.matched, count.extra) == (count.expected, 0)
        assert count.expected > 100


def differing(ours: Any, official: Any, path: str = "") -> Iterator[str]:
    """Paths at which two JSON values differ, with list positions as `[]`."""
    if isinstance(ours, dict) and isinstance(official, dict):
        for key in ours.keys() | official.keys():
            if key in ours and key in official:
                yield from differing(ours[key], official[key], f"{path}.{key}".lstrip("."))
            else:
                yield f"{path}.{key}".lstrip(".")
    elif isinstance(ours, list) and isinstance(official, list) and len(ours) == len(official):
        for one, other in zip(ours, official, strict=True):
            yield from differing(one, other, f"{path}[]")
    elif ours != official or isinstance(ours, bool) != isinstance(official, bool):
        yield path


def test_the_export_equals_the_official_output_in_every_field_it_has(data: Path) -> None:
    for path in sorted(data.glob("*/*.agent")):
        official = json.loads(expected_file(path).read_text("utf-8"))
        paths = set(differing(to_agentjson(compile(path)), official))
        assert paths <= set(OMITTED), path.name


def test_a_difference_is_counted_and_shown(tmp_path: Path) -> None:
    text = script("actions:\n    get: @actions.Get_Order\n")
    official = to_agentjson(compile(text))
    node = official["agent_version"]["nodes"][1]
    node["tools"][0]["llm_inputs"] = []
    node["action_definitions"].pop()
    (tmp_path / "a.agent").write_text(text)
    (tmp_path / "a.agentjson.json").write_text(json.dumps(official))
    report = check_directory(tmp_path).to_json()
    assert report["nodes"] == {"matched": 2, "expected": 2, "extra": 0}
    assert report["tools"] == {"matched": 1, "expected": 2, "extra": 0}
    assert report["actions"] == {"matched": 1, "expected": 1, "extra": 1}
    assert {"file": "a.agent", "kind": "tools", "item": "orders.get", "field": "llm_inputs",
            "expected": [], "ours": ["order_id"]} in report["differences"]  # fmt: skip


def test_a_script_that_does_not_compile_matches_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.agent").write_text("a: $\n")
    (tmp_path / "a.agent.json").write_text(json.dumps(to_agentjson(compile(script()))))
    report = check_directory(tmp_path)
    assert report.counts["nodes"].matched == 0
    assert report.differences[0]["kind"] == "compile"


def test_edges_carry_the_condition_of_their_transition() -> None:
    text = script() + (
        "    after_reasoning:\n        if @variables.verified:\n"
        "            transition to @subagent.router\n"
    )
    edge = facts(to_agentjson(compile(text)))["edges"]["orders -> router (after_reasoning)"]
    assert re.fullmatch(r".*condition_1.*", edge["set_when"])


@pytest.mark.parametrize("content", ["[]", "{", '{"agent_version": {}}', '"x"'])
def test_what_is_not_agentjson_is_said_so(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.agent").write_text(script())
    (tmp_path / "a.agent.json").write_text(content)
    with pytest.raises(UserError, match="not AgentJSON"):
        check_directory(tmp_path)


def test_a_directory_without_pairs_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no X\.agent"):
        check_directory(tmp_path)
    with pytest.raises(UserError, match="not a directory"):
        check_directory(tmp_path / "none")
