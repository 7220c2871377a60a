"""`nemo-tau2 spec`, as a user types it."""

import json
from pathlib import Path

import pytest

from nemo_tau2.cli.main import main

from .snippets import script
from .test_lint import CLEAN


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    path = tmp_path / "shop.agent"
    path.write_text(CLEAN)
    return path


def spec(*words: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(["spec", *map(str, words)])
    return exit_.value.code


def test_check(clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("check", clean) == 0
    bad = tmp_path / "bad.agent"
    bad.write_text(CLEAN.replace("@subagent.router", "@subagent.nowhere"))
    assert spec("check", clean, bad) == 1
    out = capsys.readouterr().out
    before, _, _ = bad.read_text().partition("@subagent.nowhere")
    place = f"{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"
    assert f"{bad}:{place} undefined-reference `nowhere` is not defined" in out


def test_check_as_json_and_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.agent"
    path.write_text("a: $\n")
    assert spec("check", path, "--format", "json") == 1
    last = json.loads(capsys.readouterr().out)[-1]
    assert (last["code"], last["line"], last["column"]) == ("syntax-error", 1, 4)
    assert spec("check", path, "--format", "sarif") == 1
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    results = log["runs"][0]["results"]
    region = results[-1]["locations"][0]["physicalLocation"]["region"]
    assert (results[-1]["ruleId"], region["startColumn"]) == ("syntax-error", 4)
    assert {r["id"] for r in log["runs"][0]["tool"]["driver"]["rules"]} == {
        r["ruleId"] for r in results
    }


def test_check_reads_the_sidecar(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean.with_suffix(".tau2.yaml").write_text("effects: {Nope: read}\n")
    assert spec("check", clean) == 1
    assert "nt-sidecar" in capsys.readouterr().out


def test_compile(clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean.with_suffix(".tau2.yaml").write_text("loop: {max_turns: 7}\n")
    assert spec("compile", clean) == 0
    graph = json.loads(capsys.readouterr().out)
    assert graph["loop"]["max_turns"] == 7
    assert [n["name"] for n in graph["nodes"]] == ["router", "orders", "HUMAN", "END"]
    output = tmp_path / "out.json"
    assert spec("compile", clean, "--format", "agentjson", "--output", output) == 0
    assert json.loads(output.read_text())["schema_version"] == "2.0"


def test_show(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spec("show", clean) == 0
    assert 'n1 -->|"@variables.note is not None"| n0' in capsys.readouterr().out
    assert spec("show", clean, "--format", "svg") == 0
    assert capsys.readouterr().out.startswith("<svg ")


def test_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.agent"
    path.write_text("a:\n  b:  1 # c\n")
    assert spec("format", path) == 0
    assert capsys.readouterr().out == "a:\n    b: 1  # c\n"
    assert spec("format", path, "--check") == 1
    assert spec("format", path, "--write") == 0
    assert path.read_text() == "a:\n    b: 1  # c\n"
    assert spec("format", path, "--check") == 0


def test_format_does_not_touch_what_it_cannot_read(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.agent", tmp_path / "bad.agent"
    good.write_text("a:  1\n")
    bad.write_text("a: $\n")
    assert spec("format", good, bad, "--write") == 2
    assert good.read_text() == "a:  1\n"


def test_conformance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from nemo_tau2.agentscript import compile, to_agentjson

    (tmp_path / "a.agent").write_text(script())
    (tmp_path / "a.agent.json").write_text(json.dumps(to_agentjson(compile(script()))))
    assert spec("conformance", tmp_path, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["nodes"]["matched"] == report["nodes"]["expected"] == 2
    assert report["differences"] == []
    (tmp_path / "a.agent").write_text(script().replace("subagent orders", "subagent other"))
    assert spec("conformance", tmp_path) == 1
    assert "nodes    1/2" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["check"], ["check", "/none.agent"], ["compile", "/none.agent"], ["conformance", "/none"],
     ["format"], ["compile"], ["show", "/none.agent"]],
)  # fmt: skip
def test_bad_use_exits_with_two(words: list[str]) -> None:
    assert spec(*words) == 2


def test_a_sidecar_that_is_not_yaml(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean.with_suffix(".tau2.yaml").write_text("a: [\n")
    assert spec("compile", clean) == 2
    assert "not YAML" in capsys.readouterr().err
