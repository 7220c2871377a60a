"""What the official linter checks about `config` and `system`: settings of the whole agent."""

from nemo_tau2.agentscript.expressions import NONE, reference
from nemo_tau2.agentscript.fields import by_word, child, string, value_of
from nemo_tau2.agentscript.lint_context import LintContext
from nemo_tau2.agentscript.names import words
from nemo_tau2.agentscript.syntax import Element
from nemo_tau2.agentscript.templates import Interpolation, Template

AGENT_TYPES = words(
    """agentforceserviceagent einsteinsdr saleseinsteincoach bankingserviceagent
    serviceplanner appdevagent agentforceemployeeagent customagent lightningappbuilder
    salescanvasagent scaleagent thirdpartya2aagent"""
)


def check_settings(context: LintContext) -> None:
    """Checks the settings of the agent."""
    _config(context)
    _system(context)


def _config(context: LintContext) -> None:
    """The block as a whole is pointed at by its first field, as the official linter does."""
    config = context.blocks.get("config")
    if config is None:
        context.report_at("missing-required-field", "a script needs a `config:` block", (0, 0))
        return
    fields = by_word(config.body)
    first = config.body[0] if config.body else config
    names = [n for n in ("developer_name", "agent_name") if (string(fields.get(n)) or "").strip()]
    if not names:
        context.error(
            "config-missing-agent-name", "config needs `developer_name` or `agent_name`", first
        )
    elif len(names) == 2:
        context.error(
            "config-duplicate-agent-name", "give `developer_name` or `agent_name`, not both", first
        )
    if "default_agent_user" in fields:
        message = "'default_agent_user' is deprecated: move it to the access block"
        context.warn("deprecated-field", message, fields["default_agent_user"])
    if "user_locale" in fields:
        message = "'user_locale' is deprecated: use the language block"
        context.warn("deprecated-field", message, fields["user_locale"])
    forbidden = fields.get("additional_parameter__disable_graph_runtime")
    if forbidden is not None:
        message = "disabling the graph runtime is not permitted"
        context.error("disabled-additional-parameter", message, forbidden)
    _agent_user(context, config, fields)


def _agent_user(context: LintContext, config: Element, fields: dict[str, Element]) -> None:
    own = fields.get("default_agent_user")
    other = child(context.blocks.get("access"), "default_agent_user")
    kind = (string(fields.get("agent_type")) or "").strip()
    if kind and kind.lower() not in AGENT_TYPES:
        context.error(
            "agent-type-not-allowed", f"`{kind}` is not a supported agent_type",
            fields["agent_type"],
        )  # fmt: skip
    if own is not None and other is not None:
        message = "set in both config and access; the one in access counts"
        context.warn("config-default-agent-user-conflict", message, own)
    if kind.lower() != "agentforceemployeeagent":
        for user in (own, other):
            if user is not None and value_of(user) == NONE:
                context.error(
                    "config-invalid-default-agent-user-none",
                    "`None` is for AgentforceEmployeeAgent only",
                    user,
                )
    given = any((string(user) or "").strip() for user in (own, other))
    if kind.lower() == "agentforceserviceagent" and not given:
        context.error(
            "config-missing-default-agent-user",
            f"{kind} needs a `default_agent_user`",
            config.body[0],
        )


def _system(context: LintContext) -> None:
    messages = child(context.blocks.get("system"), "messages")
    if messages is None:
        return
    for word in ("welcome", "error"):
        template = value_of(child(messages, word))
        parts = template.parts if isinstance(template, Template) else ()
        for part in parts:
            found = reference(part.expression) if isinstance(part, Interpolation) else None
            variable = context.variables.get(found.name) if found else None
            if not (found and found.namespace == "variables" and variable):
                continue
            if not variable.linked and (variable.visibility or "").lower() != "external":
                context.report_at(
                    "system-message-mutable-variable",
                    f"`{found.name}` has no value yet when the {word} message is sent; "
                    "use a linked variable",
                    part.span,
                )
