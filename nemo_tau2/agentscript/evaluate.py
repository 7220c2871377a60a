"""Evaluates expressions and renders templates on the state of a session.

A tree walk over a closed set of node types: no `eval`, no attribute access on Python objects, no
call of anything but `len`, `max` and `min`. Values are JSON values. Coercion is Python's; what
Python would raise as `TypeError`, and reading a member of `None`, raise `EvaluationError`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nemo_tau2.agentscript.expressions import (
    Binary,
    Call,
    Compare,
    DateTime,
    DictOf,
    Ellipsis,
    Expr,
    Index,
    ListOf,
    Literal,
    Member,
    Name,
    Namespace,
    Paren,
    Spread,
    Ternary,
    Unary,
    reference,
    to_source,
)
from nemo_tau2.agentscript.templates import Template

MAX_TEXT = 1_000_000
"""Longest string (characters) or list (items) an expression may build."""
MAX_INTEGER = 2**256


class EvaluationError(Exception):
    """An expression that has no value on this state: a wrong type, or an unknown name."""


class NoneAccessError(EvaluationError):
    """A member or an item of `None` was read. Guards treat this as false."""


@dataclass(slots=True)
class Scope:
    """What an expression can see.

    `variables` holds mutable and linked variables alike, `outputs` the result of the call that is
    being handled (`@outputs`), `system` the `@system_variables`, and `namespaces` anything else
    (`@knowledge`, `@MessagingSession`, `@inputs`, ...).
    """

    variables: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] | None = None
    system: Mapping[str, Any] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def namespace(self, name: str) -> Mapping[str, Any]:
        """Returns the members of `@name`.

        Raises:
            EvaluationError: there is no such namespace here.
        """
        if name == "variables":
            return self.variables
        if name == "outputs":
            if self.outputs is None:
                raise EvaluationError("@outputs is only known right after a call")
            return self.outputs
        if name == "system_variables":
            return self.system
        if name in self.namespaces:
            return self.namespaces[name]
        raise EvaluationError(f"@{name} has no value here")


def evaluate(expression: Expr, scope: Scope) -> Any:
    """Returns the value of an expression.

    Raises:
        NoneAccessError: a member or item of None was read.
        EvaluationError: any other expression without a value.
    """
    match expression:
        case Literal(value) | DateTime(value):
            return value
        case Paren(inner):
            return evaluate(inner, scope)
        case Member():
            return _member(expression, scope)
        case Index(value, index):
            return _item(evaluate_container(value, scope), evaluate(index, scope), expression)
        case Compare(operator, left, right):
            return _compare(operator, evaluate(left, scope), evaluate(right, scope))
        case Binary("and", left, right):
            return evaluate(left, scope) and evaluate(right, scope)
        case Binary("or", left, right):
            return evaluate(left, scope) or evaluate(right, scope)
        case Binary("in", left, right):
            return evaluate(left, scope) in evaluate_container(right, scope)
        case Binary(operator, left, right):
            return _arithmetic(operator, evaluate(left, scope), evaluate(right, scope))
        case Unary("not", operand):
            return not evaluate(operand, scope)
        case Unary(operator, operand):
            return _signed(operator, evaluate(operand, scope))
        case Ternary(then, condition, otherwise):
            return evaluate(then if evaluate(condition, scope) else otherwise, scope)
        case ListOf(items):
            return _spread(items, scope)
        case DictOf(entries):
            return {_key(key, scope): evaluate(value, scope) for key, value in entries}
        case Call(function, arguments):
            return _call(function, arguments, scope)
        case Name(name):
            raise EvaluationError(f"`{name}` is not defined; write a string or @variables.{name}")
        case Namespace(name):
            raise EvaluationError(f"@{name} needs a member: @{name}.something")
        case Ellipsis():
            raise EvaluationError("`...` is filled by the model and has no value")
    raise EvaluationError(f"`{to_source(expression)}` has no value")


def is_true(condition: Expr | None, scope: Scope) -> bool:
    """Evaluates a guard; no guard is true, a guard that has no value is false."""
    if condition is None:
        return True
    try:
        return bool(evaluate(condition, scope))
    except EvaluationError:
        return False


def render(template: Template, scope: Scope, name_of: Callable[[str], str] | None = None) -> str:
    """Renders a template.

    Args:
        template: what to render.
        scope: what its expressions see.
        name_of: turns the X of `{!@actions.X}` into the name the model knows.

    An interpolation without a value renders as nothing, as an unset variable does.
    """
    pieces = []
    for part in template.parts:
        if isinstance(part, str):
            pieces.append(part)
            continue
        target = reference(part.expression)
        if target and target.namespace in ("actions", "tools", "response_actions"):
            pieces.append(name_of(target.name) if name_of else target.name)
            continue
        try:
            pieces.append(to_text(evaluate(part.expression, scope)))
        except EvaluationError:
            continue
    text = "".join(pieces)
    return text[:MAX_TEXT]


def to_text(value: Any) -> str:
    """A value as it reads in a prompt: strings as they are, None as nothing, the rest as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "True" if value else "False"
    return json.dumps(value, ensure_ascii=False, default=str)


def evaluate_container(expression: Expr, scope: Scope) -> Any:
    """Evaluates what a member or an item is read from; a namespace is a mapping."""
    if isinstance(expression, Namespace):
        return scope.namespace(expression.id)
    return evaluate(expression, scope)


def _member(expression: Member, scope: Scope) -> Any:
    value = evaluate_container(expression.value, scope)
    if value is None:
        raise NoneAccessError(f"`{to_source(expression.value)}` is None; it has no members")
    if isinstance(value, Mapping):
        if expression.name in value:
            return value[expression.name]
        if expression.name == "length" and not isinstance(expression.value, Namespace):
            return len(value)
        raise EvaluationError(f"`{to_source(expression)}` is not defined")
    if expression.name == "length" and isinstance(value, str | list):
        return len(value)
    raise EvaluationError(f"`{to_source(expression.value)}` has no member `{expression.name}`")


def _item(value: Any, index: Any, expression: Index) -> Any:
    if value is None:
        raise NoneAccessError(f"`{to_source(expression.value)}` is None; it has no items")
    if not isinstance(value, Mapping | list | str):
        raise EvaluationError(f"`{to_source(expression.value)}` has no items")
    try:
        return value[index]
    except (KeyError, IndexError, TypeError):
        raise EvaluationError(f"`{to_source(expression)}` is not defined") from None


def _compare(operator: str, left: Any, right: Any) -> bool:
    match operator:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "is":
            return _is_same(left, right)
        case "is not":
            return not _is_same(left, right)
    try:
        match operator:
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case ">=":
                return left >= right
    except TypeError:
        pass
    raise EvaluationError(f"cannot compare {type(left).__name__} {operator} {type(right).__name__}")


def _is_same(left: Any, right: Any) -> bool:
    """`is` on JSON values: equal and of the same kind, so that `1 is True` is false."""
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    return left == right


def _arithmetic(operator: str, left: Any, right: Any) -> Any:
    try:
        match operator:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*" if isinstance(left, int | float) and isinstance(right, int | float):
                result = left * right
            case "/":
                result = left / right
            case _:
                raise TypeError
    except (TypeError, OverflowError):
        raise EvaluationError(
            f"cannot compute {type(left).__name__} {operator} {type(right).__name__}"
        ) from None
    except ZeroDivisionError:
        raise EvaluationError("division by zero") from None
    if isinstance(result, str | list) and len(result) > MAX_TEXT:
        raise EvaluationError(f"the result is longer than {MAX_TEXT}")
    if isinstance(result, int) and abs(result) > MAX_INTEGER:
        raise EvaluationError("the result is too large")
    return result


def _signed(operator: str, value: Any) -> Any:
    if not isinstance(value, int | float):
        raise EvaluationError(f"cannot compute {operator}{type(value).__name__}")
    return -value if operator == "-" else +value


def _spread(items: tuple[Expr, ...], scope: Scope) -> list[Any]:
    values: list[Any] = []
    for item in items:
        if not isinstance(item, Spread):
            values.append(evaluate(item, scope))
            continue
        value = evaluate(item.value, scope)
        if not isinstance(value, list):
            raise EvaluationError(f"`*` needs a list, not {type(value).__name__}")
        values += value
    return values


def _key(key: Expr, scope: Scope) -> Any:
    return key.id if isinstance(key, Name) else evaluate(key, scope)


def _call(function: Expr, arguments: tuple[Expr, ...], scope: Scope) -> Any:
    builtin = {"len": len, "max": max, "min": min}
    if not isinstance(function, Name) or function.id not in builtin:
        raise EvaluationError(f"`{to_source(function)}` is not a function; known: len, max, min")
    values = _spread(arguments, scope)
    if function.id == "len" and values == [None]:
        raise NoneAccessError("len(None)")
    try:
        return builtin[function.id](*values)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"{function.id}(): {error}") from None
