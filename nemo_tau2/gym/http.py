"""Calls from one NeMo Gym server to another, with a deadline, a typed failure and raw JSON.

NeMo Gym's own client retries for ever inside (0.4.0 nemo_gym/server_utils.py, `request`) and its
models re-validate whole histories; an agent loop needs neither. This one posts bytes, retries only
what cannot have reached the server, and says what went wrong.
"""

import asyncio
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

import aiohttp
import orjson

CONNECT_TRIES = 5
"""Refused connections are retried this often: a restarting server is back within seconds."""
CONNECT_PAUSE_S = 0.3
MESSAGE_CHARS = 2000
"""Error bodies are cut here before they enter a row."""


class CallFailed(Exception):
    """A call that gave no usable answer. The message says which server, and what it did."""


@dataclass
class Peer:
    """One NeMo Gym server as seen by one rollout: its address and the cookies it has set.

    Cookies are per peer, so the session of a resources server and the replica pinned by a model
    server (vllm_model/app.py, `_resolve_client`) never mix.
    """

    name: str
    base_url: str
    session: aiohttp.ClientSession
    cookies: dict[str, str]

    async def post(self, path: str, body: Any, timeout_s: float) -> dict[str, Any]:
        """POSTs JSON and returns the JSON object of the answer.

        `body` may hold `orjson.Fragment`s. Raises `CallFailed` after `timeout_s` seconds, on a lost
        connection, on a status other than 2xx and on an answer that is not a JSON object.
        """
        data = orjson.dumps(body)
        try:
            async with asyncio.timeout(timeout_s):
                status, raw, cookies = await self._send(path, data)
        except TimeoutError:
            raise CallFailed(f"{self.name}{path} gave no answer within {timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise CallFailed(
                f"{self.name}{path} is unreachable: {type(error).__name__}: {error}"
            ) from None
        if not 200 <= status < 300:
            text = raw[:MESSAGE_CHARS].decode("utf-8", "replace")
            raise CallFailed(f"{self.name}{path} answered HTTP {status}: {text}")
        try:
            answer = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise CallFailed(
                f"{self.name}{path} answered something that is not JSON: {error}"
            ) from None
        if not isinstance(answer, dict):
            raise CallFailed(
                f"{self.name}{path} answered a JSON {type(answer).__name__}, not an object"
            )
        self.cookies.update({name: morsel.value for name, morsel in cookies.items()})
        return answer

    async def _send(self, path: str, data: bytes) -> tuple[int, bytes, SimpleCookie]:
        for tries_left in range(CONNECT_TRIES - 1, -1, -1):
            try:
                async with self.session.post(
                    self.base_url + path,
                    data=data,
                    headers={"Content-Type": "application/json"},
                    cookies=self.cookies,
                ) as response:
                    return response.status, await response.read(), response.cookies
            except aiohttp.ClientConnectorError:  # never reached the server, so safe to repeat
                if not tries_left:
                    raise
                await asyncio.sleep(CONNECT_PAUSE_S)
        raise AssertionError("unreachable")


def new_session() -> aiohttp.ClientSession:
    """A client without a cookie jar (peers keep their own) and without a limit on connections."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
