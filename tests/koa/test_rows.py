"""`spec rows`: specification x scenario x persona x depth → rows (K3-K6, K12, K15, K24)."""

import asyncio
from collections import defaultdict

import pytest

from nemo_tau2.simulation import scripts
from nemo_tau2.simulation.factory import AGENTS, new_episode
from nemo_tau2.simulation.policies import Oracle, bluffer, silent
from nemo_tau2.simulation.records import Records
from nemo_tau2.simulation.rows import Source, solvable, validation_ids
from nemo_tau2.simulation.scenario import Mode, parse_row
from nemo_tau2.simulation.scenarios import can_hand_over, groundable
from nemo_tau2.simulation.scripts import load_script
from tests.koa.conftest import built, lines, run, verdict


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


def meta(row):
    return row["verifier_metadata"]


class TestRow:
    @pytest.fixture(params=["flat", "routed"])
    def rows(self, folder, request):
        train, held = built(folder, request.param, prefixes="0 2")
        return request.param, train + held

    def test_it_names_its_environment(self, rows):
        mode, found = rows
        for row in found:
            assert row["agent_ref"]["name"] == row["task_source"] == AGENTS[Mode(mode)]
            assert parse_row(meta(row)).mode == mode

    def test_its_questions_are_numbered_and_name_their_evidence(self, rows):
        known = groundable(load_script("bank_cards"))
        for row in rows[1]:
            asked = meta(row)["questions"]
            assert [q["number"] for q in asked] == list(range(1, len(asked) + 1))
            for q in asked:
                if meta(row)["transfer"]:
                    assert q["action"] is None
                    continue
                action = known[q["action"]].action
                assert set(q["fields"]) <= {p.name for p in action.outputs if p.visible}
                assert set(q["arguments"] or {}) <= {p.name for p in action.inputs}

    def test_hidden_outputs_are_no_evidence(self, rows):
        # Verify_Holder gives card_id with filter_from_agent: the policy never sees it.
        asked = [q for row in rows[1] for q in meta(row)["questions"]]
        assert {tuple(q["fields"]) for q in asked if q["action"] == "Verify_Holder"} == {("match",)}

    def test_a_group_is_a_row_and_a_persona_is_held(self, rows):
        groups = [meta(row)["group_id"] for row in rows[1]]
        assert len(set(groups)) == len(groups)
        for row in rows[1]:
            name = meta(row)["persona"]["name"].lower()
            assert meta(row)["task_id"].split("/")[3] == name

    def test_rows_of_a_scenario_share_records(self, rows):
        seeds = defaultdict(set)
        for row in rows[1]:
            seeds[meta(row)["scenario_id"]].add(meta(row)["seed"])
        assert all(len(found) == 1 for found in seeds.values())

    def test_the_oracle_gets_1_and_silence_0(self, rows):
        for row in rows[1]:
            if not meta(row)["transfer"]:
                assert verdict(row, Oracle())["reward"] == 1.0, meta(row)["task_id"]
            assert verdict(row, silent)["reward"] == 0.0
            assert verdict(row, bluffer)["reward"] == 0.0

    def test_the_same_seed_makes_the_same_rows(self, rows, folder, tmp_path):
        mode, _ = rows
        assert built(tmp_path, mode, prefixes="0 2") == built(folder, mode, prefixes="0 2")
        other = built(tmp_path, mode, prefixes="0 2", seed=1)
        assert other != built(folder, mode, prefixes="0 2")


class TestTools:
    def test_a_flat_row_offers_its_own_tools_only(self, folder):
        train, _ = built(folder, "flat")
        offered = [{t["name"] for t in row["responses_create_params"]["tools"]} for row in train]
        assert len(set(map(frozenset, offered))) > 1
        for row, names in zip(train, offered, strict=True):
            opening = asyncio.run(new_episode(row).seed())
            assert {t["name"] for t in opening.tools} == names

    def test_a_routed_row_names_what_is_visible_when_it_begins(self, folder):
        for row in built(folder, "routed", prefixes="0 2")[0]:
            opening = asyncio.run(new_episode(row).seed())
            if not meta(row)["transfer"]:
                assert row["responses_create_params"]["tools"] == opening.tools


class TestSplit:
    def test_no_scenario_is_on_both_sides(self, folder):
        train, held = built(folder, "routed", prefixes="0 2")
        assert held and {meta(r)["split"] for r in train} == {"train"}
        assert {meta(r)["split"] for r in held} == {"validation"}
        ids = [{meta(r)["scenario_id"] for r in part} for part in (train, held)]
        assert not ids[0] & ids[1]

    def test_what_asks_the_same_stays_together(self, folder):
        scenarios = asyncio.run(solvable(Source("x", load_script("retail_support"), Mode.FLAT), 8))
        same = [scenarios[0].model_copy(update={"scenario_id": f"c{i}"}) for i in range(4)]
        assert validation_ids(same, 0.5, 0) == set()
        held = validation_ids([*same, scenarios[1]], 0.2, 0)
        assert held in ({s.scenario_id for s in same}, {scenarios[1].scenario_id})

    def test_without_a_share_nothing_is_held_out(self, folder):
        scenarios = asyncio.run(solvable(Source("x", load_script("retail_support"), Mode.FLAT), 4))
        assert validation_ids(scenarios, 0.0, 0) == set()


class TestTransfers:
    def test_they_are_there_where_the_script_hands_over(self, folder):
        rows = [r for part in built(folder, "routed", scenarios=10) for r in part]
        wanted = [r for r in rows if meta(r)["transfer"]]
        assert can_hand_over(load_script("bank_cards")) and wanted
        assert all(meta(r)["transfer"] is not None for r in rows)


class TestSandbox:
    def test_independent_writes_give_one_state_in_any_order(self):
        known = groundable(load_script("bank_cards"))
        made = [
            (known["Block_Card"].action, {"card_id": "C1", "circumstances": "lost"}),
            (known["Open_Dispute"].action, {"payment_number": "P7", "reason": "unknown"}),
        ]
        states = []
        for order in (made, made[::-1]):
            records = Records(5)
            for action, arguments in order:
                records.remember(action, arguments, records.generate(action, arguments))
            states.append(records.written)
        assert states[0] == states[1] and len(states[0]) == 2

    def test_its_reference_state_was_written_and_idling_fails(self, folder):
        train, held = built(folder, "sandbox", personas=1)
        for row in train + held:
            assert meta(row)["expected_state"]["written"]
            assert verdict(row, silent)["reward"] == 0.0


class TestBadInput:
    def refused(self, capsys, words, *tokens, tmp_path):
        output = tmp_path / "out.jsonl"
        assert run("spec", "rows", *tokens, "--output", output) == 2
        said = capsys.readouterr().err
        assert words in said and len(said.splitlines()) == 1
        assert list(tmp_path.glob("out*")) == []

    def test_a_script_with_errors(self, capsys, tmp_path):
        script = tmp_path / "broken.agent"
        script.write_text("start_agent a:\n  reasoning:\n  instructions ->\n")
        self.refused(capsys, "broken.agent", script, tmp_path=tmp_path)

    def test_a_script_that_compiles_but_has_findings(self, capsys, tmp_path):
        text = (scripts.AGENTS / "bank_cards.agent").read_text("utf-8")
        script = tmp_path / "cards.agent"
        script.write_text(text.replace("@variables.verified", "@variables.verifed", 1))
        self.refused(capsys, "undefined-reference", script, tmp_path=tmp_path)
        flags = ("--despite-errors", "--scenarios", 2, "--output", tmp_path / "out.jsonl")
        assert run("spec", "rows", script, *flags) == 0

    def test_no_script(self, capsys, tmp_path):
        self.refused(capsys, "no script 'nowhere'", "nowhere", tmp_path=tmp_path)

    def test_a_scenario_that_names_a_missing_action(self, capsys, tmp_path):
        path = tmp_path / "s.yaml"
        path.write_text("- {scenario_id: a, questions: [{number: 1, text: x, action: Fly}]}\n")
        flags = ("--scenarios", path)
        self.refused(capsys, "names the action 'Fly'", "bank_cards", *flags, tmp_path=tmp_path)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "- {scenario_id: a, question: []}",
                "unknown key 'question': did you mean 'questions'?",
            ),
            ("- {scenario_id: a, questions: []}", "give at least one"),
            ("- {scenario_id: a, questions: [{number: 2, text: x}]}", "numbered from 1"),
            (
                "- {scenario_id: a, questions: [{number: 1, text: x, action: Block_Card, fields: [y]}]}",
                "Block_Card has no field 'y'; it has blocked",
            ),
            (
                "- {scenario_id: a, questions: [{number: 1, text: x, action: Block_Card, arguments: {z: 1}}]}",
                "Block_Card has no argument 'z'",
            ),
            ("- [", "not YAML"),
            ("a: 1", "write a YAML list"),
        ],
    )
    def test_a_scenario_file(self, capsys, tmp_path, text, words):
        path = tmp_path / "s.yaml"
        path.write_text(text)
        self.refused(capsys, words, "bank_cards", "--scenarios", path, tmp_path=tmp_path)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("- {name: A, mood: bad}", "unknown key 'mood': the keys are name, style"),
            ("- {name: A, patience: 0}", "patience: Input should be greater"),
            ("- {name: A}\n- {name: A}", "two personas are called 'A'"),
        ],
    )
    def test_a_persona_file(self, capsys, tmp_path, text, words):
        path = tmp_path / "p.yaml"
        path.write_text(text)
        self.refused(capsys, words, "bank_cards", "--personas", path, tmp_path=tmp_path)

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["--scenarios", "0"], "must be at least 1"),
            (["--personas", "99"], "give 1 to 12"),
            (["--prefixes", "-1"], "depths from 0"),
            (["--mode", "sandbox", "--prefixes", "2"], "no dialogue"),
            (["--helper-url", "http://x/v1"], "go together"),
            (["--helper", "scripted", "--helper-url", "http://x/v1"], "exclude each other"),
            (["--prefixes", "99"], "no row reaches a depth of 99"),
        ],
    )
    def test_flags(self, capsys, tmp_path, flags, words):
        self.refused(capsys, words, "bank_cards", *flags, tmp_path=tmp_path)


def test_own_scenarios_keep_their_words(tmp_path, folder):
    path = tmp_path / "s.yaml"
    path.write_text(
        "- scenario_id: lost\n"
        "  questions: [{number: 1, text: Who am I, action: Verify_Holder, fields: [match]}]\n"
        "  customer: {opening: Hi there., facts: {last_four: '1234', birth_date: '1980-05-17'}}\n"
    )
    output = tmp_path / "own.jsonl"
    assert run("spec", "rows", "bank_cards", "--scenarios", path, "--output", output) == 0
    rows = lines(output)
    assert meta(rows[0])["customer"]["opening"] == "Hi there."
    assert meta(rows[0])["task_id"].startswith("Bank_Cards/routed/lost/")
