"""The nodes and tools of a graph in AgentJSON."""

from nemo_tau2.agentscript import collect
from nemo_tau2.agentscript.agentjson_procedures import (
    INSTRUCTIONS,
    NEXT,
    NOWHERE,
    STATE_UPDATE,
    STAYS,
    Json,
    ProcedureWriter,
    Slots,
    append_instructions,
    handoff,
    merge_appends,
    post_tool,
    state_update,
)
from nemo_tau2.agentscript.agentjson_text import Dialect, template_text, text_of
from nemo_tau2.agentscript.agentjson_types import action_definition, data_type_of
from nemo_tau2.agentscript.expressions import ListOf, bare
from nemo_tau2.agentscript.graph import (
    Node,
    NodeKind,
    Tool,
    ToolKind,
    WorkflowGraph,
)
from nemo_tau2.agentscript.names import title_case
from nemo_tau2.agentscript.printer import template_source
from nemo_tau2.agentscript.syntax import If, Run, Statement, TemplateLine
from nemo_tau2.agentscript.templates import dedent_text

TABLEAU = "node://tableau/analyze_data/v1"
HUMAN_TARGET = "__human__"
END_TARGET = "__end_session_action__"
HUMAN_VALUE = "'__human__'"
_RESET = state_update([{INSTRUCTIONS: "''"}], "True")


class NodeWriter:
    """Writes the nodes of a graph. What one node needs of earlier ones is kept: condition slots,
    and the table of transition tools, which the official compiler rebuilds for subagents only.
    """

    def __init__(self, graph: WorkflowGraph):
        self.graph = graph
        self.slots = Slots()
        linked = frozenset(v.name for v in graph.variables.values() if v.linked)
        self.dialect = Dialect(linked, graph.knowledge)

    def node(self, node: Node) -> Json:
        """One node."""
        if node.kind is NodeKind.CONNECTED:
            return self._connected(node)
        if node.kind is NodeKind.EXTERNAL:
            return self._external(node)
        if node.routes_only:
            return self._router(node)
        # The official compiler rebuilds this table for subagents only.
        keys = {t.target: t.key for t in node.tools.values() if t.kind is ToolKind.TRANSITION}
        self.dialect = Dialect(self.dialect.linked, self.dialect.knowledge, keys)
        return self._subagent(node)

    def _subagent(self, node: Node) -> Json:
        tools, leaving, post = self._tools(node)
        result = {
            "type": "subagent",
            "reasoning_type": "salesforce.default",
            "description": node.description,
            "tools": tools,
            "developer_name": node.name,
            "label": node.label if node.label is not None else title_case(node.name),
            "action_definitions": [action_definition(a) for a in node.actions.values()],
            "instructions": self._system(node),
        }
        focus, iteration = self._instructions(node)
        if focus:
            result["focus_prompt"] = f"{{{{state.{INSTRUCTIONS}}}}}"
        if iteration:
            result["before_reasoning_iteration"] = iteration
        if node.before:
            result["before_reasoning"] = self._hook(node, node.before)
        after = self._hook(node, node.after) if node.after else []
        if node.collect:
            after.append(self._resume(node))
        if after:
            result["after_reasoning"] = after
        if leaving:
            result["after_all_tool_calls"] = leaving
        if post:
            result["post_tool_call"] = post
        return result | self._model(node) | self._settings(node)

    def _settings(self, node: Node) -> Json:
        result = {"source": node.settings["source"]} if "source" in node.settings else {}
        strips = node.settings.get(
            "strip_salesforce_instructions",
            self.graph.config.get("strip_salesforce_instructions"),
        )
        if strips is not None and not node.routes_only:
            result["strip_salesforce_system_prompt"] = strips
        return result

    def _router(self, node: Node) -> Json:
        system = self._system(node, plain=True)
        text = self._template_only(node)
        if text is None and node.has_instructions:
            writer = self._writer(node, gated=False, in_instructions=True)
            iteration = [_RESET, *merge_appends(writer.write(node.instructions))]
        else:
            iteration = [_RESET, append_instructions(text)] if text else []
        tools = [
            {
                "name": t.label if t.label is not None else t.key,
                "target": t.target,
                "description": _or(t.explicit_description, self._description_of(t.target)),
                **({"enabled": text_of(t.guard, self.dialect)} if t.guard is not None else {}),
            }
            for t in node.tools.values()
        ]
        result = {
            "type": "router",
            "description": node.description,
            "instructions": f"{system}\n\n{{{{state.{INSTRUCTIONS}}}}}" if iteration else system,
            "tools": tools,
            "developer_name": node.name,
            "label": node.label if node.label is not None else title_case(node.name),
            "action_definitions": [action_definition(a) for a in node.actions.values()],
        }
        if iteration:
            result["before_reasoning_iteration"] = iteration
        return result | self._model(node) | self._settings(node)

    def _connected(self, node: Node) -> Json:
        scheme, name = _uri(node.target)
        result = {
            "type": "related_agent",
            "developer_name": node.name,
            "label": node.label if node.label is not None else title_case(node.name),
            "description": node.description,
            "invocation_target_type": scheme or "externalService",
            "invocation_target_name": name or node.name,
            **node.settings,
        }
        bound = {
            p.name: [text_of(i, self.dialect) for i in bare(p.default).items]
            if isinstance(bare(p.default), ListOf)
            else text_of(p.default, self.dialect)
            for p in node.inputs
            if p.default is not None
        }
        if bound:
            result["bound_inputs"] = bound
        if node.after:
            result["after_response"] = self._hook(node, node.after)
        return result

    def _external(self, node: Node) -> Json:
        tools, _, _ = self._tools(node)
        bindings = [
            {
                "type": "action",
                "target": action.name,
                "name": action.name,
                "bound_inputs": {
                    p.name: text_of(p.bound, self.dialect)
                    for p in action.inputs
                    if p.bound is not None
                },
            }
            for action in node.actions.values()
            if any(p.bound is not None for p in action.inputs)
        ]
        result = {
            "type": "byon",
            "developer_name": node.name,
            "description": node.description,
            "label": node.label if node.label is not None else title_case(node.name),
            "byo_client": {
                "client_ref": "icr-default",
                "configuration": node.settings["external"],
            },
        }
        parameters = node.settings.get("parameters")
        if parameters:
            result["input_parameters"] = {
                name: text_of(value, self.dialect) for name, value in parameters.items()
            }
        if node.actions:
            result["action_definitions"] = [action_definition(a) for a in node.actions.values()]
        if bindings or tools:
            result["tools"] = bindings + tools
        for hook in ("on_init", "on_exit"):
            statements = node.settings.get(hook)
            if statements:
                result[hook] = self._writer(node, gated=False).write(statements)
        return result

    def _description_of(self, name: str) -> str:
        node = self.graph.nodes.get(name)
        return node.description if node and node.kind is not NodeKind.CONNECTED else ""

    def _model(self, node: Node) -> Json:
        """The model of a node on top of the agent's; a global block without a model is ignored."""
        shared, own = self.graph.config.get("model_config") or {}, node.model or {}
        if not shared.get("model"):
            shared = {}
        if not (shared or own):
            return {}
        ref = own.get("model") or shared.get("model")
        result: Json = {"model_ref": ref.partition("://")[2] if ref else None}
        settings = {**(shared.get("params") or {}), **(own.get("params") or {})}
        if settings:
            result["configuration"] = settings
        return {"model_configuration": result}

    def _system(self, node: Node, plain: bool = False) -> str:
        """The system message; routing nodes keep its interpolations as written."""
        for template in (node.identity, self.graph.identity):
            if template is None:
                continue
            text = template_source(template) if plain else template_text(template, self.dialect)
            if text:
                return dedent_text(text)
        return ""

    # Procedures -----------------------------------------------------------------------------

    def _writer(self, node: Node, gated: bool, in_instructions: bool = False) -> ProcedureWriter:
        steps = collect.steps_of(node.instructions) if in_instructions else ()
        return ProcedureWriter(self.dialect, self.slots, gated, node.name, steps, in_instructions)

    def _hook(self, node: Node, statements: tuple[Statement, ...]) -> list[Json]:
        reset = state_update([{NEXT: NOWHERE}], "True")
        return [reset, *self._writer(node, gated=True).write(statements)]

    def _template_only(self, node: Node) -> str | None:
        """The instructions as one text; None when they hold any other statement."""
        if not all(isinstance(s, TemplateLine) for s in node.instructions):
            return None
        texts = (template_text(s.template, self.dialect) for s in node.instructions)
        return "\n".join(text for text in texts if text)

    def _instructions(self, node: Node) -> tuple[bool, list[Json]]:
        """Whether there is a focus message, and the actions that put it together."""
        if not node.has_instructions:
            return False, []
        text = self._template_only(node)
        if text is not None:
            return True, [_RESET, append_instructions(text)] if text else [_RESET]
        writer = self._writer(node, gated=False, in_instructions=True)
        actions = [_RESET, *merge_appends(writer.write(node.instructions))]
        steps = writer.steps
        if steps:
            if not collect.has_closing_words(node.instructions):
                complete = text_of(collect.is_complete(steps), self.dialect)
                actions.append(append_instructions(collect.DONE, complete))
            incomplete = text_of(collect.is_incomplete(steps), self.dialect)
            actions.append(append_instructions(collect.cancel_prompt(node.name), incomplete))
        return bool(steps) or _has_text(list(node.instructions)), actions

    def _resume(self, node: Node) -> Json:
        incomplete = text_of(collect.is_incomplete(node.collect), self.dialect)
        return handoff(node.name, f"({incomplete}) and {STAYS}") | {"end_turn_first": True}

    # Tools ----------------------------------------------------------------------------------

    def _tools(self, node: Node) -> tuple[list[Json], list[Json], list[Json]]:
        """The tools, the hand-offs after all tool calls, and the calls after single tools."""
        tools, leaving, post = [], [], []
        for tool in node.tools.values():
            tools.append(self._tool(tool))
            if tool.kind is ToolKind.TRANSITION:
                leaving.append(handoff(tool.target))
            elif tool.kind is ToolKind.ESCALATE:
                leaving.append(handoff(HUMAN_TARGET, f"state.{NEXT} == {HUMAN_VALUE}"))
            elif tool.kind is ToolKind.ACTION or tool.connected:
                actions, handoffs = post_tool(
                    tool.callbacks, self.dialect, self.slots, node.actions
                )
                leaving += handoffs
                if actions:
                    post.append({"target": tool.target, "actions": actions})
        return tools, leaving, post

    def _tool(self, tool: Tool) -> Json:
        result: Json = {"type": "action", "target": STATE_UPDATE}
        updates = [{u.variable: text_of(u.value, self.dialect)} for u in tool.updates]
        match tool.kind:
            case ToolKind.TRANSITION:
                result["state_updates"] = [{NEXT: f'"{tool.target}"'}]
            case ToolKind.CANCEL:
                result["state_updates"] = [{NEXT: f'"{tool.target}"'}]
                result |= {"bound_inputs": {}, "llm_inputs": [], "input_parameters": []}
            case ToolKind.ESCALATE:
                result["state_updates"] = [{NEXT: HUMAN_VALUE}]
            case ToolKind.END_SESSION:
                result["target"] = END_TARGET
            case ToolKind.SET_VARIABLES:
                result["state_updates"] = updates
                if tool.has_arguments:
                    result |= self._set_inputs(tool)
            case ToolKind.DELEGATE:
                result = {"type": "supervision", "target": tool.target}
                if tool.connected:
                    result["state_updates"] = updates
            case ToolKind.ACTION:
                result = {
                    "type": "action",
                    "target": tool.target,
                    "bound_inputs": {n: text_of(e, self.dialect) for n, e in tool.bound.items()},
                    "llm_inputs": [p.name for p in tool.inputs],
                    "state_updates": updates,
                }
        result["name"] = tool.label if tool.label is not None else tool.key
        text = self._tool_description(tool)
        if text is not None:
            result["description"] = text
        if tool.guard is not None:
            result["enabled"] = text_of(tool.guard, self.dialect)
        return result

    def _set_inputs(self, tool: Tool) -> Json:
        return {
            "bound_inputs": {},
            "llm_inputs": [p.name for p in tool.inputs],
            "input_parameters": [
                {
                    "developer_name": p.name,
                    "label": p.name,
                    "data_type": data_type_of(self.graph.variables.get(p.name)),
                }
                for p in tool.inputs
            ],
        }

    def _tool_description(self, tool: Tool) -> str | None:
        """Actions and connected agents describe themselves; the others always have a text."""
        own_only = tool.kind in (ToolKind.ACTION, ToolKind.SET_VARIABLES)
        if own_only or tool.connected:
            if tool.kind is ToolKind.SET_VARIABLES:
                return tool.description
            return tool.explicit_description
        return tool.description


def _has_text(statements: list[Statement]) -> bool:
    """True if a template with any content stands in the statements or below."""
    for statement in statements:
        match statement:
            case TemplateLine(template):
                if not template.is_blank:
                    return True
            case If(branches):
                if any(_has_text(branch.body) for branch in branches):
                    return True
            case Run(_, body):
                if _has_text(body):
                    return True
    return False


def _or(value: str | None, default: str) -> str:
    return value if value is not None else default


def _uri(target: str | None) -> tuple[str, str]:
    scheme, separator, path = (target or "").partition("://")
    return (scheme, path) if separator else ("", target or "")
