"""The embedded endpoint and the token chain it promises."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.gym.byte_tokens import END, ByteTokens, MessageTokens
from nemo_tau2.gym.scripted_endpoint import Endpoint, load_script
from tests.gym import toy

TOKENS = [ByteTokens(), MessageTokens()]
SYSTEM = {"role": "system", "content": "Be brief."}


def ask(path: str, body: Any, tokens: Any = TOKENS[0]) -> tuple[int, dict[str, Any]]:
    async def run():
        app: web.Application = Endpoint(toy.script, tokens).app()
        async with TestClient(TestServer(app)) as http:
            answer = await (http.get(path) if body is None else http.post(path, data=body))
            return answer.status, await answer.json()

    return asyncio.run(run())


def chat(messages: list[dict[str, Any]], **more: Any) -> bytes:
    return json.dumps(
        {"model": "m", "messages": messages, "nemo_tau2": {"task_id": "1"}, **more}
    ).encode()


text = st.text(max_size=30)
call = st.builds(
    lambda i, name, arguments: {
        "id": i,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    },
    text,
    text,
    text,
)
assistant = st.builds(
    lambda content, tool_calls: {"role": "assistant", "content": content, "tool_calls": tool_calls},
    st.none() | text,
    st.lists(call, max_size=2),
)
other = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "tool"]),
    text,
)


@pytest.mark.parametrize("tokens", TOKENS)
@given(turns=st.lists(st.tuples(assistant, st.lists(other, max_size=2)), max_size=4))
def test_each_prompt_begins_with_all_that_was_seen(tokens, turns):
    """The assertion of NeMo RL (nemo_rl/environments/nemo_gym.py): seen == prompt_token_ids[:len(seen)]."""
    messages, seen = [SYSTEM, {"role": "user", "content": "Hi"}], []
    for message, heard in turns:
        prompt = tokens.prompt(messages, [{"type": "function"}])
        assert seen == prompt[: len(seen)]
        seen = prompt + tokens.generation(message)
        messages += [message, *heard]


class TestCompletion:
    def test_ids_are_given_as_vllm_gives_them(self):
        status, body = ask(
            "/v1/chat/completions", chat([SYSTEM, {"role": "user", "content": "?"}], logprobs=True)
        )
        choice = body["choices"][0]
        assert status == 200 and choice["finish_reason"] == "tool_calls"
        ids = [
            int(entry["token"].removeprefix("token_id:")) for entry in choice["logprobs"]["content"]
        ]
        assert ids == ByteTokens().generation(choice["message"]) and ids[-1] == END
        assert bytes(ids[:-1]).decode() == '["call_2", "add", "{\\"n\\": 1"]'
        assert body["usage"]["completion_tokens"] == len(ids)

    def test_no_logprobs_unless_asked(self):
        _, body = ask("/v1/chat/completions", chat([{"role": "user", "content": "?"}]))
        assert body["choices"][0]["logprobs"] is None

    def test_tokenize_is_the_prompt(self):
        messages = [SYSTEM, {"role": "user", "content": "é"}]
        _, body = ask("/tokenize", chat(messages))
        assert body["tokens"] == ByteTokens().prompt(messages, None) and body["count"] == len(
            body["tokens"]
        )

    def test_message_tokens_are_few(self):
        _, body = ask(
            "/tokenize", chat([SYSTEM, {"role": "user", "content": "x" * 100_000}]), MessageTokens()
        )
        assert body["count"] == 7

    def test_models(self):
        status, body = ask("/v1/models", None)
        assert status == 200 and body["data"][0]["id"] == "scripted"

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b"{", "unexpected"),
            (b"[]", "not a JSON object"),
            (b'{"messages": 1}', "list of chat messages"),
            (b'{"messages": [{"role": "user", "content": "?"}]}', "--policy scripted"),
        ],
    )
    def test_a_bad_request_says_why(self, body, words):
        status, answer = ask("/v1/chat/completions", body)
        assert status == 400 and words in answer["message"]


def test_a_script_is_loaded_by_reference():
    assert load_script("tests.gym.toy:script") is toy.script
