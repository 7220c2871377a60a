"""Helpers on a NeMo Gym model server: plain messages out, typed failures, nothing of the training path."""

import asyncio
from typing import Any

import pytest

from nemo_tau2.chat import ChatFailed
from nemo_tau2.gym.http import CallFailed
from nemo_tau2.gym.model_chat import ModelServerChat


class Peer:
    """Answers from a list; an exception is raised."""

    name = "user_model"

    def __init__(self, *answers: Any):
        self.answers, self.bodies = list(answers), []

    async def post(self, path: str, body: Any, timeout_s: float) -> Any:
        assert path == "/v1/chat/completions" and timeout_s == 3.0
        self.bodies.append(body)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ask(peer: Peer, attempts: int = 2) -> dict[str, Any]:
    chat = ModelServerChat(peer, {"temperature": 0.0}, timeout_s=3.0, attempts=attempts)
    return asyncio.run(chat([{"role": "user", "content": "?"}], None))


def answer(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": None, **message}}]}


def test_token_ids_never_come_back():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra": 1}
    peer = Peer(
        answer(content="Hi", tool_calls=[call], prompt_token_ids=[1], generation_token_ids=[2])
    )
    assert ask(peer) == {
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    }
    assert peer.bodies == [{"temperature": 0.0, "messages": [{"role": "user", "content": "?"}]}]


def test_a_failed_call_is_repeated_then_typed():
    assert ask(Peer(CallFailed("down"), answer(content="Hi")))["content"] == "Hi"
    with pytest.raises(ChatFailed, match="down"):
        ask(Peer(CallFailed("down")), attempts=1)


@pytest.mark.parametrize(
    "body", [{}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": None}]}]
)
def test_an_answer_without_a_message(body):
    with pytest.raises(ChatFailed, match="user_model answered no chat message"):
        ask(Peer(body))
