"""`tau2_bench`: the resources server of τ²-bench's airline, retail and telecom.

The row says which task (`verifier_metadata.domain`, `task_id`); the configuration says who plays the
user and what turns are worth. The episode itself is `nemo_tau2.tau2.episode.Tau2Episode`.
"""

from typing import Any, Literal

from nemo_gym.config_types import ModelServerRef
from pydantic import ConfigDict, Field, PositiveFloat, PrivateAttr, model_validator

from nemo_tau2.errors import UserError
from nemo_tau2.gym.model_chat import ModelServerChat
from nemo_tau2.gym.resources import EpisodeServer, EpisodeServerConfig
from nemo_tau2.rewards.table import RewardTable
from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.engine import Task
from nemo_tau2.tau2.episode import Limits, Tau2Episode
from nemo_tau2.tau2.nl_judge import NLJudge
from nemo_tau2.tau2.tasks import TaskSet, load_tasks
from nemo_tau2.tau2.users.base import User
from nemo_tau2.tau2.users.llm import LLMUser
from nemo_tau2.tau2.users.scripted import ScriptedUser

LABELS = ("group_id", "trial")
"""Fields of `verifier_metadata` that come back at the top level of the verify response."""


class Tau2BenchConfig(EpisodeServerConfig):
    """Configuration of a `tau2_bench` instance."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    preload: list[Literal["airline", "retail", "telecom"]] = Field(default_factory=list)
    """Domains to load at start; others load at their first episode, which takes about a second."""
    tasks_dir: str | None = None
    """Tasks of a τ²-bench checkout instead of the packaged ones; an absolute path."""
    user: Literal["scripted", "llm"] = "scripted"
    """Who plays the user: the task's information by rule, or τ²'s LLM user simulator."""
    user_model_server: ModelServerRef | None = None
    """The model server that plays an `llm` user; frozen, its token ids are never returned."""
    user_sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.0})
    """Sampling parameters of the user's chat completions; τ² uses temperature 0."""
    user_request_timeout_s: PositiveFloat = 120.0
    """Seconds for one chat completion of the user or the judge; `limits.user_timeout_s` bounds a reply."""
    judge_model_server: ModelServerRef | None = None
    """The model server that judges natural-language assertions; None leaves them out of the reward,
    and each row says so. Only v1.0 retail tasks have them in their basis."""
    judge_sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.0})
    """Sampling parameters of the judge's chat completions."""
    rewards: str = "calibrated"
    """What turns are worth: a built-in table or the path of a reward file."""
    limits: Limits = Limits()
    """Budgets of one episode."""

    @model_validator(mode="after")
    def _llm_user_has_a_server(self) -> "Tau2BenchConfig":
        if self.user == "llm" and self.user_model_server is None:
            raise ValueError(
                "user: llm needs user_model_server: {type: responses_api_models, name: <instance>}"
            )
        return self


class Tau2Bench(EpisodeServer):
    """Makes τ² episodes out of dataset rows."""

    config: Tau2BenchConfig
    _rewards: RewardTable = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self._rewards = RewardTable.load(self.config.rewards)
        for domain in self.config.preload:
            load_domain(domain)
            load_tasks(domain, self.config.tasks_dir)

    async def new_episode(self, row: dict[str, Any]) -> Tau2Episode:
        metadata = row.get("verifier_metadata")
        if not isinstance(metadata, dict) or not {"domain", "task_id"} <= metadata.keys():
            raise UserError(
                "the row has no verifier_metadata with domain and task_id; make rows with `nemo-tau2 data`"
            )
        tasks = load_tasks(str(metadata["domain"]), self.config.tasks_dir)
        _same_tasks(tasks, metadata.get("tasks_file_sha256"))
        task = tasks.get(str(metadata["task_id"]))
        return Tau2Episode(
            load_domain(tasks.domain),
            task,
            self._user(tasks.domain, task),
            rewards=self._rewards,
            limits=self.config.limits,
            judge=self._judge(),
            labels={name: metadata[name] for name in LABELS if metadata.get(name) is not None},
        )

    def _user(self, domain: str, task: Task) -> User:
        if self.config.user == "scripted":
            return ScriptedUser(task)
        chat = self._chat(self.config.user_model_server, self.config.user_sampling)
        return LLMUser(load_domain(domain), task, chat)

    def _judge(self) -> NLJudge | None:
        server = self.config.judge_model_server
        return NLJudge(self._chat(server, self.config.judge_sampling)) if server else None

    def _chat(self, reference: ModelServerRef, sampling: dict[str, Any]) -> ModelServerChat:
        peer = self.peer(reference.name)
        return ModelServerChat(peer, sampling, self.config.user_request_timeout_s)


def _same_tasks(tasks: TaskSet, expected: str | None) -> None:
    """Rows and server must mean the same task file: ids are the same in corrected and packaged tasks."""
    if expected is not None and expected != tasks.sha256:
        where = tasks.source or "the packaged tasks"
        raise UserError(
            f"the row was made from another {tasks.domain} tasks file than {where}; "
            "set the server's tasks_dir to the folder given to `nemo-tau2 data --tasks-dir`"
        )
