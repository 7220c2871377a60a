"""Declarations in AgentJSON: variables, action definitions, and the names of their types."""

from typing import Any

from nemo_tau2.agentscript.graph import Action, Parameter, Variable, WorkflowGraph
from nemo_tau2.agentscript.names import capitalised, title_case

Json = dict[str, Any]

STATE_TYPES = {
    "string": "string", "text": "string", "number": "number", "boolean": "boolean",
    "object": "object", "date": "date", "datetime": "timestamp", "timestamp": "timestamp",
    "currency": "currency", "id": "string",
}  # fmt: skip
CONTEXT_TYPES = {**{k: v for k, v in STATE_TYPES.items() if k != "object"}, "id": "id"}
PARAMETER_TYPES = {
    "string": "String", "text": "String", "number": "Double", "integer": "Integer",
    "long": "Long", "boolean": "Boolean", "object": "LightningTypes", "date": "Date",
    "datetime": "DateTime", "timestamp": "DateTime", "currency": "Double", "id": "ID",
}  # fmt: skip
SCHEME_ALIASES = {
    "prompt": "generatePromptResponse",
    "serviceCatalog": "createCatalogItemRequest",
    "integrationProcedureAction": "executeIntegrationProcedure",
    "expressionSet": "runExpressionSet",
}
_QUOTED_TYPES = ("string", "date", "timestamp", "id")
_APEX = "@apexClassType/"


def variables_json(graph: WorkflowGraph, linked: bool) -> list[Json]:
    """Linked variables as context variables, or the others as state variables.

    Types that AgentJSON does not know are left out, as the official compiler does.
    """
    if linked:
        return [
            _context_variable(v)
            for v in graph.variables.values()
            if v.linked and v.type.name.lower() in CONTEXT_TYPES
        ]
    return [
        _state_variable(v)
        for v in graph.variables.values()
        if not v.linked and v.type.name.lower() in STATE_TYPES and "__" not in v.name
    ]


def data_type_of(variable: Variable | None) -> str:
    """The parameter type for a variable that the model writes."""
    state_type = STATE_TYPES.get(variable.type.name.lower()) if variable else None
    if state_type is None or (variable and variable.linked):
        return "String"
    return PARAMETER_TYPES[state_type]


def _context_variable(variable: Variable) -> Json:
    name = variable.name
    result = {
        "developer_name": name,
        "label": _or(variable.label, title_case(name)),
        "description": _or(variable.description, capitalised(name)),
        "data_type": CONTEXT_TYPES[variable.type.name.lower()],
    }
    if variable.source:
        result["field_mapping"] = variable.source
    return result


def _state_variable(variable: Variable) -> Json:
    label = _or(variable.label, title_case(variable.name))
    kind = STATE_TYPES[variable.type.name.lower()]
    shown = (variable.visibility or "").strip().lower() in ("public", "external")
    result = {
        "developer_name": variable.name,
        "label": label,
        "description": _or(variable.description, label),
        "data_type": kind,
        "is_list": variable.type.is_list,
        "visibility": "External" if shown else "Internal",
    }
    default = variable.default
    if default is not None:
        quoted = isinstance(default, str) and kind in _QUOTED_TYPES and not variable.type.is_list
        result["default"] = f"'{default}'" if quoted else default
    return result


def action_definition(action: Action) -> Json:
    """An action definition of a node."""
    scheme, name = _invocation(action)
    result = {
        "developer_name": action.name,
        "label": _or(action.label, title_case(action.name)),
        "description": _or(action.description, title_case(action.name)),
        "require_user_confirmation": action.requires_confirmation,
        "include_in_progress_indicator": action.shows_progress,
        "invocation_target_type": scheme,
        "invocation_target_name": name,
        "input_type": [_input(p) for p in action.inputs if p.bound is None],
        "output_type": [_output(p) for p in action.outputs if p.bound is None],
    }
    if action.source is not None:
        result["source"] = action.source
    if action.progress_message is not None:
        result["progress_indicator_message"] = action.progress_message
    return result


def _invocation(action: Action) -> tuple[str, str]:
    if not action.target:
        return "externalService", action.name
    scheme, separator, path = action.target.partition("://")
    if not separator or not path or not scheme.isidentifier():
        return "externalService", action.target
    if scheme == "placeholder":
        return "stub", action.name
    return SCHEME_ALIASES.get(scheme, scheme), path


def _input(parameter: Parameter) -> Json:
    data_type, complex_type = _parameter_type(parameter)
    text = parameter.description
    result = {
        "developer_name": parameter.name,
        "label": _or(parameter.label, title_case(parameter.name)),
        "description": _or(text, _or(parameter.label, title_case(parameter.name))),
        "data_type": data_type,
        "is_list": parameter.type.is_list,
        "required": parameter.required or False,
        "is_user_input": parameter.is_user_input,
    }
    if complex_type is not None:
        result["complex_data_type_name"] = complex_type
    if parameter.constant is not None:
        result["constant_value"] = parameter.constant
    if parameter.schema_uri is not None:
        result["schema"] = parameter.schema_uri
    return result


def _output(parameter: Parameter) -> Json:
    data_type, complex_type = _parameter_type(parameter)
    result = {
        "developer_name": parameter.name,
        "label": _or(parameter.label, title_case(parameter.name)),
        "description": _or(parameter.description, title_case(parameter.name)),
        "data_type": data_type,
        "is_list": parameter.type.is_list,
        "is_used_by_planner": parameter.visible,
        "is_displayable": parameter.displayable,
    }
    if complex_type is not None:
        result["complex_data_type_name"] = complex_type
    return result


def _parameter_type(parameter: Parameter) -> tuple[str, str | None]:
    """Data type and complex type; an object without a name is a `lightning__objectType`."""
    base = PARAMETER_TYPES.get(parameter.type.name.lower())
    named = parameter.complex_type
    if base is None:
        return "String", named
    if base == "LightningTypes":
        if named and named.startswith(_APEX):
            return "ApexDefined", named.removeprefix(_APEX)
        return base, named or "lightning__objectType"
    return base, named


def _or(value: str | None, default: str) -> str:
    return value if value is not None else default
