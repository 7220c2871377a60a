"""A small script to vary, and shortcuts for parsing snippets."""

from textwrap import dedent

from nemo_tau2.agentscript import WorkflowGraph, compile, parse
from nemo_tau2.agentscript.syntax import Script

HEAD = """\
config:
    agent_name: "Shop"
    agent_type: "AgentforceEmployeeAgent"

variables:
    order_id: mutable string = ""
        description: "The order"
    verified: mutable boolean = False
    tries: mutable number = 0
    note: mutable object
    user: linked string
        source: @MessagingEndUser.ContactId

"""

NODE = """\
start_agent router:
    description: "Routes"
    reasoning:
        instructions: ->
            | Route the customer.
        actions:
            to_orders: @utils.transition to @subagent.orders

subagent orders:
    description: "Orders"
    actions:
        Get_Order:
            description: "Reads an order"
            inputs:
                order_id: string
                    description: "Order number"
                    is_required: True
                verbose: boolean = False
            outputs:
                status: string
                secret: string
                    filter_from_agent: True
            target: "flow://Get_Order"
        Cancel_Order:
            description: "Cancels an order"
            require_user_confirmation: True
            inputs:
                order_id: string
                    is_required: True
                reason: string
                    is_required: True
            outputs:
                done: boolean
            target: "flow://Cancel_Order"
    reasoning:
"""


def script(orders: str = "", *, head: str = HEAD) -> str:
    """A two-node script; `orders` is the body of `reasoning` of the second node."""
    body = dedent(orders)
    indented = "".join(f"        {line}\n" if line else "\n" for line in body.splitlines())
    return head + NODE + (indented or "        instructions: ->\n            | Help.\n")


def graph_of(orders: str = "", *, head: str = HEAD) -> WorkflowGraph:
    """The graph of `script(orders)`."""
    return compile(script(orders, head=head))


def parsed(text: str) -> Script:
    """Parses a snippet that must follow the grammar."""
    result = parse(dedent(text))
    assert result.ok, [d.format("snippet") for d in result.diagnostics]
    return result


def problems(text: str) -> list[str]:
    """The findings of the parser on a snippet, as `line:column code`."""
    found = parse(dedent(text)).diagnostics
    return [f"{d.span.line}:{d.span.column} {d.code}" for d in found]
