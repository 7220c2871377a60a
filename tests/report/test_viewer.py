"""The viewer's page: what it holds, that it is whole, and that rows cannot break out of it."""

import gzip
import json
import re
from base64 import b64decode

import pytest

from nemo_tau2.cli.main import main
from nemo_tau2.errors import UserError
from nemo_tau2.report.viewer import write_viewer
from nemo_tau2.report.viewer.page import SCRIPTS, asset, pack
from nemo_tau2.report.viewer.records import dialogue
from tests.report.rows import HOSTILE, call, row, said, write

BLOCK = re.compile(r'<script type="application/gzip" id="(\w+)">([A-Za-z0-9+/=]*)</script>')


def blocks(page):
    """Block name to value, and the page without the blocks."""
    text = page.read_text(encoding="utf-8")
    found = {name: json.loads(gzip.decompress(b64decode(b))) for name, b in BLOCK.findall(text)}
    return found, BLOCK.sub("", text)


def build(tmp_path, *rows):
    page = tmp_path / "page.html"
    write_viewer([write(tmp_path / "rollouts.jsonl", rows)], page)
    return blocks(page)


def test_tool_changes_are_shown_as_what_came_and_went(tmp_path):
    tools = [[{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "c"}], [{"name": "b"}]]
    changes = [{"turn": 2 * n, "tools": some} for n, some in enumerate(tools)]
    found, _ = build(tmp_path, row(tool_changes=changes), row(trial=1))
    assert found["r0"]["tool_changes"] == [
        {"turn": 0, "added": ["a", "b"], "gone": [], "visible": 2},
        {"turn": 2, "added": ["c"], "gone": ["a"], "visible": 2},
        {"turn": 4, "added": [], "gone": ["c"], "visible": 1},
    ]
    assert found["r1"]["tool_changes"] == []


def test_a_greeting_of_the_environment_is_no_turn_of_the_policy():
    items = [
        said("assistant", "Hi! How can I help?"),
        said("user", "hello"),
        said("assistant", "Yes?"),
        *call("a", "{}", "A"),
        said("assistant", "bye"),
    ]
    shown = dialogue(items, {"turn_output_indices": [3, 5], "call_tiers": [["error"], []]})
    assert [(i["kind"], i.get("turn")) for i in shown] == [
        ("message", None), ("message", None), ("message", 0), ("call", 0), ("message", 1),
    ]  # fmt: skip


def test_a_customers_questions_are_shown_with_their_verdicts(tmp_path):
    asked = [{"number": 1, "text": "When?"}, {"number": 2, "text": "Where?"}]
    info = {"coverage": 0.5, "verdicts": {"1": True, "2": True}, "resolved": [1]}
    found, _ = build(
        tmp_path, row(reward_info=info, verifier_metadata={"questions": asked}), row(trial=1)
    )
    assert [(q["number"], q["judged"], q["resolved"]) for q in found["r0"]["questions"]] == [
        (1, True, True),
        (2, True, False),
    ]
    assert found["r1"]["questions"] == []


def test_each_rollout_is_its_own_block_and_prompts_are_shared(tmp_path):
    found, _ = build(tmp_path, row(trial=0), row(trial=1, reward=0.0), row(task="2"))
    assert sorted(found) == ["c0", "g0", "g1", "index", "r0", "r1", "r2"]
    assert found["c0"]["prompt"] == "Be kind."
    assert [line["group"] for line in found["index"]["rollouts"]] == [0, 0, 1]
    assert [line["outcome"] for line in found["index"]["rollouts"]] == [
        "passed",
        "failed",
        "passed",
    ]


def test_dialogue_pairs_calls_with_results_and_knows_turns():
    items = [
        *call("a", "{}", "A"),
        {"type": "reasoning", "summary": [{"text": "hm"}]},
        {"type": "function_call", "call_id": "x", "name": "b", "arguments": "{}"},
        {"type": "function_call", "call_id": "x", "name": "c", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "x", "output": "B"},
        {"type": "function_call_output", "call_id": "x", "output": "C"},
        {"type": "function_call_output", "call_id": "x", "output": "nobody asked"},
        said("user", "and?"),
        said("assistant", "bye"),
    ]
    tiers = [["gold_exact"], ["error", "duplicate"], []]
    shown = dialogue(items, {"turn_output_indices": [0, 4, 9], "call_tiers": tiers})
    calls = [(i["name"], i["turn"], i["tier"], i["result"]) for i in shown if i["kind"] == "call"]
    assert calls == [
        ("a", 0, "gold_exact", "A"),
        ("b", 1, "error", "B"),
        ("c", 1, "duplicate", "C"),
    ]
    rest = [(i["kind"], i.get("turn")) for i in shown if i["kind"] != "call"]
    assert rest == [("reasoning", 1), ("result", None), ("message", None), ("message", 2)]


def test_a_prefix_belongs_to_no_turn_and_takes_no_tier():
    items = [*call("a", "{}", "A"), said("user", "and?"), *call("b", "{}", "B")]
    shown = dialogue(items, {"turn_output_indices": [3], "call_tiers": [["grounding_call"]]})
    calls = [(i["name"], i["turn"], i["tier"]) for i in shown if i["kind"] == "call"]
    assert calls == [("a", None, None), ("b", 0, "grounding_call")]


def test_advantages_by_hand_and_masked_rollouts_stay_out(tmp_path):
    rows = row(trial=0, reward=1.0), row(trial=1, reward=0.0), row(trial=2, reward=0.0, masked=True)
    found, _ = build(tmp_path, *rows)
    won, lost, masked = (member["advantages"] for member in found["g0"])
    # Outcomes 1 and 0: mean 1/2, sample deviation 1/√2, so ±1/√2 on every turn.
    assert won["grpo"] == pytest.approx([0.5**0.5] * 2, abs=1e-5)
    assert lost["grpo"] == pytest.approx([-(0.5**0.5)] * 2, abs=1e-5)
    # Returns at γ = 0.9: 1 + 0.81 and 0.9 against 0; the baseline is the one other rollout.
    assert won["turn_rloo"] == pytest.approx([1.81, 0.9])
    assert lost["turn_rloo"] == pytest.approx([-1.81, -0.9])
    assert all(values == [0.0, 0.0] for values in masked.values())
    gold = found["index"]["tiers"]["overall"]["gold_exact"]
    assert gold["turns"] == 2
    assert gold["advantages"]["turn_rloo"] == pytest.approx(0.0)


def test_groups_never_reach_across_files(tmp_path):
    paths = [
        write(tmp_path / f"{n}.jsonl", [row(trial=n, reward=reward)])
        for n, reward in enumerate((1.0, 0.0))
    ]
    write_viewer(paths, tmp_path / "page.html")
    found, _ = blocks(tmp_path / "page.html")
    assert [line["group"] for line in found["index"]["rollouts"]] == [0, 1]
    assert found["g0"][0]["advantages"]["grpo"] == [0.0, 0.0]


def test_hostile_text_is_only_in_packed_blocks(tmp_path):
    hostile = row(
        task=HOSTILE, text=HOSTILE, stop_reason=HOSTILE, domain=HOSTILE, turn_tiers=[HOSTILE] * 2
    )
    found, rest = build(tmp_path, hostile)
    assert "pwned" not in rest
    assert found["index"]["rollouts"][0]["task"] == HOSTILE
    assert rest.count("<script") == 1


def test_hostile_page_name_is_escaped(tmp_path):
    page = tmp_path / "<img src=x onerror=alert(1)>.html"
    write_viewer([write(tmp_path / "r.jsonl", [row()])], page)
    assert "<img" not in page.read_text(encoding="utf-8")


def test_page_asks_for_nothing(tmp_path):
    _, rest = build(tmp_path, row())
    addresses = set(re.findall(r"\b\w+://[^\s\"'`]+", rest))
    assert addresses == {"http://www.w3.org/2000/svg"}, "a namespace, never fetched"
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', rest)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "https:" not in policy


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_never_parse_markup_or_code(name):
    banned = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|</script"
    )
    assert not re.search(
        banned + r"|createContextualFragment|DOMParser|setHTML|srcdoc", asset(f"{name}.js")
    )


def test_numbers_json_has_no_word_for(tmp_path):
    assert json.loads(gzip.decompress(b64decode(pack({"a": float("nan"), "b": [1.5]})))) == {
        "a": "NaN",
        "b": [1.5],
    }


def test_evaluation_given_is_the_one_shown(tmp_path):
    write_viewer([write(tmp_path / "r.jsonl", [row()])], tmp_path / "page.html", {"mine": 1})
    assert blocks(tmp_path / "page.html")[0]["index"]["evaluation"] == {"mine": 1}


def test_report_verb_writes_the_page_beside_its_json(tmp_path, capsys):
    write(tmp_path / "rollouts.jsonl", [row()])
    page = tmp_path / "page.html"
    with pytest.raises(SystemExit) as exit_:
        main(["report", str(tmp_path), "--html", str(page), "--json"])
    assert exit_.value.code == 0
    out = json.loads(capsys.readouterr().out)
    assert blocks(page)[0]["index"]["evaluation"] == out


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no rollouts yet"),
        ([{"domain": "d", "task_id": "t", "trial": 0}], "task t, trial 0: not a readable row"),
        ([row(response={"output": 7})], "task 1, trial 0: not a readable row"),
        ([row(turn_rewards=[float("nan"), 0.0])], "finite"),
    ],
    ids=["none", "fields missing", "output no list", "reward not finite"],
)
def test_bad_rows_give_a_line_and_no_page(tmp_path, rows, message):
    path = write(tmp_path / "r.jsonl", rows)
    with pytest.raises(UserError, match=message):
        write_viewer([path], tmp_path / "page.html", {})
    assert [p.name for p in tmp_path.iterdir()] == ["r.jsonl"]


def test_output_that_cannot_be_written(tmp_path):
    path = write(tmp_path / "r.jsonl", [row()])
    with pytest.raises(UserError, match="give a path that can be written"):
        write_viewer([path], tmp_path / "absent" / "page.html")


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("text", ["ink", "muted", "link", "good", "bad"])
@pytest.mark.parametrize("ground", ["page", "surface", "raised"])
def test_text_contrast(scheme, text, ground):
    """WCAG 2.2 AA: 4.5:1."""
    pairs = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", asset("viewer.css"))
    colours = {name: (light, dark)[scheme] for name, light, dark in pairs}
    lighter, darker = sorted(map(luminance, (colours[text], colours[ground])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def luminance(colour):
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
