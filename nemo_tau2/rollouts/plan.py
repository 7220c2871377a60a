"""What to roll out of τ²: tasks, policy, user, backend. Checked before anything starts.

`spec_plan.SpecPlan` is the same for rows of Agent Script environments; `Plan` is what both promise.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from nemo_tau2.chat import Complete, Endpoint, LiteLLMChat
from nemo_tau2.endpoints import ModelFlags, endpoint_of, read_key
from nemo_tau2.episodes import Episode
from nemo_tau2.errors import UserError
from nemo_tau2.rewards.table import RewardTable
from nemo_tau2.rollouts.notes import row_provenance, task_note
from nemo_tau2.tau2.dataset import dataset_rows, expand_domains, select_tasks, tell_scripted_policy
from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.engine import Task
from nemo_tau2.tau2.episode import Tau2Episode
from nemo_tau2.tau2.nl_judge import NLJudge
from nemo_tau2.tau2.scripted_policy import ScriptedPolicy
from nemo_tau2.tau2.tasks import TaskSet, load_tasks
from nemo_tau2.tau2.users.base import User
from nemo_tau2.tau2.users.llm import LLMUser
from nemo_tau2.tau2.users.scripted import ScriptedUser


class Plan(Protocol):
    """What `run` and the backends ask of a plan."""

    policy: Endpoint | None
    policy_token_ids: bool
    backend: Literal["gym", "direct"]
    concurrency: int
    max_turns: int | None

    def rows(self) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """The planned rows and the sha256 of each file behind them."""

    def describe(self) -> dict[str, Any]:
        """What results record of the plan, without secrets."""

    def finish(self, row: dict[str, Any]) -> dict[str, Any]:
        """A finished row with what it records beside its episode."""

    def new_episode(self, row: dict[str, Any]) -> Episode:
        """The direct backend's episode of a row."""

    def new_policy(self, row: dict[str, Any]) -> Complete:
        """The direct backend's policy of a row."""

    def environment(self, rows: list[dict[str, Any]], folder: Path) -> str:
        """The gym backend's environment: a name or a NeMo Gym YAML, which may be written to `folder`."""

    def overrides(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Settings of servers that differ from the environment's own."""

    def models(self) -> dict[str, Endpoint]:
        """{user, judge or helper: what answers} beside the policy."""

    @property
    def script(self) -> str:
        """`module:attribute` of what the scripted endpoint plays."""


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
        key = read_key(api_key_file)
        plan = cls(
            policy=endpoint_of("policy", policy, key),
            user=endpoint_of("user", user, key),
            judge=endpoint_of("judge", judge, key),
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

    def finish(self, row: dict[str, Any]) -> dict[str, Any]:
        """The finished row with its task and its provenance."""
        note = task_note(row["domain"], row["task_id"], self.tasks_dir)
        return row | {"task": note, "provenance": row_provenance(row, self.describe())}

    def new_episode(self, row: dict[str, Any]) -> Tau2Episode:
        """The direct backend's episode."""
        metadata = row["verifier_metadata"]
        task, domain = self._task(row), load_domain(metadata["domain"])
        chat = LiteLLMChat(self.user) if self.user else None
        user: User = LLMUser(domain, task, chat) if chat else ScriptedUser(task)
        judge = NLJudge(LiteLLMChat(self.judge)) if self.judge else None
        labels = {key: metadata[key] for key in ("group_id", "trial")}
        rewards = _reward_table(self.rewards)
        return Tau2Episode(domain, task, user, rewards=rewards, judge=judge, labels=labels)

    def new_policy(self, row: dict[str, Any]) -> Complete:
        """The direct backend's policy."""
        if self.policy:
            return LiteLLMChat(self.policy)
        metadata = row["verifier_metadata"]
        domain, trial = load_domain(metadata["domain"]), metadata["trial"]
        script = ScriptedPolicy(domain, self._task(row), self.seed, trial, self.fault_rate)

        async def answer(messages: list[dict[str, Any]], tools: Any) -> dict[str, Any]:
            return script.answer(messages)

        return answer

    def environment(self, rows: list[dict[str, Any]], folder: Path) -> str:
        """The gym backend's environment."""
        return f"tau2_{self.domain}"

    def overrides(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Settings of the resources server and the agents that differ from the environment's own."""
        server: dict[str, Any] = {"rewards": self.rewards}
        if Path(self.rewards).is_file():
            server["rewards"] = str(Path(self.rewards).resolve())
        if self.tasks_dir:
            server["tasks_dir"] = self.tasks_dir
        if self.user:
            server["user"] = "llm"
            server["user_model_server"] = {"type": "responses_api_models", "name": "user_model"}
            server["user_sampling"] = self.user.sampling
        if self.judge:
            server["judge_model_server"] = {"type": "responses_api_models", "name": "judge_model"}
            server["judge_sampling"] = self.judge.sampling
        overrides: dict[str, Any] = {
            f"tau2_{self.domain}": {"resources_servers": {"tau2_bench": server}},
        }
        if self.max_turns:
            for name in expand_domains(self.domain):
                agent = {"responses_api_agents": {"dialogue_agent": {"max_turns": self.max_turns}}}
                overrides[f"tau2_{name}_agent"] = agent
        return overrides

    def models(self) -> dict[str, Endpoint]:
        """{role of a launch: what answers} beside the policy."""
        given = {"user": self.user, "judge": self.judge}
        return {name: endpoint for name, endpoint in given.items() if endpoint}

    @property
    def script(self) -> str:
        """The script that the scripted endpoint plays."""
        return "nemo_tau2.tau2.scripted_policy:script"

    def _task(self, row: dict[str, Any]) -> Task:
        metadata = row["verifier_metadata"]
        return load_tasks(metadata["domain"], self.tasks_dir).get(metadata["task_id"])

    def _scripted(self, row: dict[str, Any]) -> dict[str, Any]:
        return tell_scripted_policy(row, self.seed, self.fault_rate, self.tasks_dir)

    def _named(self, tasks: TaskSet) -> set[str]:
        """The ids asked for; of several domains, an id need only exist in one."""
        if self.domain != "all":
            for task_id in self.task_ids:
                tasks.get(task_id)
        return set(self.task_ids)


@lru_cache(maxsize=8)
def _reward_table(name_or_path: str) -> RewardTable:
    return RewardTable.load(name_or_path)
