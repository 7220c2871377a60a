"""Dataset rows: what NeMo Gym and NeMo RL read, one per task and repeat.

A row holds what the policy may see (system prompt, tools) and, in `verifier_metadata`, which task it is;
never the task's gold actions. `agent_ref` routes it in NeMo Gym 0.4 and NeMo RL, `task_source` in
newer Gyms, so both are written.
"""

import json
from collections.abc import Iterator
from typing import Any

from nemo_tau2.tau2.domains import DOMAINS, Domain, load_domain
from nemo_tau2.tau2.engine import Task
from nemo_tau2.tau2.gold import gold_path
from nemo_tau2.tau2.reward import outcome_reward
from nemo_tau2.tau2.tasks import TaskSet, load_tasks, require_whole


def expand_domains(domain: str) -> tuple[str, ...]:
    """The domains a `--domain` value stands for; `all` is every one."""
    return DOMAINS if domain == "all" else (domain,)


def select_tasks(
    domain: str,
    split: str,
    tasks_dir: str | None = None,
    limit: int | None = None,
    drop_null_solvable: bool = False,
    drop_gold_errors: bool = False,
) -> tuple[TaskSet, list[Task]]:
    """The tasks of a split that pass the filters, at most `limit` of them.

    Raises UserError for unknown names, an unreadable file or broken tasks.
    """
    tasks = load_tasks(domain, tasks_dir)
    require_whole(tasks)
    shared = load_domain(domain)
    chosen = [
        task
        for task in tasks.split(split)
        if not (drop_null_solvable and null_solvable(shared, task))
        and not (drop_gold_errors and any(a.errored for a in gold_path(shared, task).actions))
    ]
    return tasks, chosen if limit is None else chosen[:limit]


def null_solvable(domain: Domain, task: Task) -> bool:
    """Whether an agent that says and does nothing gets reward 1 (sierra-research/tau2-bench#384)."""
    world = domain.new_world()
    world.initialise(task)
    return outcome_reward(world, task, gold_path(domain, task), []).value == 1.0


def dataset_rows(
    domain: str, split: str, tasks: TaskSet, chosen: list[Task], repeats: int = 1
) -> Iterator[dict[str, Any]]:
    """Rows for the chosen tasks, the repeats of a task beside each other."""
    shared = load_domain(domain)
    tools = [
        {"type": "function", **schema["function"], "strict": None}
        for schema in shared.sides["assistant"].schemas
    ]
    agent = f"tau2_{domain}_agent"
    for task in chosen:
        for trial in range(repeats):
            yield {
                "responses_create_params": {
                    "input": [
                        {"type": "message", "role": "system", "content": shared.system_prompt}
                    ],
                    "tools": tools,
                },
                "agent_ref": {"type": "responses_api_agents", "name": agent},
                "task_source": agent,
                "verifier_metadata": {
                    "domain": domain,
                    "task_id": task.id,
                    "split": split,
                    "group_id": f"{domain}/{task.id}",
                    "trial": trial,
                    "tasks_file_sha256": tasks.sha256,
                },
            }


def tell_scripted_policy(
    row: dict[str, Any], seed: int, fault_rate: float, tasks_dir: str | None = None
) -> dict[str, Any]:
    """The row with the note that tells the scripted policy its task; real policies never get it."""
    metadata = row["verifier_metadata"]
    note = {key: metadata[key] for key in ("domain", "task_id", "trial")}
    note |= {"seed": seed, "fault_rate": fault_rate}
    if tasks_dir is not None:
        note["tasks_dir"] = tasks_dir
    body = json.dumps({"nemo_tau2": note})
    params = row["responses_create_params"] | {"metadata": {"extra_body": body}}
    return row | {"responses_create_params": params}
