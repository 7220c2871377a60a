"""A `WorkflowGraph` as AgentJSON, the output format of the official compiler (schema 2.0).

Every field the graph holds is written as the official compiler writes it. Left out, because the
graph does not hold it: see `OMITTED`.
"""

import json
from typing import Any

from nemo_tau2.agentscript.agentjson_nodes import TABLEAU, NodeWriter
from nemo_tau2.agentscript.agentjson_procedures import (
    CONDITION,
    INSTRUCTIONS,
    NEXT,
    NOWHERE,
    Json,
)
from nemo_tau2.agentscript.agentjson_text import template_text
from nemo_tau2.agentscript.agentjson_types import variables_json
from nemo_tau2.agentscript.graph import (
    NodeKind,
    WorkflowGraph,
)
from nemo_tau2.agentscript.lowering import ADDITIONAL
from nemo_tau2.agentscript.names import title_case

OMITTED = (
    "agent_version.surfaces",
    "agent_version.modality_parameters",
    "agent_version.context",
    "agent_version.recommended_prompts",
    "global_configuration.security",
    "global_configuration.file_upload",
    "agent_version.nodes[].skills",
)
"""Fields of AgentJSON that the export leaves out: connections and their response formats, voice
and language, memory, suggested prompts, record access, uploads, skills. None of them decides what
a text conversation may do next."""


def to_agentjson(graph: WorkflowGraph) -> Json:
    """Returns the graph as AgentJSON, without the fields in `OMITTED`."""
    return _Writer(graph).document()


class _Writer:
    def __init__(self, graph: WorkflowGraph):
        self.graph = graph
        self.nodes = NodeWriter(graph)

    def document(self) -> Json:
        """The whole document."""
        return {
            "schema_version": "2.0",
            "global_configuration": self._configuration(),
            "agent_version": self._version(),
        }

    def _configuration(self) -> Json:
        config, name = self.graph.config, self.graph.name
        label = self.graph.label or title_case(name)
        kind = self.graph.agent_type or "EinsteinServiceAgent"
        result = {
            "developer_name": name,
            "label": label,
            "description": _first(config, "agent_description", "description", default=label),
            "enable_enhanced_event_logs": _as_flag(config.get("enable_enhanced_event_logs")),
            "agent_type": "EinsteinServiceAgent" if kind == "AgentforceServiceAgent" else kind,
            "context_variables": variables_json(self.graph, linked=True),
        }
        if config.get("default_agent_user"):
            result["default_agent_user"] = config["default_agent_user"]
        if "agent_template" in config:
            result["template_name"] = config["agent_template"]
        runtime = config.get("runtime")
        if isinstance(runtime, dict):
            result["runtime"] = {k: v for k, v in runtime.items() if isinstance(v, bool)}
        return result

    def _version(self) -> Json:
        messages = self._messages()
        nodes = [
            self.nodes.node(node)
            for node in self.graph.nodes.values()
            if node.kind is not NodeKind.TERMINAL
        ]
        version = {
            "planner_type": "Atlas__ConcurrentMultiAgentOrchestration",
            "system_messages": messages,
            "state_variables": [
                *_INTERNAL_VARIABLES,
                *variables_json(self.graph, linked=False),
                *(_slot(i) for i in range(1, self.nodes.slots.used + 1)),
            ],
            "initial_node": self.graph.entry,
            "nodes": nodes,
            "additional_parameters": self._parameters(messages),
        }
        if self.graph.company is not None or self.graph.role is not None:
            version |= {"company": self.graph.company, "role": self.graph.role}
        return version

    def _messages(self) -> list[Json]:
        found = (("Welcome", self.graph.messages.welcome), ("Error", self.graph.messages.error))
        return [
            {"message": template_text(text, self.nodes.dialect, True), "message_type": kind}
            for kind, text in found
            if text is not None
        ]

    def _parameters(self, messages: list[Json]) -> Json:
        config = self.graph.config
        result: Json = {"reset_to_initial_node": True}
        for name, value in config.items():
            if name.startswith(ADDITIONAL):
                result[name.removeprefix(ADDITIONAL)] = _number_or_flag(value)
        for name in ("debug", "max_tokens", "temperature"):
            if name in config:
                result[name] = config[name]
        if self.graph.knowledge.get("rag_feature_config_id"):
            result["rag_feature_config_id"] = self.graph.knowledge["rag_feature_config_id"]
        if messages:
            result["system_messages"] = _messages_text(messages)
        if any(n.target == TABLEAU for n in self.graph.nodes.values()):
            result["enable_propagate_internal_org_jwt_to_icr"] = True
        return result


def _messages_text(messages: list[Json]) -> str:
    parts = (
        f'{{"message": {json.dumps(m["message"], ensure_ascii=False)}, '
        f'"messageType": {json.dumps(m["message_type"])}}}'
        for m in messages
    )
    return f"[{', '.join(parts)}]"


def _number_or_flag(value: Any) -> Any:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value


def _as_flag(value: Any) -> bool:
    return _number_or_flag(value) is True


def _first(config: Json, *names: str, default: str) -> str:
    return next((config[name] for name in names if name in config), default)


def _slot(index: int) -> Json:
    text = f"else-if chain link {index}" if index > 1 else "if statements"
    return {
        "developer_name": f"{CONDITION}{index}",
        "label": f"Runtime Condition {index}",
        "description": f"Runtime condition evaluation for {text}",
        "data_type": "boolean",
        "is_list": False,
        "visibility": "Internal",
    }


_INTERNAL_VARIABLES = (
    {
        "developer_name": NEXT,
        "label": "Next Topic",
        "description": "The next topic to be visited",
        "data_type": "string",
        "is_list": False,
        "default": NOWHERE,
        "visibility": "Internal",
    },
    {
        "developer_name": INSTRUCTIONS,
        "label": "Agent Instructions",
        "description": "The agent instructions",
        "data_type": "string",
        "is_list": False,
        "default": "''",
        "visibility": "Internal",
    },
)
