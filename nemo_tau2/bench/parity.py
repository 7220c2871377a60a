"""`nemo-tau2 bench parity`: our rewards against stock `evaluate_simulation` on fuzzed episodes.

Each episode plays a task's gold actions with perturbations (dropped, swapped, wrong, duplicate,
hallucinated and parallel calls, early stops), by our episode. Stock τ² then evaluates the trajectory.
Where the two differ and a switchable fix explains it, the episode counts as deliberate, by name.
"""

import asyncio
import json as json_module
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

PERTURBATIONS = ("gold", "drop", "swap", "wrong", "duplicate", "hallucinate", "empty", "early_stop")

DELIBERATE = {
    "vpn_default": "every phone has its own default VPN; upstream's is shared and stays broken (#154)",
    "bill_id": "a new bill has a deterministic id; upstream's replay draws another and raises",
    "calculate": "powers and long expressions are refused; upstream evaluates them",
}
"""Differences on purpose, by the fix that makes them (`tau2.fixes.Fixes`)."""


def parity(
    *,
    episodes: int = 3000,
    domain: Literal["airline", "retail", "telecom", "all"] = "all",
    seed: int = 0,
    processes: int = 2,
    json: bool = False,
) -> int:
    """Fuzz all domains against stock evaluation; exit 1 when a reward differs.

    Parameters
    ----------
    episodes
        Fuzzed episodes in all.
    domain
        Whose tasks.
    seed
        Seeds the perturbations.
    processes
        Processes; stock evaluation takes most of the time.
    json
        Print one JSON object.
    """
    from rich.progress import Progress

    from nemo_tau2.tau2.dataset import expand_domains

    domains = expand_domains(domain)
    jobs = [(domains[i % len(domains)], f"{seed}/{i}") for i in range(episodes)]
    outcomes = []
    with ProcessPoolExecutor(processes) as pool, Progress(disable=json) as progress:
        bar = progress.add_task("episodes", total=episodes)
        for outcome in pool.map(_compare_packed, jobs, chunksize=4):
            outcomes.append(outcome)
            progress.advance(bar)
    result = report(outcomes)
    if json:
        print(json_module.dumps(result))
    else:
        print(
            f"{episodes} episodes: {result['disagreements']} disagreements, deliberate {result['deliberate']}"
        )
        for line in result["examples"]:
            print(line)
    return 1 if result["disagreements"] else 0


@dataclass
class Outcome:
    """One fuzzed episode: both rewards, and the fix that explains a difference."""

    domain: str
    task_id: str
    key: str
    perturbations: tuple[str, ...]
    ours: float
    stock: float | str
    deliberate: str | None = None

    @property
    def agrees(self) -> bool:
        return self.ours == self.stock


@dataclass
class Script:
    """A conversation to play: agent turns (calls or text), and what the user does after each text."""

    turns: list[list[tuple[str, dict[str, Any]]] | str] = field(default_factory=list)
    user_actions: list[list[tuple[str, dict[str, Any]]]] = field(default_factory=list)


def report(outcomes: list[Outcome]) -> dict[str, Any]:
    """Counts, and the first disagreements in words."""
    differing = [o for o in outcomes if not o.agrees]
    wrong = [o for o in differing if o.deliberate is None]
    return {
        "episodes": len(outcomes),
        "disagreements": len(wrong),
        "deliberate": dict(Counter(o.deliberate for o in differing if o.deliberate)),
        "rewarded": sum(o.ours == 1.0 for o in outcomes),
        "perturbations": dict(Counter(name for o in outcomes for name in o.perturbations)),
        "examples": [
            f"{o.domain} {o.task_id} {o.key} {o.perturbations}: {o.ours} / {o.stock}"
            for o in wrong[:5]
        ],
    }


def compare(domain: str, key: str) -> Outcome:
    """Plays the fuzzed episode `key` and evaluates it with both."""
    from nemo_tau2.bench.stock import stock_reward
    from nemo_tau2.tau2.domains import load_domain
    from nemo_tau2.tau2.fixes import Fixes
    from nemo_tau2.tau2.tasks import load_tasks

    rng = random.Random(f"{key}/{domain}")
    task = rng.choice(load_tasks(domain).split("base"))
    script, perturbations = fuzz(task, rng)

    def both(fixes: Fixes) -> tuple[float, float | str]:
        episode = asyncio.run(_play(load_domain(domain, fixes), task, script))
        ours = asyncio.run(episode.verify())["reward"]
        with _pristine_vpn():
            try:
                return ours, stock_reward(domain, task, episode.trajectory)
            except ValueError as error:
                return ours, f"raises {str(error)[:200]}"

    ours, stock = both(Fixes())
    outcome = Outcome(domain, task.id, key, perturbations, ours, stock)
    if not outcome.agrees:
        outcome.deliberate = next(
            (name for name in DELIBERATE if _explained(both, Fixes(**{name: False}), name, stock)),
            None,
        )
    return outcome


def _explained(both: Any, fixes: Any, name: str, stock: float | str) -> bool:
    """Whether switching one fix off gives stock's answer, or stock raises over a bill's random id."""
    if name == "bill_id":
        return isinstance(stock, str) and "bill" in stock.lower()
    ours, again = both(fixes)
    return ours == again


def _compare_packed(job: tuple[str, str]) -> Outcome:
    return compare(*job)


def fuzz(task: Any, rng: random.Random) -> tuple[Script, tuple[str, ...]]:
    """A script for one task: gold actions with one to three perturbations."""
    actions = [
        (a.requestor, a.name, dict(a.arguments)) for a in (task.evaluation_criteria.actions or [])
    ]
    chosen = tuple(rng.choice(PERTURBATIONS) for _ in range(rng.randint(1, 3)))
    for name in chosen:
        actions = _perturb(actions, name, rng)
    return _script(actions, task, rng), chosen


def _perturb(actions: list[tuple], name: str, rng: random.Random) -> list[tuple]:
    if not actions or name == "gold":
        return actions
    actions, index = list(actions), rng.randrange(len(actions))
    actor, tool, arguments = actions[index]
    if name == "drop":
        del actions[index]
    elif name == "swap":
        other = rng.randrange(len(actions))
        actions[index], actions[other] = actions[other], actions[index]
    elif name == "wrong":
        actions[index] = (actor, tool, _wrong(arguments, rng))
    elif name == "duplicate":
        actions.insert(rng.randrange(len(actions) + 1), actions[index])
    elif name == "hallucinate":
        actions.insert(
            index, (actor, rng.choice([f"{tool}_x", "toggle_airplane_mode_x"]), arguments)
        )
    elif name == "empty":
        actions[index] = (actor, tool, {})
    elif name == "early_stop":
        actions = actions[:index]
    return actions


def _wrong(arguments: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    if not arguments:
        return {"surprise": 1}
    key = rng.choice(sorted(arguments))
    value = arguments[key]
    options = [None, [], "", 0, str(value), "###STOP###"]
    if isinstance(value, list):
        options += [value[::-1], value[:-1]]
    if isinstance(value, int) and not isinstance(value, bool):
        options += [float(value), value + 1]
    return arguments | {key: rng.choice(options)}


def _script(actions: list[tuple], task: Any, rng: random.Random) -> Script:
    script, position = Script(), 0
    while position < len(actions):
        actor = actions[position][0]
        run = []
        limit = 1 if actor == "assistant" and rng.random() < 0.7 else rng.randint(1, 4)
        while position < len(actions) and actions[position][0] == actor and len(run) < limit:
            run.append(actions[position][1:])
            position += 1
        if actor == "assistant":
            script.turns.append(run)
        else:
            script.turns.append("Please do that on your phone.")
            script.user_actions.append(run)
    facts = task.evaluation_criteria.communicate_info or []
    said = [fact for fact in facts if rng.random() < 0.9]
    script.turns.append(f"Here you are: {', '.join(said)}")
    script.user_actions.append([])
    return script


class _FuzzUser:
    """Does what the script says after each agent text, one call per message, then answers or stops."""

    def __init__(self, script: Script):
        self.pending = [list(run) for run in script.user_actions]
        self.queue: list[tuple[str, dict[str, Any]]] = []
        self.opened = False
        self.calls = 0

    async def reply(self, incoming: Any) -> Any:
        from nemo_tau2.tau2.engine import STOP, ToolCall, UserMessage

        if not isinstance(incoming, list):
            if not self.opened:
                self.opened = True
                return UserMessage(role="user", content="Hello.")
            self.queue = self.pending.pop(0)
        if self.queue:
            name, arguments = self.queue.pop(0)
            self.calls += 1
            call = ToolCall(id=f"u{self.calls}", name=name, arguments=arguments, requestor="user")
            return UserMessage(role="user", tool_calls=[call])
        return UserMessage(role="user", content="Done." if self.pending else STOP)


async def _play(domain: Any, task: Any, script: Script) -> Any:
    from nemo_tau2.chat_items import output_items
    from nemo_tau2.tau2.episode import Limits, Tau2Episode

    limits = Limits(max_steps=10_000, max_errors=10_000)
    episode = Tau2Episode(domain, task, _FuzzUser(script), limits=limits)
    await episode.seed()
    for number, turn in enumerate(script.turns):
        calls = [] if isinstance(turn, str) else turn
        answer = {
            "content": turn if isinstance(turn, str) else None,
            "tool_calls": [
                {"id": f"c{number}_{i}", "function": {"name": n, "arguments": json_module.dumps(a)}}
                for i, (n, a) in enumerate(calls)
            ],
        }
        await episode.step(output_items(answer))
    return episode


class _pristine_vpn:
    """Stock telecom mutates a class attribute (#154): gives each evaluation a fresh one and puts it back."""

    def __enter__(self) -> None:
        from tau2.domains.telecom.user_tools import TelecomUserTools

        self.owner, self.saved = TelecomUserTools, TelecomUserTools.default_vpn_details
        TelecomUserTools.default_vpn_details = self.saved.model_copy(deep=True)

    def __exit__(self, *_: Any) -> None:
        self.owner.default_vpn_details = self.saved
