"""Pictures of graphs."""

from xml.etree import ElementTree

from nemo_tau2.agentscript.draw import to_mermaid, to_svg

from .snippets import graph_of

TOOLS = """\
actions:
    get: @actions.Get_Order
        available when @variables.tries < 3
    back: @utils.transition to @subagent.router
        available when @variables.order_id == "a < b"
    person: @utils.escalate
"""


def test_mermaid() -> None:
    assert to_mermaid(graph_of(TOOLS)) == (
        "flowchart LR\n"
        '    n0["router (start)"]\n'
        '    n1["orders<br/>get(order_id) [guarded]"]\n'
        '    n2(["HUMAN"])\n'
        "    n0 --> n1\n"
        '    n1 -->|"@variables.order_id == #quot;a #lt; b#quot;"| n0\n'
        "    n1 --> n2\n"
    )


def test_svg_is_well_formed_and_shows_every_node() -> None:
    root = ElementTree.fromstring(to_svg(graph_of(TOOLS)))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"router (start)", "orders", "HUMAN", "get(order_id) [guarded]"} <= set(texts)
    assert '@variables.order_id == "a < b"' in texts
