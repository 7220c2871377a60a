"""A dialogue agent between a scripted endpoint and a toy environment, without NeMo Gym's launcher.

Model and resources servers run as real HTTP servers on loopback inside the test's event loop; the
agent is called in process (`play`). What NeMo Gym adds around it is tested in test_end_to_end.py.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import MagicMock

import orjson
import pytest
import uvicorn
from aiohttp import web
from nemo_gym.server_utils import ServerClient
from omegaconf import OmegaConf

from nemo_tau2.gym.agent import DialogueAgent, DialogueAgentConfig
from nemo_tau2.gym.resources import EpisodeServer, EpisodeServerConfig
from tests.gym.toy import ToyServer

Answer = Callable[[dict[str, Any]], Awaitable[web.Response]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def gym_server(
    cls: type, config_cls: type, name: str, port: int, ports: dict[str, int], **settings: Any
) -> Any:
    """A NeMo Gym server object whose peers listen at `ports` ({instance: port})."""
    kinds = {
        "policy_model": "responses_api_models",
        "toy": "resources_servers",
        "toy_agent": "responses_api_agents",
    }
    instances = {
        peer: {kinds.get(peer, "responses_api_models"): {"x": {"host": "127.0.0.1", "port": port}}}
        for peer, port in ports.items()
    }
    client = MagicMock(spec=ServerClient)
    client.global_config_dict = OmegaConf.create(instances)
    config = config_cls(host="127.0.0.1", port=port, entrypoint="app.py", name=name, **settings)
    return cls(config=config, server_client=client)


@asynccontextmanager
async def uvicorn_server(app: Any, port: int):
    server = uvicorn.Server(
        uvicorn.Config(
            app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=0.1
        )
    )
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def aiohttp_server(app: web.Application, port: int):
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()


class Stage:
    """One agent, its environment, and whatever plays the model server; records every request to it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.cookies: list[dict[str, str]] = []
        self.world: EpisodeServer | None = None

    @asynccontextmanager
    async def open(self, answer: Answer | None, world: type = ToyServer, **settings: Any):
        """Yields an agent; `answer` None means that nothing listens where the model server should."""
        ports = {"toy": free_port(), "policy_model": free_port()}
        config = settings.pop("world_settings", {})
        self.world = gym_server(
            world, EpisodeServerConfig, "toy", ports["toy"], ports, domain="agent", **config
        )
        agent = gym_server(
            DialogueAgent,
            DialogueAgentConfig,
            "toy_agent",
            free_port(),
            ports,
            resources_server={"type": "resources_servers", "name": "toy"},
            model_server={"type": "responses_api_models", "name": "policy_model"},
            **settings,
        )

        async def respond(request: web.Request) -> web.Response:
            self.requests.append(orjson.loads(await request.read()))
            self.cookies.append(dict(request.cookies))
            response = await answer(self.requests[-1])
            response.set_cookie("replica", "7")
            return response

        model = web.Application(client_max_size=1 << 28)
        model.router.add_post("/v1/responses", respond)
        async with uvicorn_server(self.world.setup_webserver(), ports["toy"]):
            if answer is None:
                yield agent
            else:
                async with aiohttp_server(model, ports["policy_model"]):
                    yield agent
        if agent._session is not None:
            await agent._session.close()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def response(*output: dict[str, Any], **more: Any) -> web.Response:
    body = {
        "id": "resp_1",
        "created_at": 1,
        "model": "m",
        "object": "response",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        **more,
    }
    return web.json_response(body)


def says(text: str, **ids: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "role": "assistant",
        "id": "msg",
        "status": "completed",
        "content": [part],
        **ids,
    }


def calls(call_id: str, arguments: str = "{}", **ids: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "name": "add",
        "call_id": call_id,
        "id": call_id,
        "arguments": arguments,
        **ids,
    }
