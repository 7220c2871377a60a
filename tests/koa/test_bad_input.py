"""`spec rows` refuses bad input with one line and exit code 2, and leaves what is there as it is."""

import pytest

from nemo_tau2.simulation import scripts
from tests.koa.conftest import lines, run

CARDS = (scripts.AGENTS / "bank_cards.agent").read_text("utf-8")
BEFORE = '{"an earlier": "build"}\n'


@pytest.fixture
def refused(capsys, tmp_path):
    """Runs `spec rows`, which must refuse, and gives what it said; an earlier build must survive."""
    output = tmp_path / "rows.jsonl"
    output.write_text(BEFORE)

    def run_it(*tokens):
        present = sorted(tmp_path.iterdir())
        assert run("spec", "rows", *tokens, "--output", output) == 2
        said = capsys.readouterr()
        assert said.out == "" and len(said.err.splitlines()) == 1
        assert said.err.startswith("nemo-tau2: ") and "Traceback" not in said.err
        assert sorted(tmp_path.iterdir()) == present and output.read_text() == BEFORE
        return said.err

    return run_it


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


class TestScripts:
    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("@variables.verified", "@variables.verifed", "undefined-reference"),
            ("start_agent switchboard", "subagent switchboard", "start_agent"),
            ('company: "Harbour', 'company: "Har\nbour', "cards.agent:"),
        ],
    )
    def test_a_finding_is_named_with_its_place(self, refused, tmp_path, old, new, words):
        script = written(tmp_path, "cards.agent", CARDS.replace(old, new, 1))
        said = refused(script)
        assert words in said and "cards.agent" in said

    def test_spec_check_says_more_and_exits_with_1(self, capsys, tmp_path):
        broken = CARDS.replace("@variables.verified", "@variables.verifed")
        script = written(tmp_path, "cards.agent", broken)
        assert run("spec", "check", script) == 1
        assert capsys.readouterr().out.count("undefined-reference") > 1

    @pytest.mark.parametrize(
        ("data", "words"),
        [(b"\xff\xfe\x00", "UTF-8"), ("", "start_agent"), ("just words\n", "")],
    )
    def test_what_is_no_script(self, refused, tmp_path, data, words):
        assert words in refused(written(tmp_path, "odd.agent", data))

    def test_a_folder(self, refused, tmp_path):
        (tmp_path / "agents").mkdir()
        refused(tmp_path / "agents")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("loop: {max_turn: 3}", "max_turn"),
            ("effects: {Fly: read}", "no action `Fly`"),
            ("loop: {max_turns: 0}", "greater than or equal to 1"),
            ("loop: [", "not YAML"),
        ],
    )
    def test_its_sidecar(self, refused, tmp_path, text, words):
        script = written(tmp_path, "cards.agent", CARDS)
        written(tmp_path, "cards.tau2.yaml", text)
        said = refused(script)
        assert words in said and "cards.tau2.yaml" in said


class TestScenarios:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "- {scenario_id: a, questions: [{number: 1, text: x, action: Fly}]}",
                "question 1 names the action 'Fly', which no tool of Bank_Cards runs; choose one of Verify_",
            ),
            (
                "- {scenario_id: a, questions: [{number: 1, text: x, acton: Fly}]}",
                "questions.0: unknown key 'acton': did you mean 'action'?",
            ),
            (
                "- {scenario_id: a, state_rules: {ignored: [x]}}",
                "state_rules: unknown key 'ignored': did you mean 'ignore'?",
            ),
            ("- {questions: []}", "scenario_id: Field required"),
            ("- 7", "scenario 1"),
            ("- {scenario_id: a, customer: {facts: [1]}}", "customer.facts"),
            (b"\xff\xfe", "not YAML"),
        ],
    )
    def test_are_refused_with_the_fix(self, refused, tmp_path, text, words):
        assert words in refused("bank_cards", "--scenarios", written(tmp_path, "s.yaml", text))

    def test_a_good_one_before_a_bad_one_is_not_written_either(self, refused, tmp_path):
        good = "- {scenario_id: a, questions: [{number: 1, text: Who are you}]}\n"
        bad = "- {scenario_id: b, questions: [{number: 1, text: x, action: Fly}]}\n"
        assert "'b'" in refused(
            "bank_cards", "--scenarios", written(tmp_path, "s.yaml", good + bad)
        )

    def test_one_for_a_person_where_nobody_can_be_reached(self, refused, tmp_path):
        person = "- {scenario_id: a, transfer: true, questions: [{number: 1, text: A person}]}"
        path = written(tmp_path, "s.yaml", person)
        said = refused("bank_cards", "--scenarios", path, "--mode", "sandbox")
        assert "in mode sandbox nothing in Bank_Cards hands over" in said


class TestPersonas:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("- {name: A, mood: bad}", "persona 1: unknown key 'mood'"),
            ("- {name: A, pacience: 3}", "did you mean 'patience'?"),
            ("- {name: A}\n- {name: B, style: [x]}", "persona 2: style"),
            ("- {name: A, patience: many}", "patience"),
            ("- {name: Bo}\n- {name: BO}", "two personas are called 'Bo'"),
            ("{}", "write a YAML list of personas"),
        ],
    )
    def test_are_refused_with_the_fix(self, refused, tmp_path, text, words):
        assert words in refused("bank_cards", "--personas", written(tmp_path, "p.yaml", text))

    def test_a_file_that_is_not_there(self, refused, tmp_path):
        assert "cannot be read" in refused("bank_cards", "--personas", tmp_path / "none.yaml")


def test_an_output_that_cannot_be_written(capsys, tmp_path):
    flags = ("--scenarios", 1, "--output", tmp_path)
    assert run("spec", "rows", "bank_cards", *flags) == 2
    said = capsys.readouterr().err
    assert "give a writable --output" in said and list(tmp_path.iterdir()) == []


def test_rules_of_a_scenario_reach_its_rows(tmp_path):
    path = written(
        tmp_path,
        "s.yaml",
        "- scenario_id: lost\n"
        "  questions: [{number: 1, text: Block it, action: Block_Card}]\n"
        "  state_rules: {ignore: [circumstances]}\n"
        "  customer:\n"
        "    facts: {last_four: '1234', birth_date: '1980-05-17', postcode: '20095', "
        "circumstances: lost}\n",
    )
    output = tmp_path / "rows.jsonl"
    flags = ("--mode", "sandbox", "--scenarios", path, "--output", output)
    assert run("spec", "rows", "bank_cards", *flags) == 0
    (row,) = lines(output)
    assert row["verifier_metadata"]["state_rules"] == {"ignore": ["circumstances"]}
