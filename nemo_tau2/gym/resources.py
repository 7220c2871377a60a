"""Resources servers: an `Episode` carried over NeMo Gym's HTTP, seed_session -> step* -> verify.

`EpisodeServer` knows sessions and wire format and nothing of any environment; a subclass says how a
dataset row becomes an episode. State lives in the process, so `num_workers` is 1 (Gym issue 3039).
"""

import asyncio
import logging
from abc import abstractmethod
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, ClassVar, Literal

import aiohttp
import orjson
from fastapi import FastAPI, Request, Response
from nemo_gym.base_resources_server import BaseResourcesServerConfig, SimpleResourcesServer
from nemo_gym.global_config import get_first_server_config_dict
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import ConfigDict, PositiveFloat, PositiveInt, PrivateAttr

from nemo_tau2.episodes import Episode, Observation, Opening
from nemo_tau2.errors import UserError
from nemo_tau2.gym.cpu_profile import profile_into
from nemo_tau2.gym.http import Peer, new_session
from nemo_tau2.gym.sessions import SessionError, Sessions
from nemo_tau2.outcomes import InfrastructureFailure, StopReason

log = logging.getLogger(__name__)


class EpisodeServerConfig(BaseResourcesServerConfig):
    """What every environment of this package can be told."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    num_workers: Literal[1] | None = 1
    """Server processes. Episodes live in the process, so a second worker would not know them."""
    max_sessions: PositiveInt = 4096
    """Episodes open at once; a seed beyond that is answered 503."""
    session_idle_s: PositiveFloat = 7200.0
    """Seconds after which an episode without a call is forgotten; above the longest policy generation."""
    cpu_profile_path: str | None = None
    """Where to write a CPU profile of this server (JSON); None: no profile. For `bench gym`."""


class EpisodeServer(SimpleResourcesServer):
    """Carries episodes. Subclasses give `new_episode`."""

    config: EpisodeServerConfig
    ray_enabled: ClassVar[bool] = False
    _sessions: Sessions = PrivateAttr()
    _client: aiohttp.ClientSession | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self._sessions = Sessions(self.config.max_sessions, self.config.session_idle_s)

    @abstractmethod
    async def new_episode(self, row: dict[str, Any]) -> Episode:
        """The episode of one dataset row. Raises UserError where the row cannot be played."""

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/step")(self.step)
        app.exception_handler(SessionError)(_session_error)
        inner = app.router.lifespan_context

        @asynccontextmanager
        async def lifespan(app: FastAPI):
            with profile_into(self.config.cpu_profile_path):
                async with inner(app) as state:
                    yield state
            if self._client is not None:
                await self._client.close()

        app.router.lifespan_context = lifespan
        return app

    def peer(self, name: str) -> Peer:
        """Another server of this launch, as one episode sees it: with cookies of its own."""
        server = get_first_server_config_dict(self.server_client.global_config_dict, name)
        if self._client is None:
            self._client = new_session()
        return Peer(name, f"http://{server['host']}:{server['port']}", self._client, cookies={})

    async def seed_session(self, request: Request) -> Response:
        """Row -> {"items", "tools", "done", "stop_reason"}: what the policy sees first."""
        row = await _body(request)
        try:
            episode = await self.new_episode(row)
        except UserError as error:
            raise SessionError(422, str(error)) from None
        session_id = request.session[SESSION_ID_KEY]
        session = self._sessions.open(session_id, episode)
        async with self._guarded(session_id):
            opening = await episode.seed()
        session.done = opening.done
        return _seen(opening)

    async def step(self, request: Request) -> Response:
        """{"output": items of one policy generation} -> what they led to, in the shape of a seed."""
        output = (await _body(request)).get("output")
        if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
            raise SessionError(422, 'step takes {"output": [items of one policy generation]}')
        session_id = request.session[SESSION_ID_KEY]
        async with self._sessions.exclusive(session_id) as session:
            if session.done:
                raise SessionError(409, "this episode is over: only verify is left")
            session.step = asyncio.ensure_future(session.episode.step(output))
            async with self._guarded(session_id):
                observation = await session.step
            session.done = observation.done
        return _seen(observation)

    async def verify(self, request: Request) -> Response:
        """Run request, response and an imposed stop_reason or null -> the same with the verdict.

        The state is dropped afterwards. An imposed reason cuts short a step that is still running.
        """
        body = await _body(request)
        imposed = body.get("stop_reason")
        if imposed is not None and imposed not in list(StopReason):
            raise SessionError(
                422, f"unknown stop_reason {imposed!r}; one of {', '.join(StopReason)}"
            )
        session_id = request.session[SESSION_ID_KEY]
        running = self._sessions.get(session_id).step
        if imposed is not None and running is not None:
            running.cancel()
        async with self._sessions.exclusive(session_id) as session:
            async with self._guarded(session_id):
                verdict = await session.episode.verify(imposed)
            self._sessions.close(session_id)
        return Response(
            orjson.dumps(body | verdict, option=orjson.OPT_SERIALIZE_NUMPY),
            media_type="application/json",
        )

    @asynccontextmanager
    async def _guarded(self, session_id: str):
        """An episode that raises is broken: its session is closed and the caller told what broke."""
        try:
            yield
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():
                raise
            raise SessionError(409, "the step was cut short by verify") from None
        except InfrastructureFailure as failure:
            self._sessions.close(session_id)
            raise SessionError(502, f"{failure.reason}: {failure}") from failure
        except Exception as error:  # the boundary: the agent turns it into a masked row
            log.exception("episode failed")
            self._sessions.close(session_id)
            raise SessionError(
                500, f"the episode failed: {type(error).__name__}: {error}"
            ) from error


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise SessionError(422, f"the request body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise SessionError(422, "the request body is not a JSON object")
    return body


def _seen(seen: Opening | Observation) -> Response:
    return Response(orjson.dumps(asdict(seen)), media_type="application/json")


async def _session_error(_request: Request, error: SessionError) -> Response:
    return Response(
        orjson.dumps({"error": str(error)}), error.status, media_type="application/json"
    )
