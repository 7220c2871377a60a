"""What the official linter checks about blocks and fields: names, types, settings."""

import re

from nemo_tau2.agentscript.expressions import (
    ListOf,
    Literal,
    bare,
    reference,
    to_source,
)
from nemo_tau2.agentscript.fields import by_word, child, declared, flag, string, value_of
from nemo_tau2.agentscript.lint_context import LintContext, hint
from nemo_tau2.agentscript.lint_declarations import check_declaration
from nemo_tau2.agentscript.lowering import NODE_WORDS
from nemo_tau2.agentscript.names import words
from nemo_tau2.agentscript.syntax import Element, Statement
from nemo_tau2.agentscript.templates import Template

_SYSTEM = words("instructions messages strip_salesforce_instructions recommended_prompts")
_PARAMETER = words(
    "label description is_required complex_data_type_name schema is_user_input filter_from_agent "
    "is_displayable is_used_by_planner developer_name"
)
_NODE = words(
    "label description system actions reasoning schema before_reasoning after_reasoning "
    "model_config skills"
)
FIELDS: dict[str, frozenset[str]] = {
    "": words(
        "system config variables language connected_subagent start_agent subagent topic "
        "model_config knowledge connection modality access context"
    ),
    "config": words(
        "description developer_name agent_label agent_description agent_type agent_id agent_name "
        "default_agent_user agent_version enable_enhanced_event_logs company role planner_type "
        "debug max_tokens temperature agent_template outbound_flow user_locale runtime "
        "file_upload"
    ),
    "system": _SYSTEM,
    "messages": words("welcome error"),
    "language": words("adaptive default_locale additional_locales all_additional_locales"),
    "knowledge": words("citations_url rag_feature_config_id citations_enabled"),
    "node": _NODE,
    "node system": words("instructions strip_salesforce_instructions"),
    "reasoning": words("instructions actions"),
    "action": words(
        "description label inputs outputs target source require_user_confirmation "
        "include_in_progress_indicator progress_indicator_message"
    ),
    "tool": words("description label"),
    "variable": words(
        "description label is_required source visibility is_displayable is_used_by_planner"
    ),
    "parameter": _PARAMETER,
    "connected_subagent": words(
        "target label description loading_text inputs after_response delegate_escalation"
    ),
}
SCHEMES = words(
    """api apex apexrest auraenabled cdpmlprediction createcatalogitemrequest decisiontableaction
    executeintegrationprocedure expressionset externalconnector externalservice flow
    generatepromptresponse integrationprocedureaction mcptool platformmcptool namedquery
    placeholder prompt quickaction retriever runexpressionset servicecatalog slack
    standardinvocableaction"""
)
_TEXTS = words(
    """description label developer_name agent_name agent_label agent_description agent_type target
    source progress_indicator_message complex_data_type_name loading_text company role model
    welcome error"""
)
_FLAGS = words(
    """is_required is_user_input is_displayable is_used_by_planner filter_from_agent
    require_user_confirmation include_in_progress_indicator enable_enhanced_event_logs debug
    adaptive all_additional_locales citations_enabled delegate_escalation
    strip_salesforce_instructions"""
)
_AGENT_NAME = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.\-_]*):(.*)")


def check_schema(context: LintContext) -> None:
    """Checks blocks and fields from the top of the script down."""
    items = context.script.items
    _fields(context, items, kind="", where="")
    for element in context.elements(items):
        word = element.key.word
        if word in NODE_WORDS:
            _node(context, element)
        elif word == "connected_subagent":
            _connected(context, element)
        elif word in FIELDS:
            _fields(context, element.body, word, word)
        if word in (*NODE_WORDS, "connected_subagent", "connection"):
            if element.key.name is None:
                context.warn("anonymous-named-block", f"`{word}` needs a name", element)
        elif element.key.name is not None and word in FIELDS[""]:
            context.error("unexpected-block-name", f"`{word}` takes no name", element)
        if word == "topic":
            context.warn("deprecated-field", "'topic' is deprecated: use subagent", element)
    _entry(context)
    messages = child(context.blocks.get("system"), "messages")
    if messages is not None:
        _fields(context, messages.body, "messages", "system messages")
        _required(context, messages, "error")
    for element in context.elements_of(context.blocks.get("variables")):
        _fields(context, element.body, "variable", f"variable {element.key}")


def _fields(context: LintContext, body: list[Statement], kind: str, where: str) -> None:
    """Unknown fields and repeated keys of one block."""
    allowed = FIELDS.get(kind)
    seen: set[str] = set()
    for element in context.elements(body):
        word, key = element.key.word, str(element.key)
        is_free = kind == "config" and word.startswith("additional_parameter__")
        if allowed is not None and word not in allowed and not is_free:
            code = "unknown-field" if where else "unknown-block"
            place = f" in {where}" if where else ""
            message = f"unknown {'field' if where else 'block'} `{word}`{place}"
            context.error(code, message + hint(word, allowed), element)
        if kind:
            _value_kind(context, element, kind)
        if key in seen:
            context.warn("duplicate-key", f"duplicate key `{key}`; the last one counts", element)
        seen.add(key)


def _value_kind(context: LintContext, element: Element, kind: str) -> None:
    """Text where text belongs, True or False where a flag does."""
    value, word = value_of(element), element.key.word
    if value is None or (word == "source" and kind == "variable"):
        return
    is_text = isinstance(value, Template) or (
        isinstance(value, Literal) and isinstance(value.value, str)
    )
    if word in _TEXTS and not is_text:
        context.error("type-mismatch", f"`{word}` takes a string or a template", element)
    elif word in _FLAGS and flag(element) is None:
        context.error("type-mismatch", f"`{word}` is True or False", element)


def _entry(context: LintContext) -> None:
    starts = [e for e in context.elements(context.script.items) if e.key.word == "start_agent"]
    if not starts:
        context.report_at("nt-no-entry", "a script needs a `start_agent <name>:`", (0, 0))
    for extra in starts[1:]:
        context.error("singular-collection", "only one `start_agent` is allowed", extra)


def _node(context: LintContext, element: Element) -> None:
    schema = string(child(element, "schema")) or ""
    if not schema.startswith("node://"):
        _fields(context, element.body, "node", str(element.key))
    elif context.is_external(element):
        context.warn(
            "nt-opaque", f"`{schema}` is run by other code; its behaviour is not checked", element
        )
    _required(context, element, "description")
    for field, kind in (("system", "node system"), ("reasoning", "reasoning")):
        inner = child(element, field)
        if inner is not None:
            _fields(context, inner.body, kind, f"{element.key} {field}")
    for action in context.elements_of(child(element, "actions")):
        _action(context, action)
    for tool in context.elements_of(child(element, "reasoning", "actions")):
        _fields(context, tool.body, "tool", f"tool {tool.key}")
    for field in ("actions", "skills"):
        block = child(element, field)
        if block is not None:
            _repeats(context, block)
    block = child(element, "reasoning", "actions")
    if block is not None:
        _repeats(context, block)
    for skill in context.elements_of(child(element, "skills")):
        target = string(child(skill, "target"))
        if target is not None and not target.lower().startswith("skill:"):
            context.error("invalid-skill-target", "a skill's target is `skill://name`", skill)


def _repeats(context: LintContext, block: Element) -> None:
    seen: set[str] = set()
    for element in context.elements(block.body):
        if str(element.key) in seen:
            context.warn("duplicate-key", f"duplicate key `{element.key}`", element)
        seen.add(str(element.key))


def _required(context: LintContext, element: Element, *fields: str) -> None:
    present = by_word(element.body)
    for name in fields:
        if name not in present:
            context.error("missing-required-field", f"`{element.key}` lacks its `{name}`", element)


def _action(context: LintContext, action: Element) -> None:
    _fields(context, action.body, "action", f"action {action.key}")
    _required(context, action, "target")
    target = child(action, "target")
    text = string(target)
    if target is not None and text is not None:
        _action_target(context, str(action.key), text, target)
    for field in ("inputs", "outputs"):
        block = child(action, field)
        if block is None:
            continue
        if not block.body:
            context.error("empty-block", f"`{field}` holds no entry; remove it", block)
        _parameters(context, str(action.key), block, field[:-1])


def _action_target(context: LintContext, name: str, text: str, target: Element) -> None:
    found = _URI.fullmatch(text)
    scheme = found[1].lower() if found else ""
    if scheme not in SCHEMES:
        shown = f"scheme `{found[1]}://`" if found else f"target `{text}`"
        context.error("invalid-action-target", f"action `{name}`: unsupported {shown}", target)
    elif scheme == "placeholder":
        context.warn(
            "placeholder-action-target", f"action `{name}` has only a placeholder target", target
        )


def _parameters(context: LintContext, action: str, block: Element, kind: str) -> None:
    declared_names: set[str] = set()
    for element in context.elements(block.body):
        check_declaration(context, element, kind, declared_names)
        _fields(context, element.body, "parameter", f"{kind} {element.key}")
        kind_of, _, _ = declared(element)
        if kind_of is None or reference(kind_of):
            continue
        text = to_source(kind_of)
        fields = by_word(element.body)
        named_type = bool((string(fields.get("complex_data_type_name")) or "").strip())
        has_schema = named_type or (kind == "input" and bool(string(fields.get("schema"))))
        if text in ("object", "list[object]"):
            if not has_schema:
                wanted = "complex_data_type_name" + (" or schema" if kind == "input" else "")
                message = f"{kind} `{element.key}` of `{action}` is `{text}` without {wanted}"
                context.warn("object-type-missing-schema", message, element)
        elif named_type:
            message = f"{kind} `{element.key}` of `{action}` is `{text}`: it needs no complex type"
            context.warn("complex-data-type-on-primitive", message, element)


def _connected(context: LintContext, element: Element) -> None:
    _fields(context, element.body, "connected_subagent", str(element.key))
    _required(context, element, "target")
    target = child(element, "target")
    text = string(target) or ""
    scheme, separator, name = text.partition("://")
    if target is not None and separator and scheme not in ("agent", "agentforce"):
        context.error(
            "connected-agent-unsupported-scheme", f"`{scheme}://`: only agent:// works", target
        )
    elif target is not None and separator and not _AGENT_NAME.fullmatch(name):
        context.error(
            "invalid-connected-subagent-target-name",
            f"`{name}`: letters, digits and single underscores, a letter first",
            target,
        )
    names: set[str] = set()
    for item in context.elements_of(child(element, "inputs")):
        check_declaration(context, item, "input", names)
        _bound_input(context, item)


def _bound_input(context: LintContext, element: Element) -> None:
    _, default, _ = declared(element)
    if default is None:
        message = f"input `{element.key}` must be bound: `{element.key}: string = @variables.X`"
        context.error("bound-input-required", message, element)
        return
    node = bare(default)
    parts = node.items if isinstance(node, ListOf) else (node,)
    for part in parts:
        found = reference(part)
        is_variable = found is not None and found.namespace == "variables" and part is node
        if not (isinstance(part, Literal) or is_variable):
            message = "a bound input is `@variables.X` or a literal"
            context.report_at("bound-input-not-variable", message, part.span)
    found = reference(node)
    if found and found.namespace == "variables":
        variable = context.variables.get(found.name)
        if variable and variable.modifier not in ("mutable", "linked"):
            message = f"`{found.name}` is neither linked nor mutable"
            context.report_at("bound-input-not-linked-or-mutable", message, node.span)
