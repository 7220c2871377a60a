"""An OpenAI-compatible chat endpoint on loopback that plays a script instead of sampling a model.

It exists to exercise the real path: NeMo Gym's own `vllm_model` server talks to it exactly as to a
vLLM server (chat completions with logprobs as token ids, /tokenize, /models). What is said comes
from a `Script`; log-probabilities are a fixed number and mean nothing.
"""

import argparse
import asyncio
import importlib
import os
import socket
import time
import uuid
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from nemo_tau2.errors import UserError
from nemo_tau2.gym.byte_tokens import ByteTokens, ChatTokens, Message, MessageTokens

Script = Callable[[dict[str, Any], list[Message]], Message]
"""(the request's `nemo_tau2` field, chat messages) -> assistant message {"content", "tool_calls"}."""

LOGPROB = -0.1
BODY_LIMIT = 1 << 30
SPEC = "nemo_tau2"
"""The extra field of a request body that says which task the script plays."""


class BadRequest(Exception):
    """A request the endpoint cannot answer; becomes HTTP 400 in the shape vLLM uses."""


class Endpoint:
    """The handlers; `script` says what the policy answers, `tokens` how a chat is tokenised."""

    def __init__(self, script: Script, tokens: ChatTokens, model: str = "scripted"):
        self._script = script
        self._tokens = tokens
        self._model = model

    def app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_post("/v1/chat/completions", self._answer(self.complete))
        app.router.add_post("/tokenize", self._answer(self.tokenize))
        app.router.add_get("/v1/models", self.models)
        return app

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """A chat completion; `logprobs` gives the generated ids as vLLM's `token_id:N`."""
        messages = _messages(body)
        message = self._message(body, messages)
        ids = self._tokens.generation(message)
        prompt_tokens = len(self._tokens.prompt(messages, body.get("tools")))
        logprobs = None
        if body.get("logprobs"):
            entry = {"logprob": LOGPROB, "bytes": None, "top_logprobs": []}
            logprobs = {"content": [{"token": f"token_id:{token}", **entry} for token in ids]}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
        }
        return {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self._model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": len(ids),
                "total_tokens": prompt_tokens + len(ids),
            },
        }

    def tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        ids = self._tokens.prompt(_messages(body), body.get("tools"))
        return {"count": len(ids), "max_model_len": 1 << 30, "tokens": ids}

    async def models(self, _request: web.Request) -> web.Response:
        return _json(
            {"object": "list", "data": [{"id": self._model, "object": "model", "created": 0}]}
        )

    def _message(self, body: dict[str, Any], messages: list[Message]) -> Message:
        spec = body.get(SPEC)
        if not isinstance(spec, dict):
            raise BadRequest(
                f"the scripted policy needs the field {SPEC!r}: rows made for --policy scripted have it"
            )
        said = self._script(spec, messages)
        calls = [
            {"id": call["id"], "type": "function", "function": dict(call["function"])}
            for call in said.get("tool_calls") or []
        ]
        return {"role": "assistant", "content": said.get("content"), "tool_calls": calls}

    def _answer(self, handler: Callable[[dict[str, Any]], dict[str, Any]]):
        async def handle(request: web.Request) -> web.Response:
            try:
                body = orjson.loads(await request.read())
                if not isinstance(body, dict):
                    raise BadRequest("the request body is not a JSON object")
                return _json(handler(body))
            except (BadRequest, UserError, orjson.JSONDecodeError) as error:
                problem = {
                    "object": "error",
                    "message": str(error),
                    "type": "BadRequestError",
                    "code": 400,
                }
                return _json(problem, status=400)

        return handle


def _messages(body: dict[str, Any]) -> list[Message]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(
        isinstance(m, dict) and "role" in m for m in messages
    ):
        raise BadRequest("messages must be a list of chat messages")
    return messages


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


async def serve(app: web.Application, listener: socket.socket) -> None:
    """Serves until cancelled, on a socket that is bound already."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def load_script(reference: str) -> Script:
    """`module:attribute` -> the script."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


def main() -> None:
    """Serves one script on an inherited, already bound socket. Started by `nemo_tau2.gym.launch`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--socket-fd", type=int, required=True, help="descriptor of a bound listening socket"
    )
    parser.add_argument("--script", required=True, help="module:attribute of the script")
    parser.add_argument("--tokens", choices=["bytes", "messages"], default="bytes")
    args = parser.parse_args()
    tokens = ByteTokens() if args.tokens == "bytes" else MessageTokens()
    endpoint = Endpoint(load_script(args.script), tokens)
    listener = socket.socket(fileno=args.socket_fd)
    os.set_inheritable(args.socket_fd, False)
    asyncio.run(serve(endpoint.app(), listener))


if __name__ == "__main__":
    main()
