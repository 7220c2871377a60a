"""Findings stored beside the rows, the judge model for what no rule decides, and the tables of patterns."""

import json

import pytest

from nemo_tau2.cli.main import main
from nemo_tau2.errors import UserError
from nemo_tau2.evaluation import load
from nemo_tau2.evaluation.stored import Stored, beside, reblame
from tests.evaluation.test_planted import BLAMED, DID, PATTERNS, READ, call, row, said
from tests.rollouts.stub import chat_endpoint

UNDECIDED = row(READ, DID[0], said("assistant", "Done."), said("user", "Thanks. ###STOP###"))
MISTAKE = PATTERNS["over_action"]


def run(*arguments):
    with pytest.raises(SystemExit) as raised:
        main([str(argument) for argument in arguments])
    return raised.value.code


def store(folder, *rows):
    folder.mkdir(exist_ok=True)
    numbered = [planted | {"trial": n} for n, planted in enumerate(rows)]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(r) + "\n" for r in numbered))
    return folder / "rollouts.jsonl"


def blamed(path):
    return [outcome.blame for outcome in load([path]).outcomes]


class TestReblame:
    def test_it_writes_findings_beside_the_rows_and_says_what_changed(self, tmp_path, capsys):
        file = store(tmp_path / "run", MISTAKE, UNDECIDED)
        assert run("report", tmp_path / "run", "--reblame") == 0
        assert "2 rows, 0 changed, 2 new" in capsys.readouterr().err
        path = beside(file, "findings")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert path.name == "findings.jsonl" and [x["trial"] for x in lines] == [0, 1]
        lines[0]["blame"] |= {"kind": "task", "about": "gold_error"}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert blamed(file)[0].kind == "task", "stored findings are shown"
        assert run("report", file, "--reblame", "--json") == 0
        summary = json.loads(capsys.readouterr().out)["reblame"][0]
        assert (summary["changed"], summary["new"]) == (1, 0)
        assert summary["moves"] == {"task/gold_error -> policy/over_action": 1}
        assert blamed(file)[0].kind == "policy"

    def test_findings_of_other_rules_or_other_rows_are_not_used(self, tmp_path):
        file = store(tmp_path / "run", MISTAKE)
        reblame(file)
        path = beside(file, "findings")
        stored = json.loads(path.read_text())
        stored["blame"]["kind"] = "harness"
        for change in ({"rules_version": "0"}, {"row_sha256": "0"}):
            path.write_text(json.dumps(stored | change) + "\n")
            assert blamed(file)[0].kind == "policy"

    def test_a_second_time_nothing_changes(self, tmp_path):
        file = store(tmp_path / "run", *BLAMED.values(), *PATTERNS.values())
        first = [load([file]).outcomes, reblame(file)["rows"]]
        assert [load([file]).outcomes, reblame(file)["changed"]] == [first[0], 0]

    def test_files_of_another_name_have_findings_of_their_own(self, tmp_path):
        assert beside(tmp_path / "a.jsonl", "findings").name == "a.findings.jsonl"

    def test_a_broken_file_of_findings_is_one_clear_line(self, tmp_path):
        file = store(tmp_path / "run", MISTAKE)
        for broken in ("{", "[]", '{"row_sha256": 1}', "[" * 100_000):
            beside(file, "findings").write_text(broken)
            with pytest.raises(UserError, match=r"findings.jsonl, line 1: .* --reblame"):
                load([file])
        assert reblame(file)["new"] == 1


def answer(
    party="user_simulator", about="contradicted_instructions", line=4, quote="thanks", **more
):
    given = {"party": party, "about": about, "line": line, "quote": quote, "reason": "r", **more}
    return {"content": json.dumps(given)}


def judge(folder, url, model="j"):
    return run("report", folder, "--judge-url", url, "--judge-model", model)


class TestJudge:
    def test_it_is_asked_about_undecided_failures_only_and_once(self, tmp_path, capsys):
        file = store(tmp_path / "run", MISTAKE, UNDECIDED, *BLAMED.values())
        with chat_endpoint(answer()) as (url, requests):
            assert judge(tmp_path / "run", url) == 0
            asked = len(requests)
            assert judge(tmp_path / "run", url) == 0
        assert asked == len(requests) == 1
        assert "asked about 0 undecided failures (0 of them stay so), 1 had" in " ".join(
            capsys.readouterr().err.split()
        )
        verdict = blamed(file)[1]
        assert (verdict.kind, verdict.about, verdict.by) == (
            "user_simulator", "contradicted_instructions", "judge",
        )  # fmt: skip
        assert "line 4: 'thanks'" in verdict.evidence
        stored = json.loads(beside(file, "judged").read_text())
        assert stored["model"] == "j" and len(stored["prompt_version"]) == 12

    def test_it_never_overturns_a_rule(self, tmp_path):
        file = store(tmp_path / "run", UNDECIDED)
        with chat_endpoint(answer()) as (url, _):
            judge(tmp_path / "run", url)
        line = json.loads(beside(file, "judged").read_text())
        decided = [MISTAKE | {"trial": 0}, *(r | {"trial": 0} for r in BLAMED.values())]
        from nemo_tau2.evaluation.stored import row_sha256

        forged = [line | {"row_sha256": row_sha256(r)} for r in decided]
        beside(file, "judged").write_text("".join(json.dumps(one) + "\n" for one in forged))
        stored = Stored(file)
        assert all(stored.of(r)[1].by == "rule" for r in decided)

    @pytest.mark.parametrize(
        "content",
        [
            "The user is to blame.",
            "",
            "[]",
            '{"party": "user_simulator"}',
            "{" * 50_000,
            '{"party": ' * 2_000,
            "x" * 20_000,
            answer(quote="never said")["content"],
            answer(line=3, quote="Done")["content"],
            answer(line=99)["content"],
            answer(line=True)["content"],
            answer(party="harness")["content"],
            answer(party=["user_simulator"])["content"],
            answer(about={"a": 1})["content"],
            answer(quote="")["content"],
        ],
    )
    def test_an_answer_that_breaks_the_contract_leaves_it_undecided(self, tmp_path, content):
        file = store(tmp_path / "run", UNDECIDED)
        with chat_endpoint({"content": content}) as (url, requests):
            assert judge(tmp_path / "run", url) == 0
            assert judge(tmp_path / "run", url) == 0
        assert len(requests) == 3, "three attempts, then kept"
        [verdict] = blamed(file)
        assert verdict.kind == "policy" and verdict.by == "default"
        assert verdict.evidence.startswith("undecided, counted as policy")

    def test_a_second_answer_may_be_the_good_one(self, tmp_path):
        file = store(tmp_path / "run", UNDECIDED)
        with chat_endpoint({"content": "hm"}, answer()) as (url, _):
            judge(tmp_path / "run", url)
        assert blamed(file)[0].kind == "user_simulator"

    def test_an_endpoint_that_is_gone_is_one_line_and_keeps_what_there_is(self, tmp_path, capsys):
        file = store(tmp_path / "run", UNDECIDED)
        with chat_endpoint((400, {"error": {"message": "no"}})) as (url, _):
            assert judge(tmp_path / "run", url) == 2
        [line] = [x for x in capsys.readouterr().err.splitlines() if "judge" in x]
        assert "run it again to go on" in line
        assert beside(file, "judged").read_text() == ""

    def test_a_line_torn_by_a_crash_is_asked_about_again(self, tmp_path):
        file = store(tmp_path / "run", UNDECIDED)
        with chat_endpoint(answer()) as (url, requests):
            judge(tmp_path / "run", url)
            path = beside(file, "judged")
            whole = path.read_text()
            path.write_text(whole[:-20])
            assert blamed(file)[0].by == "default"
            judge(tmp_path / "run", url)
        assert len(requests) == 2 and path.read_text() == whole

    def test_another_model_is_asked_anew(self, tmp_path):
        store(tmp_path / "run", UNDECIDED)
        with chat_endpoint(answer()) as (url, requests):
            judge(tmp_path / "run", url, "one")
            judge(tmp_path / "run", url, "two")
        assert len(requests) == 2

    def test_a_long_conversation_is_shown_in_bounds(self, tmp_path):
        talk = [said(("assistant", "user")[n % 2], f"{n} " + "x" * 50_000) for n in range(400)]
        store(tmp_path / "run", row(READ, *talk))
        with chat_endpoint(answer("undecided", "unclear")) as (url, requests):
            judge(tmp_path / "run", url)
        assert len(requests[0]["messages"][1]["content"]) < 300_000

    @pytest.mark.parametrize("flags", [["--judge-url", "http://x/v1"], ["--judge-model", "m"]])
    def test_half_a_judge_is_refused(self, tmp_path, flags):
        store(tmp_path / "run", UNDECIDED)
        assert run("report", tmp_path / "run", *flags) == 2


class TestTables:
    def test_patterns_by_gold_actions_tool_and_parameter(self, tmp_path, capsys):
        wrong = row(READ, call("book", {"id": "A", "seat": "9Z"}, "soft_match"), DID[1])
        short = row(READ, wanted=UNDECIDED["task"]["gold_actions"][:2])
        store(tmp_path / "run", wrong, wrong, UNDECIDED, short)
        part = load([tmp_path / "run"]).as_dict()["domains"]["d"]
        assert part["patterns_by_gold"] == {
            "2": {"rollouts": 1, "failed": 1, "patterns": {"skipped_tool_call": 1}},
            "3": {
                "rollouts": 3,
                "failed": 3,
                "patterns": {"wrong_parameter": 2, "skipped_tool_call": 1},
            },
        }
        assert part["patterns_by_tool"] == {
            "book": {"wrong_parameter": 2, "skipped_tool_call": 1},
            "cancel": {"skipped_tool_call": 1},
        }
        assert part["wrong_parameters"] == {"book.seat": 2}
        assert part["blame_by_rule"] == {"policy": {"undecided": 2, "wrong_parameter": 2}}
        assert run("report", tmp_path / "run") == 0
        out = capsys.readouterr().out
        assert "patterns by tool" in out and "book.seat 2" in out

    def test_an_unearned_success_is_the_tasks_and_no_failure(self, tmp_path):
        store(tmp_path / "run", PATTERNS["reward_by_inaction"])
        part = load([tmp_path / "run"]).as_dict()["domains"]["d"]
        assert part["blame"] == {} and part["blame_by_rule"] == {"task": {"null_solvable": 1}}


class TestLoad:
    def test_an_output_that_is_no_list_is_named(self, tmp_path):
        for broken in (7, {"a": 1}, [7], "text"):
            store(tmp_path / "run", UNDECIDED | {"response": {"output": broken}})
            with pytest.raises(
                UserError, match=r"task t, trial 0: .*output is not a list of items"
            ):
                load([tmp_path / "run"])

    def test_a_missing_field_is_named(self, tmp_path):
        store(tmp_path / "run", {k: v for k, v in UNDECIDED.items() if k != "reward"})
        with pytest.raises(UserError, match="task t, trial 0: the row has no 'reward'"):
            load([tmp_path / "run"])

    def test_the_same_task_and_trial_in_two_runs_is_said(self, tmp_path):
        a, b = store(tmp_path / "a", MISTAKE, UNDECIDED), store(tmp_path / "b", MISTAKE)
        [line] = [w for w in load([a, b]).as_dict()["warnings"] if "task and trial" in w]
        assert line.startswith(
            "1 rollouts have the task and trial of another one (the first: d t, trial 0"
        )
        assert load([a]).warnings == []

    def test_one_file_given_twice_is_refused(self, tmp_path):
        store(tmp_path / "a", MISTAKE)
        with pytest.raises(UserError, match="given twice"):
            load([tmp_path / "a", tmp_path / "a" / "rollouts.jsonl"])
