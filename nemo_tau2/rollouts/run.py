"""The `rollout` verb's work: plays a plan with either backend, stores rows as they end, sums up."""

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from nemo_tau2.chat import Complete, LiteLLMChat
from nemo_tau2.errors import UserError
from nemo_tau2.rewards.table import RewardTable
from nemo_tau2.rollouts.direct import run_direct
from nemo_tau2.rollouts.notes import row_provenance, task_note
from nemo_tau2.rollouts.plan import RolloutPlan
from nemo_tau2.rollouts.store import RolloutStore, row_key
from nemo_tau2.rollouts.summary import provenance, summarise
from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.episode import Tau2Episode
from nemo_tau2.tau2.nl_judge import NLJudge
from nemo_tau2.tau2.scripted_policy import ScriptedPolicy
from nemo_tau2.tau2.tasks import load_tasks
from nemo_tau2.tau2.users.base import User
from nemo_tau2.tau2.users.llm import LLMUser
from nemo_tau2.tau2.users.scripted import ScriptedUser


def run(plan: RolloutPlan, output: Path, resume: bool) -> int:
    """Plays what is missing of the plan. Returns the exit code: 0, or 130 when interrupted."""
    rows, hashes = plan.rows()
    _same_plan(plan, output, resume)
    store = RolloutStore(output, resume)
    trials: dict[str, Counter[str]] = {}
    for domain, task_id, _ in map(row_key, rows):
        trials.setdefault(domain, Counter())[task_id] += 1
    _write(output / "planned.json", json.dumps(trials) + "\n")
    console = Console(stderr=True)
    missing = [row for row in rows if row_key(row) not in store.finished]
    started = time.monotonic()
    try:
        interrupted = _play(plan, missing, len(rows), store, output, console)
    finally:
        store.close()
    planned = {row_key(row) for row in rows}
    stored = (row for row in store.rows() if row_key(row) in planned)
    summary = summarise(stored) | {"planned": len(rows)}
    seconds = time.monotonic() - started
    summary["seconds"] = round(seconds, 3)
    summary["episodes_per_second"] = round(len(missing) / seconds, 3) if missing else 0.0
    summary["provenance"] = provenance(plan=plan.describe(), tasks_file_sha256=hashes)
    path = output / "summary.json"
    _write(path, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    print_summary(summary, console)
    console.print(f"rows: {store.path}\nsummary: {path}")
    if interrupted:
        console.print("interrupted: finished rows are kept, run again with --resume")
        return 130
    return 0


def print_summary(summary: dict[str, Any], console: Console) -> None:
    """The table: a column per domain, so that it fits a narrow terminal."""
    title = f"{summary['episodes']} of {summary['planned']} episodes, {summary['seconds']:.1f} s"
    parts = summary["by_domain"]
    table = Table("", *parts, title=title)
    for label, show in (
        ("episodes", lambda part: str(part["episodes"])),
        ("masked", lambda part: str(part["masked"])),
        ("mean reward", lambda part: _number(part["reward_mean"])),
        ("pass^1", lambda part: _number(part["pass^1"])),
        ("seconds an episode", lambda part: _number(part["seconds_per_episode"])),
        ("turn tiers", lambda part: _counts(part["turn_tiers"])),
        ("stop reasons", lambda part: _counts(part["stop_reasons"])),
    ):
        table.add_row(label, *map(show, parts.values()))
    console.print(table)


def _play(
    plan: RolloutPlan,
    missing: list[dict[str, Any]],
    planned: int,
    store: RolloutStore,
    output: Path,
    console: Console,
) -> bool:
    """Plays the missing rows with a progress bar. Returns whether a signal cut it short."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        described = plan.describe()
        bar = progress.add_task("episodes", total=planned, completed=planned - len(missing))

        async def consume(results: AsyncIterator[dict[str, Any]]) -> None:
            async with aclosing(results):
                async for row in results:
                    note = task_note(row["domain"], row["task_id"], plan.tasks_dir)
                    store.add(row | {"task": note, "provenance": row_provenance(row, described)})
                    progress.advance(bar)

        if not missing:
            return False
        if plan.backend == "direct":
            return _until_signal(consume(_direct(plan, missing)))
        from nemo_tau2.rollouts.through_gym import gym_results

        with gym_results(plan, missing, output, progress.console.print) as results:
            return _until_signal(consume(results))


def _until_signal(work: Any) -> bool:
    """Runs the coroutine; SIGINT and SIGTERM cancel it and make this return True."""

    async def guarded() -> bool:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    return asyncio.run(guarded())


def _direct(plan: RolloutPlan, rows: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    rewards = RewardTable.load(plan.rewards)
    user_chat = LiteLLMChat(plan.user) if plan.user else None
    policy_chat = LiteLLMChat(plan.policy) if plan.policy else None
    judge = NLJudge(LiteLLMChat(plan.judge)) if plan.judge else None

    def new_episode(row: dict[str, Any]) -> Tau2Episode:
        task, domain = _task(plan, row), load_domain(row["verifier_metadata"]["domain"])
        user: User = LLMUser(domain, task, user_chat) if user_chat else ScriptedUser(task)
        labels = {key: row["verifier_metadata"][key] for key in ("group_id", "trial")}
        return Tau2Episode(domain, task, user, rewards=rewards, judge=judge, labels=labels)

    def new_policy(row: dict[str, Any]) -> Complete:
        if policy_chat:
            return policy_chat
        domain, trial = (
            load_domain(row["verifier_metadata"]["domain"]),
            row["verifier_metadata"]["trial"],
        )
        script = ScriptedPolicy(domain, _task(plan, row), plan.seed, trial, plan.fault_rate)

        async def answer(messages: list[dict[str, Any]], tools: Any) -> dict[str, Any]:
            return script.answer(messages)

        return answer

    return run_direct(rows, new_episode, new_policy, plan.concurrency, plan.max_turns)


def _task(plan: RolloutPlan, row: dict[str, Any]):
    metadata = row["verifier_metadata"]
    return load_tasks(metadata["domain"], plan.tasks_dir).get(metadata["task_id"])


def _same_plan(plan: RolloutPlan, output: Path, resume: bool) -> None:
    """Writes the plan beside the rows, or refuses to resume another one."""
    path = output / "plan.json"
    described = plan.describe()
    if resume and path.exists():
        earlier = json.loads(path.read_text(encoding="utf-8"))
        free = ("backend", "concurrency", "limit", "group_size")  # these change no episode
        changed = [k for k, v in described.items() if k not in free and earlier.get(k) != v]
        if changed:
            raise UserError(
                f"--resume: {output} was made with another {', '.join(changed)} "
                f"({earlier.get(changed[0])!r}); use the same flags or another --output"
            )
    if not resume and (output / "rollouts.jsonl").exists():
        return  # the store says so, in its own words
    _write(path, json.dumps(described, indent=2, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a writable --output") from None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _counts(counts: dict[str, int]) -> str:
    return "\n".join(f"{name} {count}" for name, count in counts.items())
