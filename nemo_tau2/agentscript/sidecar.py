"""`X.tau2.yaml`: what a script lacks to become an environment, validated against the script.

The model of the file is here; reading YAML is the caller's (`cli.spec`), so that importing
`nemo_tau2.agentscript` needs nothing but the standard library and pydantic.
"""

from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nemo_tau2.agentscript.graph import (
    Effect,
    EffectEvidence,
    LoopConfig,
    Node,
    Tool,
    WorkflowGraph,
)
from nemo_tau2.errors import UserError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Loop(_Strict):
    """How long turns and sessions may last."""

    max_turns: int | None = Field(None, ge=1)
    """Policy turns per session."""
    max_steps_per_turn: int | None = Field(None, ge=1)
    """Model calls per turn."""
    max_errors: int | None = Field(None, ge=0)
    """Failed or refused tool calls per session."""
    reset_to_initial_node: bool | None = None
    """Overrides the script: whether each customer message starts at the entry node."""


class Sidecar(_Strict):
    """Annotations for one script. Unknown keys and names the script lacks are errors."""

    effects: dict[str, Literal["read", "write"]] = Field(default_factory=dict)
    """Whether an action reads or writes, by `Action` or `node.Action`."""
    tool_names: dict[str, str] = Field(default_factory=dict)
    """Names the model sees, by `node.tool` (the name in the script)."""
    delegates_return: bool | None = None
    """Whether control comes back after a `@subagent.X` tool; default true."""
    loop: Loop = Loop()
    """Budgets."""


def apply_sidecar(graph: WorkflowGraph, data: Any, path: str = "sidecar") -> WorkflowGraph:
    """Returns the graph with the annotations of a parsed YAML file.

    Raises:
        UserError: an unknown key, a wrong value, or a name the script does not have.
    """
    try:
        sidecar = Sidecar.model_validate(data if data is not None else {})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        allowed = ", ".join(Sidecar.model_fields)
        raise UserError(f"{path}: {where}: {first['msg']} (keys: {allowed})") from None
    nodes = _with_effects(graph.nodes, sidecar.effects, path)
    nodes, renamed = _with_names(nodes, sidecar.tool_names, path)
    edges = tuple(
        replace(e, tool=renamed.get((e.source, e.tool), e.tool)) if e.tool else e
        for e in graph.edges
    )
    return replace(graph, nodes=nodes, edges=edges, loop=_loop(graph.loop, sidecar))


def _loop(loop: LoopConfig, sidecar: Sidecar) -> LoopConfig:
    changes = sidecar.loop.model_dump(exclude_none=True)
    if sidecar.delegates_return is not None:
        changes["delegates_return"] = sidecar.delegates_return
    return replace(loop, **changes)


def _with_effects(nodes: dict[str, Node], effects: dict[str, str], path: str) -> dict[str, Node]:
    result = dict(nodes)
    for key, effect in effects.items():
        place, _, name = key.rpartition(".")
        holders = [n for n in result.values() if name in n.actions and place in ("", n.name)]
        if not holders:
            known = sorted({a for n in nodes.values() for a in n.actions})
            raise UserError(f"{path}: effects: no action `{key}`; known: {', '.join(known)}")
        for node in holders:
            evidence = EffectEvidence(Effect(effect), f"{path} says so")
            action = replace(node.actions[name], effect=evidence)
            result[node.name] = replace(node, actions={**node.actions, name: action})
    return result


def _with_names(
    nodes: dict[str, Node], names: dict[str, str], path: str
) -> tuple[dict[str, Node], dict[tuple[str, str], str]]:
    result = dict(nodes)
    renamed: dict[tuple[str, str], str] = {}
    for key, new in names.items():
        place, _, old = key.rpartition(".")
        node = result.get(place)
        tool = node.tool(old) if node else None
        if node is None or tool is None:
            raise UserError(f"{path}: tool_names: no tool `{key}`; write `node.tool`")
        other = node.tool(new)
        if other is not None and other is not tool:
            raise UserError(f"{path}: tool_names: `{new}` is already a tool of {place}")
        result[place] = replace(node, tools=_renamed(node, tool, new))
        renamed[place, tool.name] = new
    return result, renamed


def _renamed(node: Node, tool: Tool, new: str) -> dict[str, Tool]:
    aliases = tuple(dict.fromkeys(a for a in (*tool.aliases, tool.name, tool.key) if a != new))
    changed = replace(tool, name=new, aliases=aliases)
    tools = (changed if t is tool else t for t in node.tools.values())
    return {t.name: t for t in tools}
