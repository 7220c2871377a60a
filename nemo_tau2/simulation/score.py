"""From a finished episode to its row: reward, tiers, route metrics, blame. Reads, never changes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nemo_tau2.agentscript.graph import NodeKind, ToolKind
from nemo_tau2.outcomes import StopReason
from nemo_tau2.rewards import ablations
from nemo_tau2.rewards.coverage import Coverage, Evidence, coverage, gated, grounds
from nemo_tau2.rewards.duplicates import Made, duplicates
from nemo_tau2.rewards.spec_tiers import SpecTier, best
from nemo_tau2.rewards.state_equivalence import differences
from nemo_tau2.simulation.judge import Line, need_of
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.session import Done, Refusal

if TYPE_CHECKING:
    from nemo_tau2.simulation.episode import SpecEpisode

_BLAME = {
    StopReason.USER_SIMULATOR_FAILED: "customer",
    StopReason.TOOL_EMULATOR_FAILED: "emulator",
    StopReason.JUDGE_FAILED: "judge",
}
PENALTIES = {"duplicate": 0.2, "error": 0.05, "wrong_subagent": 0.1}
"""lambda_k of `task_with_penalties`, per call."""
ROUTING = (ToolKind.TRANSITION, ToolKind.DELEGATE)
STRUCTURE = {"grounding": 0.4, "efficiency": 0.3, "routing": 0.3}
"""w_i of `structural_credit`."""


@dataclass(frozen=True, slots=True)
class Switch:
    """One change of the active node: whence, whither, and whether an action succeeded on that visit."""

    source: str
    target: str
    worked: bool


def blame(reason: StopReason) -> str:
    """Whose rollout it is: the policy's unless infrastructure ended it."""
    return _BLAME.get(reason, "harness") if reason.infrastructure else "policy"


def score(episode: "SpecEpisode", verdicts: dict[int, bool | None]) -> dict[str, Any]:
    """The verify result."""
    row, calls = episode.row, episode.session.calls
    repeated = repeated_calls(calls, episode.options)
    repeated = [i for i in repeated if calls[i].turn >= 0]  # a prefix's calls are nobody's
    evidence = [what for kind, what in episode.transcript if kind == "tool"]
    covered = coverage([need_of(q) for q in row.questions], verdicts, answered(episode.transcript))
    tiers = call_tiers(episode, set(repeated))
    per_turn = [[tiers[id(c)] for c in turn] for turn in episode.turns]
    reason = episode.stop_reason
    masked = reason.infrastructure
    reward, info = _reward(episode, covered, repeated, evidence)
    info |= {
        "coverage": covered.value,
        "resolved": list(covered.resolved),
        "verdicts": {str(k): v for k, v in verdicts.items()},
        "missing_verdicts": list(covered.missing) if verdicts else [],
        "disagreements": list(covered.disagreements),
        "duplicates": repeated,
        "routes": route_metrics(episode),
        "problems": episode.session.problems[:20],
    }
    return {
        "task_id": row.task_id,
        "domain": row.domain,
        "group_id": row.group_id,
        "trial": row.trial,
        "reward": 0.0 if masked else reward,
        "turn_rewards": [episode.rewards.turn_reward(turn) for turn in per_turn],
        "turn_tiers": [best(turn).value for turn in per_turn],
        "call_tiers": [[tier.value for tier in turn] for turn in per_turn],
        "stop_reason": reason.value,
        "mask_sample": masked,
        "instance_config": {"mask_sample": masked},
        "blame": blame(reason),
        "reward_info": info,
        "num_turns": len(episode.turns),
        "num_tool_calls": sum(map(len, episode.turns)),
        "num_tool_errors": episode.errors,
        "num_user_messages": sum(kind == "customer" for kind, _ in episode.transcript),
        "seconds": round(episode.seconds, 3),
        "failure": {"kind": reason.value, "message": episode.failure} if episode.failure else None,
    }


def answered(transcript: Sequence[Line]) -> list[Evidence]:
    """The successful calls that the policy has spoken after: no answer can rest on a later one."""
    last = max((n for n, (kind, _) in enumerate(transcript) if kind == "agent"), default=0)
    return [what for kind, what in transcript[:last] if kind == "tool"]


def repeated_calls(calls: Sequence[Done], options: SpecOptions) -> list[int]:
    """Indices of the consecutive duplicates among calls."""
    made = [
        Made(c.name, c.given, c.user_turn, c.version, c.refusal is Refusal.TRANSIENT) for c in calls
    ]
    return duplicates(made, **options.duplicates.model_dump())


def call_tiers(episode: "SpecEpisode", repeated: set[int]) -> dict[int, SpecTier]:
    """Tier of each call, by the identity of its record."""
    open_needs = [need_of(q) for q in episode.row.questions if q.action]
    tiers = {}
    for index, call in enumerate(episode.session.calls):
        if call.refusal is Refusal.WRONG_SUBAGENT:
            tier = SpecTier.WRONG_SUBAGENT
        elif call.refusal is not None or call.outputs is None:  # the emulator failed in it
            tier = SpecTier.ERROR
        elif index in repeated:
            tier = SpecTier.DUPLICATE
        else:
            tier = _success(call, open_needs)
        tiers[id(call)] = tier
    return tiers


def _success(call: Done, open_needs: list) -> SpecTier:
    if call.action is not None:
        evidence = Evidence(call.action.name, call.arguments, call.outputs or {})
        met = [need for need in open_needs if grounds(need, evidence)]
        for need in met:
            open_needs.remove(need)
        if met:
            return SpecTier.GROUNDING_CALL
    if call.tool.kind not in (ToolKind.ACTION, ToolKind.SET_VARIABLES):
        return SpecTier.ROUTE
    if call.opened:
        return SpecTier.USEFUL_READ
    return SpecTier.STATE_CHANGE if call.is_write else SpecTier.READ_ONLY


def route_metrics(episode: "SpecEpisode") -> dict[str, Any]:
    """First route, wrong-subagent rate, redundant switches, dead ends, escalations.

    The first route is the first successful routing call made where a node with a wanted action was on
    offer: a caller who must be verified first is not sent wrong. A switch is redundant where it leaves
    a node, the routers aside, in which nothing succeeded on that visit.
    """
    graph, calls = episode.graph, [c for c in episode.session.calls if c.turn >= 0]
    wanted = {q.action for q in episode.row.questions if q.action}
    homes = {n.name for n in graph.nodes.values() if wanted & {t.target for t in n.tools.values()}}
    first = next(
        (c for c in calls if c.refusal is None and c.tool.kind in ROUTING and homes & {*c.routes}),
        None,
    )
    wrong = sum(c.refusal is Refusal.WRONG_SUBAGENT for c in calls)
    idle = [
        switch
        for switch in episode.switches
        if not switch.worked and graph.nodes[switch.source].kind is not NodeKind.ROUTER
    ]
    transferred = episode.stop_reason is StopReason.TRANSFER
    return {
        "first_route_correct": None if first is None else first.tool.target in homes,
        "wrong_subagent_rate": wrong / len(calls) if calls else 0.0,
        "redundant_switches": len(idle),
        "switches": len(episode.switches),
        "dead_ends": episode.dead_ends,
        "escalation_wanted": bool(transferred and episode.row.transfer),
        "escalation_unwanted": bool(transferred and episode.row.transfer is False),
    }


def _reward(
    episode: "SpecEpisode", covered: Coverage, repeated: list[int], evidence: list[Evidence]
) -> tuple[float, dict[str, Any]]:
    row = episode.row
    if not episode.has_customer:
        from nemo_tau2.simulation.episode import world_state

        if row.expected_state is None:
            return 0.0, {
                "kind": "state_equivalence",
                "state_diff": ["no expected_state in the row"],
            }
        state = world_state(episode.session)
        actual = {key: state.get(key) for key in row.expected_state}
        rules = episode.options.state.overridden(row.state_rules)
        diff = differences(actual, row.expected_state, rules)
        return float(not diff), {"kind": "state_equivalence", "state_diff": diff[:50]}
    kind = episode.options.reward
    value = _customer_reward(kind, episode, covered, repeated, evidence)
    transferred = episode.stop_reason is StopReason.TRANSFER
    if row.transfer is True:
        value = gated(float(transferred), bool(repeated))
    elif row.transfer is False and transferred:
        value = 0.0
    return value, {"kind": kind}


def _customer_reward(
    kind: str,
    episode: "SpecEpisode",
    covered: Coverage,
    repeated: list[int],
    evidence: list[Evidence],
) -> float:
    calls = [c for c in episode.session.calls if c.turn >= 0]
    needs = [need_of(q) for q in episode.row.questions if q.action]
    relevant = any(grounds(need, call) for need in needs for call in evidence)
    match kind:
        case "task_with_penalties":
            found = {
                "duplicate": len(repeated),
                "error": episode.errors,
                "wrong_subagent": sum(c.refusal is Refusal.WRONG_SUBAGENT for c in calls),
            }
            return ablations.task_with_penalties(covered.value == 1.0, found, PENALTIES)
        case "structural_credit":
            share = len(evidence) / len(calls) if calls else 0.0
            wrong = any(c.refusal is Refusal.WRONG_SUBAGENT for c in calls)
            scores = {
                "grounding": float(relevant),
                "efficiency": share,
                "routing": float(not wrong),
            }
            return ablations.structural_credit(covered.value == 1.0, scores, STRUCTURE)
        case "two_step_coverage":
            return ablations.two_step_coverage(relevant, covered.value)
        case "floored_gate":
            return ablations.floored_gate(len(evidence), covered.value)
    return gated(covered.value, bool(repeated))
