"""What to roll out: tasks, policy, user, backend. Checked before anything starts."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, SecretStr

from nemo_tau2.chat import Endpoint
from nemo_tau2.errors import UserError
from nemo_tau2.rewards.table import RewardTable
from nemo_tau2.tau2.dataset import dataset_rows, expand_domains, select_tasks, tell_scripted_policy
from nemo_tau2.tau2.tasks import TaskSet

ModelFlags = tuple[str | None, str | None, str | None, str | None]
"""("scripted" or None, url, model, sampling JSON) as they come from the command line."""


class RolloutPlan(BaseModel):
    """One run of the `rollout` verb; `None` for policy or user is the scripted one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    domain: str
    split: str
    limit: int | None
    group_size: int
    policy: Endpoint | None
    policy_token_ids: bool
    user: Endpoint | None
    judge: Endpoint | None
    backend: Literal["gym", "direct"]
    concurrency: int
    seed: int
    fault_rate: float
    max_turns: int | None
    rewards: str
    tasks_dir: str | None
    task_ids: tuple[str, ...]

    @classmethod
    def from_flags(
        cls,
        policy: ModelFlags,
        user: ModelFlags,
        judge: ModelFlags,
        api_key_file: Path | None,
        **rest: Any,
    ) -> "RolloutPlan":
        """Raises UserError for flags that contradict each other or name nothing."""
        if not 0.0 <= rest["fault_rate"] <= 1.0:
            raise UserError(f"--fault-rate {rest['fault_rate']}: must be between 0 and 1")
        RewardTable.load(rest["rewards"])
        key = _read_key(api_key_file)
        plan = cls(
            policy=_endpoint("policy", policy, key),
            user=_endpoint("user", user, key),
            judge=_endpoint("judge", judge, key),
            **rest,
        )
        if plan.policy_token_ids and (plan.policy is None or plan.backend != "gym"):
            raise UserError("--policy-token-ids needs --policy-url and the gym backend")
        return plan

    def rows(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """The planned rows and the sha256 of each tasks file."""
        rows, hashes = [], {}
        for name in expand_domains(self.domain):
            tasks, chosen = select_tasks(name, self.split, self.tasks_dir)
            if self.task_ids:
                chosen = [task for task in chosen if task.id in self._named(tasks)]
            chosen = chosen if self.limit is None else chosen[: self.limit]
            hashes[name] = tasks.sha256
            rows += dataset_rows(name, self.split, tasks, chosen, self.group_size)
        if not rows:
            raise UserError(
                f"no task left in {self.domain} {self.split} with these filters; loosen --task-id or --limit"
            )
        if self.policy is None:
            rows = [self._scripted(row) for row in rows]
        return rows, hashes

    def describe(self) -> dict[str, Any]:
        """What the summary records, without secrets."""
        described = self.model_dump(exclude={"policy", "user", "judge"}, mode="json")
        described["policy"] = self.policy.describe() if self.policy else "scripted"
        described["user"] = self.user.describe() if self.user else "scripted"
        described["judge"] = self.judge.describe() if self.judge else None
        return described

    def _scripted(self, row: dict[str, Any]) -> dict[str, Any]:
        return tell_scripted_policy(row, self.seed, self.fault_rate, self.tasks_dir)

    def _named(self, tasks: TaskSet) -> set[str]:
        """The ids asked for; of several domains, an id need only exist in one."""
        if self.domain != "all":
            for task_id in self.task_ids:
                tasks.get(task_id)
        return set(self.task_ids)


def _endpoint(role: str, flags: ModelFlags, key: str | None) -> Endpoint | None:
    scripted, url, model, sampling = flags
    if scripted and (url or model):
        raise UserError(f"--{role} scripted and --{role}-url exclude each other; give one")
    if not url and not model:
        return None
    if not (url and model):
        raise UserError(f"--{role}-url and --{role}-model go together; give both")
    if not url.startswith(("http://", "https://")):
        raise UserError(f"--{role}-url {url!r}: must begin with http:// or https:// and end in /v1")
    try:
        parsed = json.loads(sampling or "{}")
    except ValueError as error:
        raise UserError(f"--{role}-sampling is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise UserError(f"--{role}-sampling must be a JSON object")
    return Endpoint(url=url, model=model, sampling=parsed, api_key=SecretStr(key) if key else None)


def _read_key(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").splitlines()[0].strip()
    except (OSError, IndexError) as error:
        raise UserError(f"--api-key-file {path}: {error}") from None
