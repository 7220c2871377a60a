"""The scripted user: plays a task's information and, in telecom, its gold user actions. No LLM.

It makes rollouts possible on a laptop and in tests; it is no model of how people behave. It knows the
task, tells what the scenario says it knows, does on its phone what the agent names (or the next pending
step where the agent names none), and leaves when the agent says goodbye or hands it to a human.
"""

from nemo_tau2.tau2.engine import (
    STOP,
    TRANSFER,
    Action,
    AssistantMessage,
    Task,
    ToolCall,
    ToolMessage,
    UserMessage,
)

PATIENCE = 8
"""Messages without a request or a goodbye before the user leaves."""

_GOODBYES = ("goodbye", "anything else i can help", "have a great day", "have a nice day")
_HANDOVER = "transferred to a human agent"


class ScriptedUser:
    """Args:
    task: the task whose user is played.
    """

    def __init__(self, task: Task):
        self._opening, self._facts = _scenario(task)
        self._segments = _user_segments(task)
        self._queue: list[Action] = []
        self._report = ""
        self._calls = 0
        self._idle = 0
        self._opened = False

    async def reply(self, incoming: AssistantMessage | list[ToolMessage]) -> UserMessage:
        if isinstance(incoming, list):
            self._report = incoming[-1].content or ""
            return self._act() if self._queue else _says(f"Done. I see: {self._report[:300]}")
        if not self._opened:
            self._opened = True
            return _says(f"{self._opening} {self._facts}".strip())
        text = (incoming.content or "").lower()
        if _HANDOVER in text:
            return _says(TRANSFER)
        self._queue = self._requested(text)
        if self._queue:
            self._idle = 0
            return self._act()
        self._idle += 1
        if self._idle > PATIENCE or any(phrase in text for phrase in _GOODBYES):
            return _says(f"Thank you, goodbye. {STOP}")
        return _says(self._facts or "Please go on.")

    def _requested(self, text: str) -> list[Action]:
        """The pending steps the agent names; the next segment where it names none and says no goodbye."""
        if not self._segments:
            return []
        pending = self._segments[0]
        named = [action for action in pending if action.name in text]
        if not named and any(phrase in text for phrase in _GOODBYES):
            return []
        chosen = named or pending
        rest = [action for action in pending if action not in chosen]
        self._segments = ([rest] if rest else []) + self._segments[1:]
        return list(chosen)

    def _act(self) -> UserMessage:
        action = self._queue.pop(0)
        self._calls += 1
        call = ToolCall(
            id=f"user_{self._calls}", name=action.name, arguments=action.arguments, requestor="user"
        )
        return UserMessage(role="user", tool_calls=[call])


def _scenario(task: Task) -> tuple[str, str]:
    """What the user wants, and what they know."""
    instructions = task.user_scenario.instructions
    if isinstance(instructions, str):
        return instructions, ""
    return instructions.reason_for_call or "", instructions.known_info or ""


def _user_segments(task: Task) -> list[list[Action]]:
    """The gold user actions, grouped where agent actions come between them."""
    segments: list[list[Action]] = []
    previous = None
    for action in (task.evaluation_criteria and task.evaluation_criteria.actions) or []:
        if action.requestor == "user":
            if previous != "user":
                segments.append([])
            segments[-1].append(action)
        previous = action.requestor
    return segments


def _says(text: str) -> UserMessage:
    return UserMessage(role="user", content=text)
