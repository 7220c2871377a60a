"""Which arguments of a τ² call count when it is compared with a gold action, and in what form.

Only notation is changed here: defaults are filled in, free text is left out, unordered lists are put in
order and an expression becomes its value. What counts as equal is `rewards.tiers`' business.
"""

from typing import Any

from nemo_tau2.tau2.domains import Domain
from nemo_tau2.tau2.fixes import evaluate

FREE_TEXT = {"transfer_to_human_agents": ("summary",)}
"""Arguments whose wording is the model's own."""

UNORDERED = {"return_delivered_order_items": ("item_ids",)}
"""Lists whose order does not matter."""

PAIRED = {
    "exchange_delivered_order_items": ("item_ids", "new_item_ids"),
    "modify_pending_order_items": ("item_ids", "new_item_ids"),
}
"""Two lists that belong together element by element; the order of the pairs does not matter."""


def matched_arguments(
    domain: Domain, actor: str, name: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """The arguments to compare, from those that were sent."""
    side = domain.sides.get(actor)
    matched = dict(side.defaults.get(name, {}) if side else {}) | arguments
    for key in FREE_TEXT.get(name, ()):
        matched.pop(key, None)
    for key in UNORDERED.get(name, ()):
        if isinstance(matched.get(key), list):
            matched[key] = sorted(matched[key], key=repr)
    if name in PAIRED:
        left, right = (matched.get(key) for key in PAIRED[name])
        if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
            pairs = sorted(zip(left, right, strict=True), key=repr)
            matched[PAIRED[name][0]] = [pair[0] for pair in pairs]
            matched[PAIRED[name][1]] = [pair[1] for pair in pairs]
    if name == "calculate" and isinstance(matched.get("expression"), str):
        matched["expression"] = _value(matched["expression"])
    return matched


def _value(expression: str) -> Any:
    """The number an expression stands for, or the expression where it stands for none."""
    try:
        return evaluate(expression)
    except (ArithmeticError, ValueError):
        return expression
