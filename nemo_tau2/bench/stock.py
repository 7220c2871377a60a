"""Stock τ²: the named peer of the benches, driven with our scripted policy and user.

Imported by benches and tests only: it pulls in the whole of τ², litellm included.
"""

import asyncio
import json
import os
from typing import Any

from loguru import logger

logger.disable("tau2")
# litellm >= 1.110 downloads its price table at import unless told otherwise.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from tau2.data_model.simulation import SimulationRun, TerminationReason  # noqa: E402
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation  # noqa: E402
from tau2.gym.gym_agent import AgentGymEnv  # noqa: E402
from tau2.user.base import BaseUser, UserState  # noqa: E402

from nemo_tau2.tau2.engine import Message, MultiToolMessage, Task  # noqa: E402
from nemo_tau2.tau2.scripted_policy import ScriptedPolicy  # noqa: E402
from nemo_tau2.tau2.users.base import User, says_stop  # noqa: E402


class StockUser(BaseUser):
    """One of our user simulators in the shape τ²'s orchestrator expects."""

    def __init__(self, user: User):
        super().__init__()
        self.user = user

    def get_init_state(self, message_history=None) -> UserState:
        return UserState(system_messages=[], messages=[])

    def generate_next_message(self, message, state):
        incoming = message.tool_messages if isinstance(message, MultiToolMessage) else message
        if getattr(incoming, "role", None) == "tool":
            incoming = [incoming]
        # Our users never wait when they are scripted, so the coroutine ends at its first step.
        reply = _finish(self.user.reply(incoming))
        return reply.model_copy(
            deep=True, update={"timestamp": type(reply)(role="user").timestamp}
        ), state

    @classmethod
    def is_stop(cls, message) -> bool:
        return says_stop(message)

    def set_seed(self, seed: int) -> None:
        """A script has no seed."""


class ScriptedGymEnv(AgentGymEnv):
    """τ²'s own gym environment with a scripted user instead of an LLM."""

    scripted_user: User

    def _get_user(self):
        return StockUser(self.scripted_user)


def play_stock(domain: str, task: Task, policy: ScriptedPolicy, user: User) -> float:
    """One episode of stock `AgentGymEnv`, one call per step as its string interface demands."""
    env = ScriptedGymEnv(domain=domain, task_id=task.id, max_steps=200)
    env.scripted_user = user
    env.reset()
    reward, done, position = 0.0, False, 0
    while not done:
        answer = policy.turn(position)
        position += 1
        for action in _actions(answer):
            _, reward, done, _, _ = env.step(action)
            if done:
                break
    return reward


def stock_reward(domain: str, task: Task, trajectory: list[Message]) -> float:
    """Stock `evaluate_simulation` on a trajectory that the user ended.

    Raises ValueError where the stock replay disagrees with the recorded tool outputs.
    """
    messages = [message.model_copy(deep=True) for message in trajectory]
    for index, message in enumerate(messages):
        message.turn_idx = index
    simulation = SimulationRun(
        id="parity",
        task_id=task.id,
        start_time="",
        end_time="",
        duration=0.0,
        termination_reason=TerminationReason.USER_STOP,
        messages=messages,
    )
    return evaluate_simulation(simulation, task, EvaluationType.ALL, False, domain).reward


def _actions(answer: dict[str, Any]) -> list[str]:
    if not answer["tool_calls"]:
        return [answer["content"]]
    return [
        json.dumps(
            {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}
        )
        for c in answer["tool_calls"]
    ]


def _finish(coroutine: Any) -> Any:
    """The result of a coroutine that never waits, without an event loop (stock runs us in a thread)."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise asyncio.InvalidStateError(
        "this user waits for something; stock τ² needs one that does not"
    )
