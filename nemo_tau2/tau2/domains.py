"""What every episode of a domain shares: databases, policy, tool schemas. Loaded once per process.

A `Domain` is read-only after loading; episodes get worlds from it.
"""

import inspect
import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from nemo_tau2.errors import UserError
from nemo_tau2.tau2.engine import DATA_DIR, DB, Environment, ToolKitBase, ToolType
from nemo_tau2.tau2.fixes import Fixes, repaired
from nemo_tau2.tau2.worlds import World, cow_database

DOMAINS = ("airline", "retail", "telecom")

AGENT_INSTRUCTION = """
You are a customer service agent that helps the user according to the <policy> provided below.
In each turn you can either:
- Send a message to the user.
- Make a tool call.
You cannot do both at the same time.

Try to be helpful and always follow the policy. Always make sure you generate valid JSON only.
""".strip()
"""τ²'s own agent instruction (`tau2/agent/llm_agent.py`, not imported because it pulls in litellm)."""

GREETING = "Hi! How can I help you today?"
"""The agent's first message, sent by τ²'s orchestrator before the policy speaks."""


@dataclass(frozen=True)
class Side:
    """One actor's toolkit: schemas as the model sees them, which tools write, argument defaults."""

    schemas: tuple[dict[str, Any], ...]
    writes: frozenset[str]
    defaults: dict[str, dict[str, Any]]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.defaults)


@dataclass(frozen=True)
class Domain:
    """A τ² domain, ready to make worlds.

    `sides` maps "assistant" (and "user" where the user has tools) to its toolkit.
    """

    name: str
    policy: str
    fixes: Fixes
    sides: dict[str, Side]
    bases: dict[str, DB]
    toolkits: dict[str, type[ToolKitBase]]
    environment: type[Environment]

    @property
    def system_prompt(self) -> str:
        """The policy's system prompt, as τ²'s own LLM agent has it."""
        return (
            f"<instructions>\n{AGENT_INSTRUCTION}\n</instructions>\n"
            f"<policy>\n{self.policy}\n</policy>"
        )

    def writes(self, actor: str, name: str) -> bool:
        """Whether this tool of this actor is declared to write; False for a tool it does not have."""
        return actor in self.sides and name in self.sides[actor].writes

    def new_world(self) -> World:
        """A fresh world; costs kilobytes, shares its rows with every other until they are touched."""
        toolkits = {
            side: self.toolkits[side](cow_database(base)) for side, base in self.bases.items()
        }
        arguments = {"tools": toolkits["agent"]}
        if "user" in toolkits:
            arguments["user_tools"] = toolkits["user"]
        environment = self.environment(domain_name=self.name, policy=self.policy, **arguments)
        return World(environment, self.bases)


@lru_cache(maxsize=8)
def load_domain(name: str, fixes: Fixes | None = None) -> Domain:
    """Loads a domain once per process.

    Raises UserError for an unknown domain.
    """
    if name not in DOMAINS:
        raise UserError(f"unknown domain {name!r}; use one of {', '.join(DOMAINS)}")
    fixes = fixes or Fixes()
    stock = import_module(f"tau2.domains.{name}.environment").get_environment()
    kits = {"agent": stock.tools} | ({"user": stock.user_tools} if stock.user_tools else {})
    actors = {"agent": "assistant", "user": "user"}
    return Domain(
        name=name,
        policy=stock.policy,
        fixes=fixes,
        sides={actors[side]: _side(kit) for side, kit in kits.items()},
        bases={side: kit.db for side, kit in kits.items()},
        toolkits={side: repaired(type(kit), fixes) for side, kit in kits.items()},
        environment=type(stock),
    )


@lru_cache(maxsize=2)
def user_guidelines(with_tools: bool) -> str:
    """τ²'s guidelines for LLM user simulators (`data/tau2/user_simulator`)."""
    name = "simulation_guidelines_tools.md" if with_tools else "simulation_guidelines.md"
    return (DATA_DIR / "tau2" / "user_simulator" / name).read_text(encoding="utf-8")


def _side(kit: ToolKitBase) -> Side:
    tools = kit.get_tools()
    schemas = [json.loads(json.dumps(tool.openai_schema)) for tool in tools.values()]
    defaults = {
        name: {
            parameter.name: parameter.default
            for parameter in inspect.signature(kit.tools[name]).parameters.values()
            if parameter.default is not parameter.empty
        }
        for name in tools
    }
    writes = frozenset(name for name in tools if kit.tool_type(name) == ToolType.WRITE)
    return Side(tuple(schemas), writes, defaults)
