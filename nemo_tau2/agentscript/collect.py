"""Lowers `collect`: gathering variables from the customer one at a time.

A node that collects gets a tool to write the variables (`capture_<node>_fields`), a tool to give up
(`cancel_<node>_collect`), and an edge to itself that keeps the session there until every step is
done. This is how the official compiler lowers it.
"""

from nemo_tau2.agentscript.expressions import (
    NONE,
    Binary,
    Compare,
    Expr,
    Literal,
    Member,
    Namespace,
    Paren,
    Ternary,
    reference,
)
from nemo_tau2.agentscript.fields import by_word, string
from nemo_tau2.agentscript.graph import (
    CollectStep,
    Parameter,
    StateUpdate,
    Tool,
    ToolKind,
    TypeRef,
    Variable,
)
from nemo_tau2.agentscript.syntax import Collect, If, Statement

MAX_VARIABLES = 60
"""Variables one node can collect; `steps_of` leaves out the rest."""


def target_of(statement: Collect) -> str | None:
    """The variable a `collect` gathers."""
    found = reference(statement.target)
    return found.name if found and found.namespace == "variables" else None


def message_of(statement: Collect) -> str:
    """What the customer is asked, word for word."""
    return string(by_word(statement.body).get("message")) or ""


def _targets_in(statement: Statement) -> list[str]:
    """Variables collected directly in the branches of an `if`."""
    found: list[str] = []
    if isinstance(statement, If):
        for branch in statement.branches[:2]:
            # An `else if` is a nested `if` to the official compiler: it looks one level deep.
            if branch.condition is not None and branch is not statement.branches[0]:
                continue
            for inner in branch.body:
                name = target_of(inner) if isinstance(inner, Collect) else None
                if name and name not in found:
                    found.append(name)
    return found


def steps_of(statements: tuple[Statement, ...]) -> tuple[CollectStep, ...]:
    """The steps, in order: a plain `collect`, or a run of `if`s that hold alternatives."""
    steps: list[CollectStep] = []
    branch: list[str] = []

    def flush() -> None:
        if branch:
            steps.append(CollectStep(tuple(dict.fromkeys(branch)), True))
            branch.clear()

    for statement in statements:
        targets = _targets_in(statement)
        if targets:
            branch += targets
            continue
        flush()
        name = target_of(statement) if isinstance(statement, Collect) else None
        if name:
            steps.append(CollectStep((name,)))
    flush()
    kept: list[CollectStep] = []
    for step in steps:
        if sum(len(s.variables) for s in kept) + len(step.variables) > MAX_VARIABLES:
            break
        kept.append(step)
    return tuple(kept)


def has_closing_words(statements: tuple[Statement, ...]) -> bool:
    """True if the author wrote anything after the last `collect`."""
    last = -1
    for i, statement in enumerate(statements):
        if _targets_in(statement) or (isinstance(statement, Collect) and target_of(statement)):
            last = i
    return 0 <= last < len(statements) - 1


def variables_of(steps: tuple[CollectStep, ...]) -> tuple[str, ...]:
    """All variables gathered, in order."""
    return tuple(dict.fromkeys(name for step in steps for name in step.variables))


def prior_conditions(steps: tuple[CollectStep, ...]) -> dict[str, list[Expr]]:
    """For each variable, the conditions that the steps before its own are done."""
    prior: dict[str, list[Expr]] = {}
    done: list[Expr] = []
    for step in steps:
        for name in step.variables:
            prior[name] = list(done)
        done.append(step_is_done(step))
    return prior


def is_unset(name: str) -> Expr:
    """`@variables.name is None`"""
    return _compare("is", name)


def _compare(operator: str, name: str) -> Expr:
    return Compare(operator, Member(Namespace("variables"), name), NONE, f" {operator} ")


def step_is_done(step: CollectStep) -> Expr:
    """Any variable of the step is set."""
    terms = [_compare("is not", name) for name in step.variables]
    return terms[0] if len(terms) == 1 else Paren(right_join(terms, "or"))


def step_is_open(step: CollectStep) -> Expr:
    """No variable of the step is set."""
    terms = [is_unset(name) for name in step.variables]
    return terms[0] if len(terms) == 1 else Paren(right_join(terms, "and"))


def is_complete(steps: tuple[CollectStep, ...]) -> Expr:
    """Every step is done."""
    return right_join([step_is_done(step) for step in steps], "and")


def is_incomplete(steps: tuple[CollectStep, ...]) -> Expr:
    """Some step is open."""
    return right_join([step_is_open(step) for step in steps], "or")


def right_join(terms: list[Expr], operator: str) -> Expr:
    """`a op (b op (c op d))`: the official runtime wants three or more operands bracketed."""
    result = terms[-1]
    for i, term in enumerate(reversed(terms[:-1])):
        result = Binary(operator, term, result if i == 0 else Paren(result))
    return result


def capture_name(node: str) -> str:
    """Name of the tool that writes the collected variables."""
    return f"capture_{node}_fields"


def cancel_name(node: str) -> str:
    """Name of the tool that gives up collecting."""
    return f"cancel_{node}_collect"


def prompt(node: str, name: str, message: str) -> str:
    """What the model is told while a variable is to be collected."""
    return (
        f'Ask the user for {name}. Use exactly this message: "{message}" '
        f"When they answer, call {capture_name(node)} with {name}."
    )


DONE = "All required details are collected. Do not ask for anything further."


def cancel_prompt(node: str) -> str:
    """What the model is told about giving up a `collect`."""
    return (
        "If the user changes their mind, cancels, says never mind, or asks for something else "
        f"instead, do not ask for the next field — call {cancel_name(node)} instead."
    )


def capture_tool(node: str, steps: tuple[CollectStep, ...], variables: dict[str, Variable]) -> Tool:
    """The tool that writes collected variables; a call may give some and leave out others."""
    names = variables_of(steps)
    updates = []
    for name in names:
        given = Binary("in", Literal(name), Namespace("outputs"))
        kept = Member(Namespace("variables"), name)
        updates.append(StateUpdate(name, Ternary(Member(Namespace("outputs"), name), given, kept)))
    inputs = tuple(_parameter(name, variables.get(name)) for name in names)
    return Tool(
        name=capture_name(node),
        key=capture_name(node),
        kind=ToolKind.SET_VARIABLES,
        target="",
        description="Capture fields as the user provides them.",
        explicit_description="Capture fields as the user provides them.",
        inputs=inputs,
        updates=tuple(updates),
        has_arguments=True,
    )


def _parameter(name: str, variable: Variable | None) -> Parameter:
    kind = variable.type if variable else TypeRef("string")
    text = variable.description if variable else None
    return Parameter(name, kind, description=text, required=False)


def cancel_tool(node: str, entry: str) -> Tool:
    """The tool that gives up collecting; it takes no arguments and leaves the node next turn."""
    text = (
        "Stop collecting and return to the start when the user changes their mind, cancels, says "
        "never mind, or asks for something else instead."
    )
    return Tool(
        name=cancel_name(node),
        key=cancel_name(node),
        kind=ToolKind.CANCEL,
        target=entry,
        description=text,
        explicit_description=text,
        has_arguments=True,
    )
