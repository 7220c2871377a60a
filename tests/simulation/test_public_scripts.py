"""The promises of the environments, on 25 public scripts and our six, in every mode."""

import asyncio
from itertools import cycle, islice, product

import pytest

from nemo_tau2.agentscript.expressions import Literal, references
from nemo_tau2.agentscript.graph import ToolKind
from nemo_tau2.errors import UserError
from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.policies import (
    Guesser,
    Oracle,
    RandomWalk,
    Stutterer,
    bluffer,
    escalator,
    message,
    play,
    silent,
)
from nemo_tau2.simulation.reachability import reachability, setters
from nemo_tau2.simulation.records import is_identifier
from nemo_tau2.simulation.rows import Source, transfer_rows
from nemo_tau2.simulation.scenario import Mode, Persona
from nemo_tau2.simulation.scenarios import facts_for, groundable, out_of_scope, question
from nemo_tau2.simulation.session import Refusal
from tests.simulation.public_scripts import (
    EPISODES,
    FOLDER,
    MODES,
    NOTHING,
    PIVOT,
    READS_ONLY,
    SCRIPTS,
    asks_for_data,
    graph_of,
    path_of,
    reasons_of,
    rows,
    verdict,
)

pytestmark = pytest.mark.usefixtures("shared_dir")
WITH_ROWS = [
    (script, mode)
    for script in SCRIPTS
    for mode in MODES
    if not (mode == "sandbox" and script in NOTHING | READS_ONLY)
]
WITH_DATA = [
    (script, mode)
    for script, mode in WITH_ROWS
    if script not in NOTHING and (script, mode) != ("07", "routed")
]
BY_STATE = {
    (script, "sandbox")
    for script in ("01", "02", "03", "05", "08", "11", "12", "13", "19", "23", "24", *SCRIPTS[25:])
}
"""Scored by their state: the gate on duplicates is coverage's and does not concern them."""
GATED = [(script, mode) for script, mode in WITH_DATA if (script, mode) not in BY_STATE]
LARGE = [("11", "routed"), ("12", "routed"), ("19", "routed")]
"""They have thousands of states: all of them are visited only where slow tests run."""
LONG = SpecOptions(max_steps_per_turn=20, max_turns=80)
"""Room for the calls that a stutterer adds."""


def test_they_are_all_there():
    assert len(list(FOLDER.glob("*.agent"))) == 25 and len(SCRIPTS) == 31


class TestRows:
    @pytest.mark.parametrize(("script", "mode"), WITH_ROWS)
    def test_they_build(self, script, mode):
        assert len(rows(script, mode)) >= 3
        assert all(asks_for_data(r) for r in rows(script, mode)) == ((script, mode) in WITH_DATA)

    @pytest.mark.parametrize("script", sorted(NOTHING | READS_ONLY))
    def test_a_sandbox_without_anything_to_write_is_refused(self, script):
        what = "no action that" if script in NOTHING else "no action with an effect that"
        with pytest.raises(UserError, match=f"{what} a policy can reach"):
            rows(script, "sandbox")


class TestWalks:
    @pytest.mark.parametrize("script", sorted(set(SCRIPTS) - PIVOT))
    def test_pivot_rows_are_refused_where_no_tool_can_be_withheld(self, script):
        with pytest.raises(UserError, match="no tool can be withheld"):
            rows(script, "pivot")

    @pytest.mark.parametrize(
        ("script", "mode"), [*product(SCRIPTS, MODES), *((s, "pivot") for s in sorted(PIVOT))]
    )
    def test_20_random_walks_end_with_a_verdict(self, script, mode):
        for seed in range(EPISODES):
            result = verdict(plain_row(path_of(script), mode, seed), RandomWalk(seed))
            assert not result["mask_sample"] and result["blame"] == "policy"
            assert len(result["turn_rewards"]) == result["num_turns"]

    @pytest.mark.parametrize(("script", "mode"), WITH_ROWS)
    def test_20_oracle_episodes_get_1(self, script, mode):
        for row in islice(cycle(rows(script, mode)), EPISODES):
            assert verdict(row, Oracle())["reward"] == 1.0, row["verifier_metadata"]["task_id"]

    @pytest.mark.parametrize("script", sorted(PIVOT))
    def test_20_pivots_get_1_for_waiting(self, script):
        for row in islice(cycle(rows(script, "pivot")), EPISODES):
            episode = new_episode(row)
            asyncio.run(episode.seed())
            asyncio.run(episode.step(message("Not right now.")))
            held = row["verifier_metadata"]["withheld_tool"]
            asyncio.run(episode.step(_call(held, episode.expected())))
            assert asyncio.run(episode.verify())["reward"] == 1.0
            assert verdict(row, silent)["reward"] == verdict(row, bluffer)["reward"] == 0.0


def _call(name, arguments):
    return [{"type": "function_call", "call_id": "c", "name": name, "arguments": arguments}]


class TestReach:
    """Where the oracle gets less than 1.0, no policy can get more, and the reason is known."""

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("script", SCRIPTS)
    def test_what_cannot_be_grounded_has_its_reason(self, script, mode):
        self.check(script, mode, whole=(script, mode) not in LARGE)

    @pytest.mark.slow
    @pytest.mark.parametrize(("script", "mode"), LARGE)
    def test_so_it_is_with_every_state_of_the_large_ones(self, script, mode):
        self.check(script, mode, whole=True)

    def check(self, script, mode, whole):
        found = reachability(graph_of(script), Mode(mode), whole)
        expected = reasons_of(script, mode)
        assert found.exhaustive == whole
        assert found.reasons.keys() == expected.keys()
        for action, words in expected.items():
            assert words in found.reasons[action]
        assert found.reached == groundable(graph_of(script)).keys() - expected.keys()

    @pytest.mark.parametrize("mode", MODES[:2])
    @pytest.mark.parametrize("script", SCRIPTS)
    def test_the_oracle_grounds_each_of_the_others(self, script, mode):
        known = groundable(graph_of(script))
        for action in known.keys() - reasons_of(script, mode).keys():
            rewards = (
                verdict(_asking(script, mode, action, n), Oracle())["reward"] for n in range(9)
            )
            assert 1.0 in rewards, action

    @pytest.mark.parametrize("mode", MODES[:2])
    @pytest.mark.parametrize("script", sorted({script for script, _ in WITH_DATA}))
    def test_the_oracle_gets_what_can_be_had_of_a_plain_row(self, script, mode):
        row = plain_row(path_of(script), mode, 2)
        asked = row["verifier_metadata"]["questions"]
        lost = reasons_of(script, mode).keys() | EXCLUSIVE.get((script, mode), set())
        out_of_reach = {q["number"] for q in asked if q["action"] in lost}
        resolved = verdict(row, Oracle())["reward_info"]["resolved"]
        assert set(resolved) == {q["number"] for q in asked} - out_of_reach


def _asking(script, mode, action, seed):
    """A row with one question, for one action."""
    graph = graph_of(script)
    known = groundable(graph)
    row = plain_row(path_of(script), mode, seed)
    facts = facts_for(graph, [target.tool for target in known.values()], seed)
    asked = question(1, known[action], facts).model_dump(mode="json")
    row["verifier_metadata"] |= {"questions": [asked], "customer": {"facts": facts}}
    return row


@pytest.mark.parametrize(("script", "mode"), WITH_DATA)
class TestNothingForNothing:
    def test_silence_earns_nothing(self, script, mode):
        assert {verdict(row, silent)["reward"] for row in rows(script, mode)} == {0.0}

    def test_answers_without_calls_earn_nothing(self, script, mode):
        assert {verdict(row, bluffer)["reward"] for row in rows(script, mode)} == {0.0}


@pytest.mark.parametrize(("script", "mode"), GATED)
def test_the_gate_alone_takes_a_spammers_reward(script, mode):
    for row in rows(script, mode):
        result = verdict(row, Stutterer(), options=LONG)
        info = result["reward_info"]
        assert result["reward"] == 0.0 and info["coverage"] == 1.0 and info["duplicates"]


def test_the_gate_is_tried_wherever_there_is_coverage():
    assert {mode for _, mode in GATED} == {"flat", "routed"} and {*WITH_DATA} > BY_STATE


def data_variables(graph):
    """Variables that guards read and that take a right name of a record to be set.

    Its name itself, or the output of a call that gives such a name or is bound to one.
    """
    made = {}
    for node in graph.nodes.values():
        for tool in node.tools.values():
            for update in tool.updates:
                made.setdefault(update.variable, []).append((tool, update.value))
    found = set()
    while True:
        more = {n for n, s in made.items() if all(takes_a_name(*one, found) for one in s)}
        if more == found:
            guards = [t.guard for n in graph.nodes.values() for t in n.tools.values() if t.guard]
            read = found & {r.name for g in guards for r, _ in references(g)}
            return {name for name in read if not any(by_script(s) for s in setters(graph, name))}
        found = more


def by_script(setter):
    return setter.endswith("itself") or setter.startswith("`run")


def takes_a_name(tool, value, known):
    outputs = {r.name for r, _ in references(value) if r.namespace == "outputs"}
    if not outputs:
        return isinstance(value, Literal) and not value.value  # it is only emptied
    given = {p.name for p in tool.inputs if is_identifier(p.name)}
    if tool.kind is not ToolKind.ACTION:
        return outputs <= given
    bound = [r.name for n, e in tool.bound.items() if is_identifier(n) for r, _ in references(e)]
    return bool(given) or any(name in known for name in bound)


GUARDED = ["02", "03", "08", "19", "23", "24", *SCRIPTS[25:]]


@pytest.mark.parametrize("script", GUARDED)
def test_guesses_open_no_guard(script):
    graph = graph_of(script)
    watched, before = data_variables(graph), graph.initial_state()
    refused = 0
    for mode, seed in product(("flat", "routed"), range(EPISODES)):
        row = plain_row(path_of(script), mode, seed)
        episode = new_episode(row, options=SpecOptions(max_errors=30))
        asyncio.run(play(episode, Guesser(seed)))
        after = {name: episode.session.state[name] for name in watched}
        assert not {n: v for n, v in after.items() if v and v != before[n]}  # emptied is not opened
        refused += sum(c.refusal is Refusal.NO_RECORD for c in episode.session.calls)
    assert refused


def test_every_script_whose_guards_depend_on_data_is_watched():
    assert [s for s in SCRIPTS if data_variables(graph_of(s))] == GUARDED


HANDING_OVER = ["14", "23", "25", *(s for s in SCRIPTS[25:] if s != "it_helpdesk")]
"""it_helpdesk hands over only after three failed attempts, which the oracle does not make."""
EXCLUSIVE = {("19", "routed"): {"VerifySalesCustomer"}}
"""Actions that the row's others shut out: a session of 19 has one channel, and each serves one."""


class TestTransfers:
    @pytest.mark.parametrize("mode", MODES[:2])
    @pytest.mark.parametrize("script", HANDING_OVER)
    def test_a_wanted_one_is_found_by_the_oracle(self, script, mode):
        source = Source(path_of(script), graph_of(script), Mode(mode), 3)
        for number in range(3):
            scenario = out_of_scope(source.graph, source.seed, number)
            for row in transfer_rows(source, scenario, [Persona()]):
                result = verdict(row, Oracle())
                assert (result["reward"], result["stop_reason"]) == (1.0, "transfer")
                routes = result["reward_info"]["routes"]
                assert routes["escalation_wanted"] and not routes["escalation_unwanted"]
                for idle in (silent, bluffer):
                    assert verdict(row, idle)["reward"] == 0.0

    @pytest.mark.parametrize("mode", MODES[:2])
    @pytest.mark.parametrize(
        "script", ["bank_cards", "home_inspections", "retail_support", "travel"]
    )
    def test_an_unwanted_one_earns_nothing(self, script, mode):
        row = rows(script, mode)[0]
        result = verdict(row, escalator)
        routes = result["reward_info"]["routes"]
        assert (result["reward"], result["stop_reason"]) == (0.0, "transfer")
        assert routes["escalation_unwanted"] and not routes["escalation_wanted"]
