"""`data sft`: verified successes, one example per policy turn, loss on the target only (K34, K35)."""

import asyncio
import importlib.util
import json
from pathlib import Path

import pytest

from nemo_tau2.chat_items import chat_tools
from nemo_tau2.datasets.chat_template import load_template
from nemo_tau2.datasets.sft import Kept, examples, split_cases, tools_at, unusable
from nemo_tau2.errors import UserError
from nemo_tau2.rollouts.direct import play_episode
from nemo_tau2.simulation.factory import new_episode
from nemo_tau2.simulation.policies import Oracle
from tests.koa.conftest import built, lines, run

PLAIN = Path(__file__).with_name("plain.jinja")


def oracle_of(episode):
    """The oracle as a chat completion."""
    oracle = Oracle()

    async def complete(messages, tools):
        (item,) = oracle(episode, episode.tools())
        if item["type"] == "message":
            return {"content": item["content"][0]["text"]}
        function = {"name": item["name"], "arguments": item["arguments"]}
        return {"content": None, "tool_calls": [{"id": f"c{len(messages)}", "function": function}]}

    return complete


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    rows, _ = built(tmp_path_factory.mktemp("sft"), "routed", prefixes="0 2", scenarios=6)
    found = []
    for row in rows:
        episode = new_episode(row)
        found.append(asyncio.run(play_episode(row, episode, oracle_of(episode))))
    return found


@pytest.fixture
def stored(played, tmp_path):
    path = tmp_path / "rollouts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in played))
    return tmp_path


def solved(played):
    return [row for row in played if unusable(row) is None]


def made(row, template=PLAIN, limit=10**6):
    return list(examples(row, load_template(str(template)), limit, Kept()))


class TestSessions:
    def test_only_verified_successes(self, played):
        row = solved(played)[0]
        assert unusable(row | {"reward": 0.5}) == "not solved"
        assert unusable(row | {"mask_sample": True}) == "masked"
        assert unusable(row | {"num_tool_errors": 1}) == "a call failed"
        assert unusable(row | {"turn_output_indices": []}) == "no trajectory"

    def test_cases_are_split_before_turns(self, played):
        splits = split_cases(solved(played), 0.3, 0)
        assert set(splits.values()) == {"train", "validation"}
        scenarios = {row["verifier_metadata"]["scenario_id"] for row in solved(played)}
        assert {case for _, _, case in splits} == scenarios  # personas and depths stay together


class TestExamples:
    def test_one_per_policy_turn(self, played):
        for row in solved(played):
            assert [e["turn"] for e in made(row)] == list(range(row["num_turns"]))

    def test_a_prefix_is_no_target(self, played):
        row = next(r for r in solved(played) if r["verifier_metadata"]["prefix"])
        first = made(row)[0]
        said = sum(
            m["role"] == "assistant" and bool(m.get("tool_calls")) for m in first["messages"]
        )
        assert said == 3  # two of the prefix, then the target

    def test_the_target_is_the_turn_and_nothing_else(self, played):
        row = next(r for r in solved(played) if not r["verifier_metadata"]["prefix"])
        item = row["response"]["output"][row["turn_output_indices"][0]]
        assert item["name"] == "verify_identity"
        assert made(row)[0]["completion"] == "<call>verify_identity</call><|end|>\n"
        assert made(row)[0]["prompt"].endswith("<|assistant|>")

    def test_prompt_and_target_join_to_the_whole_conversation(self, played):
        """Where the tools stay the same, each example is a beginning of one render."""
        for row in solved(played):
            last = made(row)[-1]
            whole = last["prompt"] + last["completion"]
            for example in made(row):
                assert example["matches_whole"]
                if example["tools"] == last["tools"]:
                    assert whole.startswith(example["prompt"] + example["completion"])

    def test_the_tools_are_those_visible_at_the_turn(self, played):
        row = solved(played)[0]
        assert len({json.dumps(e["tools"]) for e in made(row)}) > 1
        for example in made(row):
            names = [t["function"]["name"] for t in example["tools"]]
            calls = example["messages"][-1].get("tool_calls") or []
            assert {c["function"]["name"] for c in calls} <= set(names)

    def test_too_long_ones_are_left_out(self, played):
        row = solved(played)[0]
        lengths = [e["tokens"] for e in made(row)]
        limit = sorted(lengths)[len(lengths) // 2]
        assert [e["tokens"] for e in made(row, limit=limit)] == [n for n in lengths if n <= limit]

    def test_the_estimate_is_conservative(self):
        assert load_template(str(PLAIN)).count("x" * 1000) == 400


class TestTemplates:
    def test_one_that_rewrites_history_is_declared(self, played, tmp_path):
        path = tmp_path / "rewriting.jinja"
        # Every assistant message but the last is replaced, as templates do with earlier thoughts.
        text = PLAIN.read_text().replace(
            "{{ m.content or '' }}",
            "{% if m.role == 'assistant' and not loop.last %}[gone]{% else %}{{ m.content or '' }}{% endif %}",
        )
        path.write_text(text)
        found = made(solved(played)[0], path)
        assert any(not example["matches_whole"] for example in found)

    def test_one_that_opens_a_thought_starts_the_target_where_both_agree(self, played, tmp_path):
        path = tmp_path / "thinking.jinja"
        path.write_text(
            PLAIN.read_text().replace("<|assistant|>{% endif %}", "<|assistant|><think>{% endif %}")
        )
        example = made(solved(played)[0], path)[0]
        assert not example["matches_whole"]
        assert example["prompt"].endswith("<|assistant|><") and "think" not in example["completion"]

    def test_one_that_refuses_is_named(self, played, tmp_path):
        path = tmp_path / "refusing.jinja"
        path.write_text("{{ raise_exception('no system message here') }}")
        with pytest.raises(UserError, match=r"refuses the conversation .*no system message"):
            made(solved(played)[0], path)

    def test_files_run_in_a_sandbox(self, played, tmp_path):
        path = tmp_path / "hostile.jinja"
        path.write_text("{{ messages.__class__.__mro__ }}")
        with pytest.raises(UserError, match="refuses"):
            made(solved(played)[0], path)

    @pytest.mark.skipif(
        importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
    )
    def test_a_tokenizer_renders_the_same(self, played, tmp_path):
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast

        inner = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        inner.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]")
        tokenizer.chat_template = PLAIN.read_text()
        tokenizer.save_pretrained(tmp_path)
        keys = ("prompt", "completion")
        ours, theirs = made(solved(played)[0]), made(solved(played)[0], tmp_path)
        assert [[e[k] for k in keys] for e in ours] == [[e[k] for k in keys] for e in theirs]


def test_a_routed_row_without_its_tools_is_refused(played):
    row = {k: v for k, v in solved(played)[0].items() if k != "tool_changes"}
    with pytest.raises(UserError, match="tool_changes"):
        tools_at(row, 0)


def test_recorded_tools_are_what_the_policy_saw(played):
    row = solved(played)[0]
    seen = asyncio.run(new_episode(row).seed())
    assert chat_tools(tools_at(row, 0)) == chat_tools(seen.tools)


class TestVerb:
    def test_it_writes_both_files(self, stored, capsys):
        output = stored / "sft.jsonl"
        flags = ["--model", PLAIN, "--output", output, "--validation", "0.3"]
        assert run("data", "sft", stored, *flags) == 0
        train, held = lines(output), lines(stored / "sft_validation.jsonl")
        groups = [{e["session"]["task_id"].split("/")[2] for e in part} for part in (train, held)]
        assert train and held and not groups[0] & groups[1]
        assert "rendered as in the whole" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "no session can be used (empty)"),
            ('{"reward": 0.0}\n', "no session can be used (1 not solved)"),
            ('{"reward": 1', "line 1: not JSON"),
        ],
    )
    def test_bad_rollouts(self, tmp_path, capsys, text, words):
        (tmp_path / "rollouts.jsonl").write_text(text)
        flags = ["--model", PLAIN, "--output", tmp_path / "out.jsonl"]
        assert run("data", "sft", tmp_path, *flags) == 2
        assert words in capsys.readouterr().err and not (tmp_path / "out.jsonl").exists()

    def test_a_missing_template(self, stored, capsys):
        flags = ["--model", "no.jinja", "--output", stored / "out.jsonl"]
        assert run("data", "sft", stored, *flags) == 2
        assert "no.jinja: cannot be read" in capsys.readouterr().err
