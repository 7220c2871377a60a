"""Chat completions: slow endpoints, overflow, and what may be recorded."""

import asyncio

import pytest

from nemo_tau2.chat import ChatFailed, ContextOverflow, Endpoint, LiteLLMChat
from tests.rollouts.stub import chat_endpoint

HELLO = [{"role": "user", "content": "Hello"}]


def ask(behaviours, **options):
    with chat_endpoint(*behaviours) as (url, requests):
        chat = LiteLLMChat(Endpoint(url=url, model="m", **options))
        return asyncio.run(chat(HELLO, None)), requests


def test_a_slow_endpoint_is_given_up():
    with pytest.raises(ChatFailed, match="m at http"):
        ask(["slow"], timeout_s=0.2, attempts=2)


def test_an_overflow_is_told_apart_and_not_retried():
    error = {
        "error": {
            "message": "This model's maximum context length is 10 tokens.",
            "code": "context_length_exceeded",
        }
    }
    with chat_endpoint((400, error)) as (url, requests), pytest.raises(ContextOverflow):
        asyncio.run(LiteLLMChat(Endpoint(url=url, model="m"))(HELLO, None))
    assert len(requests) == 1


def test_sampling_parameters_are_sent_as_they_are():
    _, requests = ask([{"content": "Hi"}], sampling={"temperature": 0.7, "max_tokens": 5})
    assert (requests[0]["temperature"], requests[0]["max_tokens"]) == (0.7, 5)


def test_tool_calls_come_back_as_plain_dicts():
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer, _ = ask([{"content": None, "tool_calls": [call]}])
    assert answer["tool_calls"] == [call]


def test_the_key_is_never_described():
    endpoint = Endpoint(url="http://x/v1", model="m", api_key="secret")
    assert "secret" not in repr(endpoint) and "secret" not in str(endpoint.describe())
