"""The scripted policy: plays a task's gold actions with a seeded rate of realistic faults.

It exists to exercise the real path (servers, token ids, rewards) without a model, and to give groups
with mixed outcomes in which every turn tier occurs. It is no baseline: it is told the task and reads
the gold actions, which no policy under training ever sees.

A pure function of (task, seed, trial, chat messages): the n-th answer depends on nothing but the plan
and n, so that any number of servers may play it without state.
"""

import json
import random
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nemo_tau2.tau2.domains import Domain, load_domain
from nemo_tau2.tau2.engine import Action, Task
from nemo_tau2.tau2.tasks import load_tasks

FAULTS = (
    "skipped_call",
    "wrong_argument",
    "extra_read",
    "hallucinated_tool",
    "wrong_write",
    "malformed_arguments",
    "repeated_call",
    "early_goodbye",
)

GOODBYE = "Is there anything else I can help you with? If not, goodbye!"
HANDOVER = "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."


@dataclass(frozen=True)
class PlannedTurn:
    """One answer: text, or calls as (name, JSON arguments)."""

    text: str | None = None
    calls: tuple[tuple[str, str], ...] = ()


@dataclass
class _Plan:
    rng: random.Random
    turns: list[PlannedTurn] = field(default_factory=list)

    def call(self, *calls: tuple[str, Any]) -> None:
        packed = tuple((n, a if isinstance(a, str) else json.dumps(a)) for n, a in calls)
        self.turns.append(PlannedTurn(calls=packed))

    def say(self, text: str) -> None:
        self.turns.append(PlannedTurn(text=text))


class ScriptedPolicy:
    """Args:
    domain: the task's domain.
    task: the task whose gold actions are played.
    seed, trial: together they seed the faults.
    fault_rate: probability of a fault per gold agent call; 0 plays gold.
    parallel_rate: probability that a call is packed into one turn with the next.
    """

    def __init__(
        self,
        domain: Domain,
        task: Task,
        seed: int = 0,
        trial: int = 0,
        fault_rate: float = 0.25,
        parallel_rate: float = 0.1,
    ):
        self.plan = _plan(
            domain, task, f"{seed}/{domain.name}/{task.id}/{trial}", fault_rate, parallel_rate
        )

    def answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """The next assistant message in OpenAI's chat format.

        Args:
            messages: the conversation so far; assistant messages before the first user message (the
                greeting) do not count as turns of this policy.
        """
        first_user = next(
            (i for i, m in enumerate(messages) if m.get("role") == "user"), len(messages)
        )
        position = sum(m.get("role") == "assistant" for m in messages[first_user:])
        return self.turn(position)

    def turn(self, position: int) -> dict[str, Any]:
        """The answer of turn `position`, counted from 0; goodbyes for ever after the plan's end."""
        turn = self.plan[position] if position < len(self.plan) else PlannedTurn(text=GOODBYE)
        calls = [
            {
                "id": f"call_{position}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for index, (name, arguments) in enumerate(turn.calls)
        ]
        return {"role": "assistant", "content": turn.text, "tool_calls": calls or None}


def script(spec: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer to a request that names its task, for servers.

    Args:
        spec: {"domain", "task_id", "seed"?, "trial"?, "tasks_dir"?, "fault_rate"?}.
        messages: the chat so far.

    Raises UserError for an unknown domain or task.
    """
    return _cached(tuple(sorted(spec.items()))).answer(messages)


@lru_cache(maxsize=4096)
def _cached(spec: tuple[tuple[str, Any], ...]) -> ScriptedPolicy:
    given = dict(spec)
    domain = load_domain(str(given.pop("domain", None)))
    tasks = load_tasks(domain.name, given.pop("tasks_dir", None))
    return ScriptedPolicy(domain, tasks.get(str(given.pop("task_id", None))), **given)


def _plan(
    domain: Domain, task: Task, key: str, fault_rate: float, parallel_rate: float
) -> tuple[PlannedTurn, ...]:
    plan = _Plan(random.Random(key))
    criteria = task.evaluation_criteria
    actions = list((criteria and criteria.actions) or [])
    pending: list[tuple[str, Any]] = []
    done: list[Action] = []
    for position, action in enumerate(actions):
        if action.requestor == "user":
            _flush(plan, pending)
            if position == 0 or actions[position - 1].requestor == "assistant":
                names = _run_of_user_actions(actions, position)
                if plan.rng.random() < fault_rate:
                    names = names[:-1]  # a step of the manual forgotten
                plan.say(
                    f"Please do this on your phone, in order: {', '.join(names) or 'nothing'}."
                )
            continue
        fault = plan.rng.choice(FAULTS) if plan.rng.random() < fault_rate else None
        if fault == "early_goodbye":
            _flush(plan, pending)
            plan.say(GOODBYE)
            return tuple(plan.turns)
        pending += _faulty(domain, task, action, fault, done, plan.rng)
        done.append(action)
        if fault or plan.rng.random() >= parallel_rate:
            _flush(plan, pending)
    _flush(plan, pending)
    if any(action.name == "transfer_to_human_agents" for action in actions):
        plan.say(HANDOVER)
    facts = ", ".join((criteria and criteria.communicate_info) or [])
    plan.say(f"For your information: {facts}. {GOODBYE}" if facts else GOODBYE)
    return tuple(plan.turns)


def _flush(plan: _Plan, pending: list[tuple[str, Any]]) -> None:
    if pending:
        plan.call(*pending)
        pending.clear()


def _run_of_user_actions(actions: list[Action], start: int) -> list[str]:
    names = []
    for action in actions[start:]:
        if action.requestor != "user":
            break
        names.append(action.name)
    return names


def _faulty(
    domain: Domain,
    task: Task,
    action: Action,
    fault: str | None,
    done: list[Action],
    rng: random.Random,
) -> list[tuple[str, Any]]:
    """The calls made in place of one gold action."""
    gold = (action.name, action.arguments)
    if fault is None:
        return [gold]
    if fault == "skipped_call":
        return []
    if fault == "wrong_argument":
        return [(action.name, _spoiled(action.arguments, rng))]
    if fault == "extra_read":
        return [_extra_read(domain, task), gold]
    if fault == "hallucinated_tool":
        return [(f"{action.name}_v2", action.arguments), gold]
    if fault == "wrong_write":
        return [_wrong_write(domain, task), gold]
    if fault == "malformed_arguments":
        return [(action.name, json.dumps(action.arguments)[:-1]), gold]
    return [gold, gold if not done else (done[-1].name, done[-1].arguments)]


def _spoiled(arguments: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The arguments with one value changed."""
    if not arguments:
        return {"unexpected": True}
    key = rng.choice(sorted(arguments))
    value = arguments[key]
    if isinstance(value, bool):
        spoiled: Any = not value
    elif isinstance(value, int | float):
        spoiled = value + 1
    elif isinstance(value, list):
        spoiled = value[:-1]
    elif isinstance(value, str):
        spoiled = value[:-1] + ("0" if not value.endswith("0") else "1")
    else:
        spoiled = None
    return arguments | {key: spoiled}


def _extra_read(domain: Domain, task: Task) -> tuple[str, dict[str, Any]]:
    who = _customer(domain, task)
    if domain.name == "airline":
        return "list_all_airports", {}
    if domain.name == "retail":
        return ("get_user_details", who) if who else ("list_all_product_types", {})
    return "get_customer_by_id", {"customer_id": who["customer_id"]}


def _wrong_write(domain: Domain, task: Task) -> tuple[str, dict[str, Any]]:
    """A write that succeeds and that nobody asked for."""
    who = _customer(domain, task)
    if domain.name == "airline":
        return "send_certificate", {**who, "amount": 50}
    if domain.name == "retail":
        address = dict.fromkeys(
            ("address1", "address2", "city", "state", "country", "zip"), "Nowhere"
        )
        return "modify_user_address", {**who, **address}
    return "disable_roaming", who


def _customer(domain: Domain, task: Task) -> dict[str, str]:
    """Identifiers of the task's customer, found in the shared database."""
    if domain.name == "telecom":
        return _telecom_customer(domain, task)
    users = domain.bases["agent"].users
    for action in (task.evaluation_criteria and task.evaluation_criteria.actions) or []:
        if action.arguments.get("user_id") in users:
            return {"user_id": action.arguments["user_id"]}
    scenario = str(task.user_scenario)
    found = next((user_id for user_id in users if user_id in scenario), None)
    return {"user_id": found or next(iter(users))}


def _telecom_customer(domain: Domain, task: Task) -> dict[str, str]:
    database = domain.bases["agent"]
    actions = (task.initial_state and task.initial_state.initialization_actions) or []
    phone = next(
        (a.arguments["phone_number"] for a in actions if "phone_number" in a.arguments), None
    )
    line = next((line for line in database.lines if line.phone_number == phone), database.lines[0])
    owner = next(c for c in database.customers if line.line_id in c.line_ids)
    return {"customer_id": owner.customer_id, "line_id": line.line_id}
