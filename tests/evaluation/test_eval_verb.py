"""`nemo-tau2 eval` and `report`, end to end with a scripted policy and with endpoints."""

import json

import pytest

from nemo_tau2.cli.main import main
from tests.rollouts.stub import chat_endpoint


def run(*arguments):
    with pytest.raises(SystemExit) as raised:
        main([str(argument) for argument in arguments])
    return raised.value.code


def evaluate(output, *more):
    return run("eval", "--backend", "direct", "--output", output, *more)


def test_a_rehearsal_without_models_reports_every_domain(tmp_path, capsys):
    assert evaluate(tmp_path, "--limit", 3, "--trials", 2) == 0
    assert "airline" in capsys.readouterr().out
    assert run("report", *(tmp_path / d for d in ("airline", "retail", "telecom")), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["domains"]) == {"airline", "retail", "telecom"}
    assert found["overall"]["denominators"]["planned"] == 18
    assert set(found["domains"]["airline"]["pass_k"]) == {"1", "2"}


def test_endpoints_are_evaluated_and_named_in_every_row(tmp_path):
    with (
        chat_endpoint({"content": "Goodbye."}) as (url, _),
        chat_endpoint("###STOP###") as (user, _),
    ):
        flags = [
            "--policy-url",
            url,
            "--policy-model",
            "p",
            "--user-url",
            user,
            "--user-model",
            "u",
        ]
        more = [
            "--domains",
            "airline",
            "--limit",
            2,
            "--trials",
            1,
            "--policy-sampling",
            '{"temperature": 1.0}',
        ]
        assert evaluate(tmp_path, *flags, *more) == 0
    for line in (tmp_path / "airline" / "rollouts.jsonl").read_text().splitlines():
        noted = json.loads(line)["provenance"]
        assert (noted["policy"]["model"], noted["policy"]["sampling"]) == (
            "p",
            {"temperature": 1.0},
        )
        assert (noted["user"]["model"], noted["user"]["sampling"]) == ("u", {"temperature": 0.0})


def test_resume_goes_on_with_the_next_domain(tmp_path):
    evaluate(tmp_path, "--domains", "airline", "--limit", 2, "--trials", 1)
    before = (tmp_path / "airline" / "rollouts.jsonl").read_bytes()
    assert (
        evaluate(tmp_path, "--domains", "airline,retail", "--limit", 2, "--trials", 1, "--resume")
        == 0
    )
    assert (tmp_path / "airline" / "rollouts.jsonl").read_bytes() == before
    assert (tmp_path / "retail" / "rollouts.jsonl").exists()


def test_every_domain_is_planned_before_the_first_is_played(tmp_path, monkeypatch):
    monkeypatch.setattr("nemo_tau2.rollouts.run.run", lambda *_: 130)
    assert evaluate(tmp_path, "--domains", "airline,retail", "--limit", 2, "--trials", 3) == 130
    planned = [
        json.loads((tmp_path / d / "planned.json").read_text()) for d in ("airline", "retail")
    ]
    assert planned == [{"airline": {"0": 3, "1": 3}}, {"retail": {"0": 3, "1": 3}}]


def test_tokens_are_counted_where_the_endpoint_says_them(tmp_path):
    message = {"role": "assistant", "content": "Goodbye."}
    said = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": said,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}  # fmt: skip
    flags = ["--domains", "airline", "--limit", 1, "--trials", 1, "--max-turns", 2]
    with chat_endpoint((200, body)) as (url, _), chat_endpoint("Go on.") as (user, _):
        flags += [
            "--policy-url",
            url,
            "--policy-model",
            "p",
            "--user-url",
            user,
            "--user-model",
            "u",
        ]
        assert evaluate(tmp_path, *flags) == 0
    row = json.loads((tmp_path / "airline" / "rollouts.jsonl").read_text())
    turns = row["num_turns"]
    assert row["response"]["usage"] == {
        "input_tokens": 10 * turns, "output_tokens": 5 * turns, "total_tokens": 15 * turns,
    }  # fmt: skip


@pytest.mark.parametrize(
    "flags", [["--domains", "bank"], ["--split", "dev"], ["--policy-url", "http://x/v1"]]
)
def test_bad_flags_exit_with_2_before_anything_is_played(tmp_path, flags):
    assert evaluate(tmp_path / "out", *flags) == 2
    assert not (tmp_path / "out" / "airline" / "rollouts.jsonl").exists()


def test_an_empty_and_a_torn_file_give_a_clear_line(tmp_path, capsys):
    (tmp_path / "empty.jsonl").write_text("")
    assert run("report", tmp_path / "empty.jsonl") == 2
    (tmp_path / "torn.jsonl").write_text('{"domain": "air')
    assert run("report", tmp_path / "torn.jsonl") == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2 and "torn.jsonl, line 1" in lines[1]
