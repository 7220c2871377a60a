"""The syntax tree as a `WorkflowGraph`.

Defaults and names follow the official compiler, so that the AgentJSON of the graph equals its
output (`agentjson`, `conformance`). What the tree lacks is left None rather than invented.
"""

from pathlib import Path
from typing import Any

from nemo_tau2.agentscript import collect, effects
from nemo_tau2.agentscript.diagnostics import AgentScriptError, Diagnostic, Span
from nemo_tau2.agentscript.edges import edges_of
from nemo_tau2.agentscript.expressions import NONE, Expr, reference
from nemo_tau2.agentscript.fields import (
    by_word,
    child,
    declared,
    description,
    flag,
    mapping,
    named,
    plain,
    string,
    template,
    type_ref,
    value_of,
)
from nemo_tau2.agentscript.graph import (
    END,
    HUMAN,
    Action,
    LoopConfig,
    Messages,
    Node,
    NodeKind,
    Parameter,
    TypeRef,
    Variable,
    WorkflowGraph,
)
from nemo_tau2.agentscript.parser import parse
from nemo_tau2.agentscript.source import Source, read
from nemo_tau2.agentscript.syntax import Element, Script, Statement, TemplateLine
from nemo_tau2.agentscript.templates import Template
from nemo_tau2.agentscript.tools import lower_tools

ROUTER_MODEL = "sfdc_ai__DefaultEinsteinHyperClassifier"
NODE_WORDS = ("start_agent", "topic", "subagent")
EXTERNAL_NODES = {
    "node://commerce/shopper_agent/v1": ("commerce_shopper_agent", "commerceshopperagent"),
    "node://tableau/analyze_data/v1": ("waii_analytics_agent", "waiianalyticsagent"),
}
ADDITIONAL = "additional_parameter__"


def compile_script(source: str | Path | Source | Script) -> WorkflowGraph:
    """Compiles a script.

    Args:
        source: a path, the text of a script, or what `parse` returned.

    Raises:
        AgentScriptError: the script breaks the grammar, or has no `start_agent`. Findings of the
            linter do not raise: they are `lint`'s.
        UserError: the file cannot be read.
    """
    if isinstance(source, str | Path):
        source = read(source)
    script = source if isinstance(source, Script) else parse(source)
    if not script.ok:
        raise AgentScriptError(script.source.path, script.diagnostics)
    if not named(script.items, "start_agent"):
        missing = Diagnostic("missing-required-field", "a script needs a `start_agent <name>:`")
        raise AgentScriptError(script.source.path, [missing])
    return lower(script)


def lower(script: Script) -> WorkflowGraph:
    """Lowers a script as far as it could be parsed. It must have a `start_agent`."""
    return _Lowering(script).graph()


class _Lowering:
    """One compilation: the script, and what its parts have in common."""

    def __init__(self, script: Script):
        self.script = script
        self.blocks = by_word(script.items)
        self.config = self.blocks.get("config")
        self.variables = self._variables()
        self.declarations = self._node_declarations()
        self.entry = next(iter(named(script.items, "start_agent")))
        self.descriptions = {
            name: text
            for name, (_, element) in self.declarations.items()
            if (text := description(child(element, "description")))
        }

    def graph(self) -> WorkflowGraph:
        """Builds the graph."""
        nodes = {name: self._node(name, *d) for name, d in self.declarations.items()}
        for name, element in named(self.script.items, "connected_subagent").items():
            nodes[name] = self._connected(name, element)
        source = self.script.source
        edges = tuple(edge for node in nodes.values() for edge in edges_of(node, source))
        for terminal, text in ((HUMAN, "A person takes over."), (END, "The session is over.")):
            nodes.setdefault(terminal, Node(terminal, NodeKind.TERMINAL, description=text))
        config = self._config()
        system = self.blocks.get("system")
        messages = child(system, "messages")
        name = config.get("developer_name") or config.get("agent_name") or ""
        return WorkflowGraph(
            name=name,
            entry=self.entry,
            nodes=nodes,
            edges=edges,
            variables=self.variables,
            label=config.get("agent_label"),
            description=config.get("agent_description") or config.get("description"),
            company=config.get("company"),
            role=config.get("role"),
            agent_type=config.get("agent_type"),
            identity=template(child(system, "instructions")),
            messages=Messages(
                template(child(messages, "welcome")), template(child(messages, "error"))
            ),
            loop=LoopConfig(reset_to_initial_node=self._resets()),
            knowledge=self._knowledge(),
            config=config,
            diagnostics=tuple(self.script.diagnostics),
        )

    # Parts ----------------------------------------------------------------------------------

    def _span(self, element: Element) -> Span:
        return self.script.source.span(*element.span)

    def _node_declarations(self) -> dict[str, tuple[str, Element]]:
        found: dict[str, tuple[str, Element]] = {}
        for word in NODE_WORDS:
            for name, element in named(self.script.items, word).items():
                found.setdefault(name, (word, element))
        return found

    def _config(self) -> dict[str, Any]:
        """The literal settings of `config`, with the account of `access` and the global model."""
        settings = mapping(self.config)
        access = mapping(self.blocks.get("access"))
        if access.get("default_agent_user"):
            settings["default_agent_user"] = access["default_agent_user"]
        if "model_config" in self.blocks:
            settings["model_config"] = mapping(self.blocks["model_config"])
        strips = flag(child(self.blocks.get("system"), "strip_salesforce_instructions"))
        if strips is not None:
            settings["strip_salesforce_instructions"] = strips
        return settings

    def _resets(self) -> bool:
        runtime = flag(child(self.config, "runtime", "reset_to_initial_node"))
        legacy = flag(child(self.config, f"{ADDITIONAL}reset_to_initial_node"))
        return next((value for value in (runtime, legacy) if value is not None), True)

    def _knowledge(self) -> dict[str, str | bool]:
        block = self.blocks.get("knowledge")
        items = by_word(block.body) if block else {}
        read = {word: plain(value_of(item)) for word, item in items.items()}
        return {word: value for word, value in read.items() if isinstance(value, str | bool)}

    def _variables(self) -> dict[str, Variable]:
        block = self.blocks.get("variables")
        result = {}
        for name, element in (by_word(block.body) if block else {}).items():
            kind, default, modifier = declared(element)
            properties = by_word(element.body)
            result[name] = Variable(
                name=name,
                type=type_ref(kind) or TypeRef("string"),
                linked=modifier == "linked",
                modifier=modifier,
                default=_default(default, type_ref(kind)),
                default_expression=default,
                label=string(properties.get("label")),
                description=description(properties.get("description")),
                source=_source_of(properties.get("source")),
                visibility=string(properties.get("visibility")),
                span=self._span(element),
            )
        return result

    def _node(self, name: str, word: str, element: Element) -> Node:
        fields = by_word(element.body)
        reasoning = fields.get("reasoning")
        instructions = child(reasoning, "instructions")
        statements = procedure(instructions)
        actions = self._actions(fields.get("actions"))
        model = mapping(fields.get("model_config"))
        routes_only = ROUTER_MODEL in str(model.get("model", ""))
        schema = string(fields.get("schema"))
        external = _external(schema)
        is_entry = word == "start_agent"
        steps = () if is_entry or routes_only or external else collect.steps_of(statements)
        tools = lower_tools(
            child(reasoning, "actions"), self.script.source, actions, self.variables,
            self.descriptions, routes_only=routes_only,
        )  # fmt: skip
        if steps:
            for tool in (
                collect.capture_tool(name, steps, self.variables),
                collect.cancel_tool(name, self.entry),
            ):
                tools.setdefault(tool.name, tool)
        kind = NodeKind.ROUTER if is_entry or routes_only else NodeKind.SUBAGENT
        return Node(
            name=name,
            kind=NodeKind.EXTERNAL if external else kind,
            is_entry=is_entry,
            keyword=word,
            label=string(fields.get("label")),
            description=description(fields.get("description")) or "",
            identity=template(child(element, "system", "instructions")),
            instructions=statements,
            has_instructions=instructions is not None,
            before=procedure(fields.get("before_reasoning")),
            after=procedure(fields.get("after_reasoning")),
            tools=tools,
            actions=actions,
            collect=steps,
            routes_only=routes_only,
            model=model or None,
            target=schema,
            settings=_settings(element, external),
            span=self._span(element),
        )

    def _connected(self, name: str, element: Element) -> Node:
        fields = by_word(element.body)
        settings = {
            "loading_text": string(fields.get("loading_text")),
            "delegate_escalation": flag(fields.get("delegate_escalation")),
        }
        return Node(
            name=name,
            kind=NodeKind.CONNECTED,
            keyword="connected_subagent",
            label=string(fields.get("label")),
            description=description(fields.get("description")) or "",
            after=procedure(fields.get("after_response")),
            target=string(fields.get("target")),
            inputs=self._parameters(fields.get("inputs"), is_output=False),
            settings={key: value for key, value in settings.items() if value is not None},
            span=self._span(element),
        )

    def _actions(self, block: Element | None) -> dict[str, Action]:
        return {
            name: self._action(name, element)
            for name, element in (by_word(block.body) if block else {}).items()
        }

    def _action(self, name: str, element: Element) -> Action:
        fields = by_word(element.body)
        target = string(fields.get("target"))
        confirms = flag(fields.get("require_user_confirmation")) or False
        return Action(
            name=name,
            inputs=self._parameters(fields.get("inputs"), is_output=False),
            outputs=self._parameters(fields.get("outputs"), is_output=True),
            target=target,
            label=string(fields.get("label")),
            description=description(fields.get("description")),
            source=string(fields.get("source")),
            requires_confirmation=confirms,
            shows_progress=flag(fields.get("include_in_progress_indicator")) or False,
            progress_message=string(fields.get("progress_indicator_message")),
            effect=effects.classify(name, target, confirms),
            span=self._span(element),
        )

    def _parameters(self, block: Element | None, is_output: bool) -> tuple[Parameter, ...]:
        found = []
        for name, element in (by_word(block.body) if block else {}).items():
            kind, default, _ = declared(element)
            found_type = type_ref(kind)
            link = reference(kind)
            bound = kind if link and link.namespace == "variables" else None
            if found_type is None and bound is None:
                continue
            found.append(self._parameter(name, element, found_type, default, bound, is_output))
        return tuple(found)

    def _parameter(
        self, name: str, element: Element, kind: TypeRef | None, default: Expr | None,
        bound: Expr | None, is_output: bool,
    ) -> Parameter:  # fmt: skip
        fields = by_word(element.body)
        planner = flag(fields.get("is_used_by_planner"))
        hidden = flag(fields.get("filter_from_agent")) is True or planner is False
        return Parameter(
            name=name,
            type=kind or TypeRef("string"),
            label=string(fields.get("label")),
            description=description(fields.get("description")),
            required=flag(fields.get("is_required")),
            default=default,
            constant=None if is_output else self._constant(default),
            bound=bound,
            visible=not (is_output and hidden),
            displayable=flag(fields.get("is_displayable")) or False,
            is_user_input=flag(fields.get("is_user_input")) or False,
            complex_type=string(fields.get("complex_data_type_name")),
            schema_uri=string(fields.get("schema")),
            span=self._span(element),
        )

    def _constant(self, default: Expr | None) -> str | bool | None:
        """A default that is fixed at compile time: a string, a boolean, or `@knowledge.x`."""
        found = reference(default)
        if found:
            return self._knowledge().get(found.name) if found.namespace == "knowledge" else None
        value = plain(default)
        return value if isinstance(value, str | bool) else None


def procedure(element: Element | None) -> tuple[Statement, ...]:
    """The statements of a procedure field; a lone template or string is one statement."""
    if element is None:
        return ()
    value = template(element) if not element.body else None
    if isinstance(value, Template):
        return (TemplateLine(value, span=value.span),)
    return tuple(item for item in element.body if not isinstance(item, Element))


def _default(expression: Expr | None, kind: TypeRef | None) -> Any:
    """The value a variable starts with; None when the script gives none, or `None`."""
    value = plain(expression)
    if kind and kind.is_list:
        return value if isinstance(value, list) else None
    if kind and kind.name == "object" and expression not in (None, NONE):
        return value if isinstance(value, dict) else {}
    return value


def _source_of(element: Element | None) -> str | None:
    """`@MessagingSession.Id` as `MessagingSession.Id`."""
    value = value_of(element)
    if value is None or isinstance(value, Template):
        return string(element)
    found = reference(value)
    return f"{found.namespace}.{found.name}" if found else string(element)


def _external(schema: str | None) -> dict[str, str] | None:
    """Type and namespace of the external client that a `node://` schema names."""
    if schema in EXTERNAL_NODES:
        kind, namespace = EXTERNAL_NODES[schema]
        return {"node_type_id": kind, "node_namespace": namespace}
    segments = (schema or "").removeprefix("node://byon/").split("/")
    if (schema or "").startswith("node://byon/") and len(segments) == 3 and all(segments):
        return {"node_type_id": segments[1], "node_namespace": segments[0]}
    return None


def _bound_parameters(block: Element | None) -> dict[str, Expr]:
    """`parameters.<group>.<name>: @variables.x`"""
    found = {}
    for group in (by_word(block.body) if block else {}).values():
        for name, element in by_word(group.body).items():
            link = reference(declared(element)[0])
            if link and link.namespace == "variables":
                found[name] = declared(element)[0]
    return found


def _settings(element: Element, external: dict[str, str] | None) -> dict[str, Any]:
    """What a node carries beyond the workflow; hooks and parameters only where it is external."""
    fields = by_word(element.body)
    found = {
        "source": string(fields.get("source")),
        "strip_salesforce_instructions": flag(
            child(element, "system", "strip_salesforce_instructions")
        ),
    }
    if external:
        found |= {
            "external": external,
            "parameters": _bound_parameters(fields.get("parameters")),
            "on_init": procedure(fields.get("on_init")),
            "on_exit": procedure(fields.get("on_exit")),
        }
    return {key: value for key, value in found.items() if value is not None}
