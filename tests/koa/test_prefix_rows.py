"""A row with a prefix asks what the prefix leaves open, and no more (K4)."""

import asyncio
import json

import pytest

from nemo_tau2.simulation.rows import Source, rows_of, solvable
from nemo_tau2.simulation.scenario import Mode, Persona
from nemo_tau2.simulation.scripts import load_script


class TestPrefixRows:
    @pytest.fixture(scope="class")
    def made(self):
        source = Source("bank_cards", load_script("bank_cards"), Mode.FLAT, 3)
        scenarios = asyncio.run(solvable(source, 8))
        assert any(len(s.questions) > 1 for s in scenarios)
        return [
            (scenario, row["verifier_metadata"])
            for scenario in scenarios
            for row in asyncio.run(rows_of(source, scenario, [Persona()], range(5)))
        ]

    def test_what_a_yes_would_answer_is_gone_once_it_is_grounded(self, made):
        shorter = 0
        for scenario, row in made:
            done = [i for i in row["prefix"] if i.get("type") == "function_call_output"]
            outputs = [json.loads(i["output"]) for i in done]
            left = {q["action"] for q in row["questions"]}
            if any(output.keys() == {"match"} for output in outputs):
                assert "Verify_Holder" not in left  # its one visible output is a boolean
            shorter += len(row["questions"]) < len(scenario.questions)
        assert shorter

    def test_a_value_that_is_still_to_be_said_stays(self, made):
        grounded = [
            row for _, row in made
            if any('"payments"' in str(i.get("output")) for i in row["prefix"])
            and any(q["action"] == "List_Payments" for q in row["questions"])
        ]  # fmt: skip
        assert grounded

    def test_they_are_numbered_anew(self, made):
        for _, row in made:
            assert [q["number"] for q in row["questions"]] == list(
                range(1, len(row["questions"]) + 1)
            )
