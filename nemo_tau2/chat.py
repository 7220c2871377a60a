"""Chat completions from any OpenAI-compatible endpoint, for frozen helpers and the direct backend.

Not the training path: a trained policy is reached through NeMo Gym's model servers, which keep its token
ids. Here an answer is a plain message dict, retried on 429, 5xx, timeouts and dropped connections.
"""

import asyncio
import os
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)


class Complete(Protocol):
    """Answers a chat: messages and tools in OpenAI's chat format to {"content", "tool_calls"}."""

    async def __call__(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
    ) -> dict[str, Any]:
        """Raises ChatFailed when no answer can be had. The answer may have `usage`: its tokens."""


class ChatFailed(Exception):
    """No answer from an endpoint, after retries; the message says which and why."""


class ContextOverflow(ChatFailed):
    """The prompt is longer than the model takes. Not retried, and no infrastructure failure."""


class Endpoint(BaseModel):
    """A model behind an OpenAI-compatible endpoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str | None = None
    """Base URL ending in /v1; None for LiteLLM's own routing of hosted models."""
    model: str
    """Model name as the endpoint knows it."""
    api_key: SecretStr | None = None
    """Key; local servers take any."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """Sampling parameters sent as they are: temperature, top_p, max_tokens, reasoning_effort …"""
    timeout_s: float = 120.0
    """Seconds one request may take."""
    attempts: int = 4
    """Requests before giving up."""

    def describe(self) -> dict[str, Any]:
        """What results may record: everything but the key."""
        return self.model_dump(exclude={"api_key"})


class LiteLLMChat:
    """Chat completions through LiteLLM; imported on the first call, since that takes seconds."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint = endpoint

    async def __call__(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None
    ) -> dict[str, Any]:
        # litellm >= 1.110 downloads its price table at import unless told otherwise.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm
        import openai

        litellm.suppress_debug_info = True
        endpoint = self.endpoint
        passing = (
            litellm.RateLimitError,
            litellm.InternalServerError,
            litellm.ServiceUnavailableError,
            litellm.APIConnectionError,
            litellm.Timeout,
            TimeoutError,
        )
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(passing),
            stop=stop_after_attempt(endpoint.attempts),
            wait=wait_random_exponential(multiplier=0.5, max=20),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    async with asyncio.timeout(endpoint.timeout_s):
                        response = await litellm.acompletion(
                            model=f"openai/{endpoint.model}" if endpoint.url else endpoint.model,
                            api_base=endpoint.url,
                            api_key=endpoint.api_key.get_secret_value()
                            if endpoint.api_key
                            else "none",
                            messages=messages,
                            tools=tools or None,
                            timeout=endpoint.timeout_s,
                            max_retries=0,
                            **endpoint.sampling,
                        )
        except litellm.ContextWindowExceededError as error:
            raise ContextOverflow(f"{endpoint.model}: {_short(error)}") from None
        except (openai.OpenAIError, TimeoutError) as error:
            raise ChatFailed(f"{endpoint.model} at {endpoint.url}: {_short(error)}") from None
        if not response.choices:
            raise ChatFailed(f"{endpoint.model} at {endpoint.url}: an answer without a choice")
        message = response.choices[0].message
        calls = [
            {
                "id": c.id,
                "type": "function",
                "function": {"name": c.function.name, "arguments": c.function.arguments},
            }
            for c in message.tool_calls or []
        ]
        answer = {"role": "assistant", "content": message.content, "tool_calls": calls or None}
        return answer | _usage(response)


def _usage(response: Any) -> dict[str, dict[str, int]]:
    """{"usage": tokens as the Responses API names them}; nothing where the endpoint does not say."""
    said = getattr(response, "usage", None)
    if said is None or not said.total_tokens:
        return {}
    names = {"input_tokens": said.prompt_tokens, "output_tokens": said.completion_tokens}
    return {"usage": names | {"total_tokens": said.total_tokens}}


def _short(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300] if text else 'no message'}"
