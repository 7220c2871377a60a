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

from nemo_tau2.errors import UserError
from nemo_tau2.rollouts.direct import run_direct
from nemo_tau2.rollouts.plan import Plan
from nemo_tau2.rollouts.store import RolloutStore, part_of, row_key
from nemo_tau2.rollouts.summary import provenance, summarise


def run(plan: Plan, output: Path, resume: bool) -> int:
    """Plays what is missing of the plan. Returns the exit code: 0, or 130 when interrupted."""
    rows, hashes = plan.rows()
    _same_plan(plan, output, resume)
    store = RolloutStore(output, resume)
    write_planned(rows, output)
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


def write_planned(rows: list[dict[str, Any]], output: Path) -> None:
    """Writes `planned.json`: the trials of each task, so that a report knows of those never played."""
    trials: dict[str, Counter[str]] = {}
    for row in rows:
        trials.setdefault(part_of(row), Counter())[row_key(row)[1]] += 1
    _write(output / "planned.json", json.dumps(trials) + "\n")


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
    plan: Plan,
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
        bar = progress.add_task("episodes", total=planned, completed=planned - len(missing))

        async def consume(results: AsyncIterator[dict[str, Any]]) -> None:
            async with aclosing(results):
                async for row in results:
                    store.add(plan.finish(row))
                    progress.advance(bar)

        if not missing:
            return False
        if plan.backend == "direct":
            episodes, policies = plan.new_episode, plan.new_policy
            results = run_direct(missing, episodes, policies, plan.concurrency, plan.max_turns)
            return _until_signal(consume(results))
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


def _same_plan(plan: Plan, output: Path, resume: bool) -> None:
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
