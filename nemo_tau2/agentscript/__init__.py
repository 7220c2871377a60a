"""Agent Script in Python: parse, compile, lint, and run what surrounds the model.

    from nemo_tau2.agentscript import compile, lint, parse

    graph = compile("support.agent")          # a path, or the text of a script
    for finding in lint("support.agent"):
        print(finding.format("support.agent"))

`compile` gives a `WorkflowGraph` of typed nodes, tools, edges and variables. `Interpreter` runs a
graph's procedures on a session's state; `evaluate` and `render` do so for single expressions and
templates. The package imports nothing but the standard library and pydantic, and uses no `eval`.
It is not a model, an emulator or an environment: those are built on the graph elsewhere.
"""

from nemo_tau2.agentscript.agentjson import to_agentjson
from nemo_tau2.agentscript.diagnostics import AgentScriptError, Diagnostic, Severity, Span
from nemo_tau2.agentscript.evaluate import (
    EvaluationError,
    NoneAccessError,
    Scope,
    evaluate,
    is_true,
    render,
)
from nemo_tau2.agentscript.expressions import Expr, to_source
from nemo_tau2.agentscript.graph import (
    END,
    HUMAN,
    Action,
    Edge,
    Effect,
    EffectEvidence,
    LoopConfig,
    Node,
    NodeKind,
    Parameter,
    Phase,
    StateUpdate,
    Tool,
    ToolKind,
    Trigger,
    TypeRef,
    Variable,
    WorkflowGraph,
)
from nemo_tau2.agentscript.interpreter import (
    Call,
    CallFailedError,
    Interpreter,
    Outcome,
    StepLimitError,
)
from nemo_tau2.agentscript.lint import lint
from nemo_tau2.agentscript.lowering import compile_script as compile
from nemo_tau2.agentscript.parser import parse, parse_expression
from nemo_tau2.agentscript.printer import print_script
from nemo_tau2.agentscript.sidecar import Sidecar, apply_sidecar
from nemo_tau2.agentscript.source import Source, read
from nemo_tau2.agentscript.syntax import Script
from nemo_tau2.agentscript.templates import Template

__all__ = [
    "END",
    "HUMAN",
    "Action",
    "AgentScriptError",
    "Call",
    "CallFailedError",
    "Diagnostic",
    "Edge",
    "Effect",
    "EffectEvidence",
    "EvaluationError",
    "Expr",
    "Interpreter",
    "LoopConfig",
    "Node",
    "NodeKind",
    "NoneAccessError",
    "Outcome",
    "Parameter",
    "Phase",
    "Scope",
    "Script",
    "Severity",
    "Sidecar",
    "Source",
    "Span",
    "StateUpdate",
    "StepLimitError",
    "Template",
    "Tool",
    "ToolKind",
    "Trigger",
    "TypeRef",
    "Variable",
    "WorkflowGraph",
    "apply_sidecar",
    "compile",
    "evaluate",
    "is_true",
    "lint",
    "parse",
    "parse_expression",
    "print_script",
    "read",
    "render",
    "to_agentjson",
    "to_source",
]
