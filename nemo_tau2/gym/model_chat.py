"""Chat completions from a NeMo Gym model server, for frozen helpers such as the user simulator.

The answer is built anew from text and calls: token ids that a training model server attaches stay
behind, so a helper that shares the policy's server can never reach the trained chain.
"""

from typing import Any

from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from nemo_tau2.chat import ChatFailed
from nemo_tau2.gym.http import CallFailed, Peer


class ModelServerChat:
    """A `nemo_tau2.chat.Complete` for one episode (a model server pins an episode to one replica).

    `timeout_s` bounds one request; failed ones are repeated, `attempts` in all. Model servers repeat
    429 and 5xx of their endpoint by themselves.
    """

    def __init__(self, peer: Peer, sampling: dict[str, Any], timeout_s: float, attempts: int = 3):
        self._peer = peer
        self._sampling = sampling
        self._timeout_s = timeout_s
        self._attempts = attempts

    async def __call__(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
    ) -> dict[str, Any]:
        body = self._sampling | {"messages": messages} | ({"tools": tools} if tools else {})
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(CallFailed),
            stop=stop_after_attempt(self._attempts),
            wait=wait_random_exponential(multiplier=0.5, max=10),
            reraise=True,
        )
        try:
            answer = await retrying(self._peer.post, "/v1/chat/completions", body, self._timeout_s)
        except CallFailed as error:
            raise ChatFailed(str(error)) from None
        try:
            message = answer["choices"][0]["message"]
            calls = [
                {
                    "id": c["id"],
                    "type": "function",
                    "function": {k: c["function"][k] for k in ("name", "arguments")},
                }
                for c in message.get("tool_calls") or []
            ]
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ChatFailed(f"{self._peer.name} answered no chat message") from None
        return {"role": "assistant", "content": message.get("content"), "tool_calls": calls or None}
