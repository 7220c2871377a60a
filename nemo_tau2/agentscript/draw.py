"""Pictures of a graph: Mermaid text, and SVG drawn here, without any other program.

Both show nodes with their tools, and edges with what triggers and guards them: solid for the
model's choice, dashed for the script's.
"""

from collections import defaultdict
from html import escape

from nemo_tau2.agentscript.expressions import to_source
from nemo_tau2.agentscript.graph import (
    TERMINAL,
    Edge,
    Node,
    NodeKind,
    ToolKind,
    Trigger,
    WorkflowGraph,
)

LABEL = 44
"""Longest guard shown, in characters."""
CHARACTER, BOLD, LINE, PAD = 6.8, 9.2, 17, 10
COLUMN_GAP, ROW_GAP = 270, 34
_FILL = {
    NodeKind.ROUTER: "#dbeafe",
    NodeKind.SUBAGENT: "#f1f5f9",
    NodeKind.CONNECTED: "#ede9fe",
    NodeKind.EXTERNAL: "#ede9fe",
    NodeKind.TERMINAL: "#fef3c7",
}


def to_mermaid(graph: WorkflowGraph) -> str:
    """The graph as a Mermaid flowchart."""
    lines = ["flowchart LR"]
    ids = {name: f"n{i}" for i, name in enumerate(graph.nodes)}
    for node in _shown(graph):
        text = "<br/>".join(_quoted(line) for line in _node_lines(node))
        left, right = ("([", "])") if node.name in TERMINAL else ("[", "]")
        lines.append(f'    {ids[node.name]}{left}"{text}"{right}')
    for source, target, edges in _merged(graph):
        arrow = "-->" if edges[0].trigger is Trigger.MODEL else "-.->"
        label = " / ".join(dict.fromkeys(filter(None, map(_edge_label, edges))))
        text = f'|"{_quoted(_short(label, 3 * LABEL))}"|' if label else ""
        lines.append(f"    {ids[source]} {arrow}{text} {ids[target]}")
    return "\n".join(lines) + "\n"


def to_svg(graph: WorkflowGraph) -> str:
    """The graph as an SVG document: columns by distance from the entry."""
    boxes = _layout(graph)
    edges, height = _edge_paths(graph, boxes)
    width = max(box.x + box.width for box in boxes.values()) + 40
    body = [*edges, *(_box_svg(box) for box in boxes.values())]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" '
            'font-family="Helvetica, Arial, DejaVu Sans, sans-serif">',
            '<defs><marker id="a" markerWidth="9" markerHeight="8" refX="8" refY="4" '
            'orient="auto"><path d="M0,0 L9,4 L0,8 z" fill="#475569"/></marker></defs>',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
            *body,
            "</svg>\n",
        ]
    )


class _Box:
    """A node on the picture: its corner, size and lines of text."""

    def __init__(self, node: Node, column: int):
        self.node, self.column = node, column
        self.lines = _node_lines(node)
        title, *rest = self.lines
        widths = (len(title) * BOLD, *(len(line) * CHARACTER for line in rest))
        self.width = max(widths) + 2 * PAD
        self.height = len(self.lines) * LINE + 2 * PAD
        self.x = self.y = 0.0


def _shown(graph: WorkflowGraph) -> list[Node]:
    used = {edge.target for edge in graph.edges}
    return [n for n in graph.nodes.values() if n.kind is not NodeKind.TERMINAL or n.name in used]


def _node_lines(node: Node) -> list[str]:
    lines = [f"{node.name}{' (start)' if node.is_entry else ''}"]
    for tool in node.tools.values():
        if tool.kind in (ToolKind.ACTION, ToolKind.SET_VARIABLES):
            arguments = ", ".join(p.name for p in tool.inputs)
            guard = " [guarded]" if tool.guard is not None else ""
            lines.append(_short(f"{tool.name}({arguments}){guard}", 48))
    return lines


def _edge_label(edge: Edge) -> str:
    guard = _short(to_source(edge.condition), LABEL) if edge.condition is not None else ""
    if edge.delegate:
        return f"delegate {guard}".strip()
    return guard


def _merged(graph: WorkflowGraph) -> list[tuple[str, str, list[Edge]]]:
    """Edges grouped by ends and trigger, in source order; dangling ones left out."""
    groups: dict[tuple[str, str, Trigger], list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        if edge.target in graph.nodes and edge.source != edge.target:
            groups[edge.source, edge.target, edge.trigger].append(edge)
    return [(source, target, edges) for (source, target, _), edges in groups.items()]


def _columns(graph: WorkflowGraph) -> dict[str, int]:
    """Distance from the entry; terminals one column further right, unreachable nodes at 0."""
    column, frontier = {graph.entry: 0}, [graph.entry]
    while frontier:
        found: list[str] = []
        for source in frontier:
            for edge in graph.edges_from(source):
                target = edge.target
                if target in graph.nodes and target not in TERMINAL and target not in column:
                    column[target] = column[source] + 1
                    found.append(target)
        frontier = found
    last = max(column.values()) + 1
    return {n.name: column.get(n.name, last if n.name in TERMINAL else 0) for n in _shown(graph)}


def _layout(graph: WorkflowGraph) -> dict[str, _Box]:
    columns = _columns(graph)
    boxes = {name: _Box(graph.nodes[name], column) for name, column in columns.items()}
    x = 30.0
    for column in range(max(columns.values()) + 1):
        members = [box for box in boxes.values() if box.column == column]
        if not members:
            continue
        y = 30.0
        for box in members:
            box.x, box.y = x, y
            y += box.height + ROW_GAP
        x += max(box.width for box in members) + COLUMN_GAP
    return boxes


def _edge_paths(graph: WorkflowGraph, boxes: dict[str, _Box]) -> tuple[list[str], float]:
    """SVG for the edges, and the height of the picture.

    An edge to the next column is a curve; any other runs in a lane of its own below the boxes.
    """
    lane = max(box.y + box.height for box in boxes.values()) + 24
    ports: dict[tuple[str, bool], int] = defaultdict(int)
    parts: list[str] = []
    for source, target, edges in _merged(graph):
        start, end = boxes[source], boxes[target]
        x1, y1 = start.x + start.width, _port(start, ports, True)
        x2, y2 = end.x, _port(end, ports, False)
        if end.column == start.column + 1:
            bend = (x2 - x1) / 2
            path = f"M{x1:.0f},{y1:.0f} C{x1 + bend:.0f},{y1:.0f} {x2 - bend:.0f},{y2:.0f} "
            path += f"{x2:.0f},{y2:.0f}"
            place = (x2 - 12, y2 - 4, "end")
        else:
            path = (
                f"M{x1:.0f},{y1:.0f} C{x1 + 50:.0f},{y1:.0f} {x1 + 50:.0f},{lane:.0f} "
                f"{x1:.0f},{lane:.0f} L{x2:.0f},{lane:.0f} C{x2 - 28:.0f},{lane:.0f} "
                f"{x2 - 28:.0f},{y2:.0f} {x2:.0f},{y2:.0f}"
            )
            if x2 > x1:
                path = (
                    f"M{x1:.0f},{y1:.0f} C{x1 + 50:.0f},{y1:.0f} {x1:.0f},{lane:.0f} "
                    f"{x1 + 60:.0f},{lane:.0f} L{x2 - 60:.0f},{lane:.0f} "
                    f"C{x2:.0f},{lane:.0f} {x2 - 50:.0f},{y2:.0f} {x2:.0f},{y2:.0f}"
                )
            place = ((x1 + x2) / 2, lane - 3, "middle")
            lane += 16
        parts += _edge_svg(path, place, edges)
    return parts, lane + 20


def _port(box: _Box, ports: dict[tuple[str, bool], int], leaving: bool) -> float:
    """Where the next edge meets a box: edges of one side are spread over its height."""
    key = (box.node.name, leaving)
    ports[key] += 1
    return box.y + min(PAD + 8 + (ports[key] - 1) * 13, box.height - 6)


def _edge_svg(path: str, place: tuple[float, float, str], edges: list[Edge]) -> list[str]:
    dash = "" if edges[0].trigger is Trigger.MODEL else ' stroke-dasharray="5 4"'
    labels = list(dict.fromkeys(filter(None, map(_edge_label, edges))))
    parts = [f'<path d="{path}" fill="none" stroke="#475569" marker-end="url(#a)"{dash}/>']
    if labels:
        more = f" (+{len(labels) - 1})" if len(labels) > 1 else ""
        x, y, anchor = place
        parts.append(
            f'<text x="{x:.0f}" y="{y:.0f}" font-size="10" fill="#475569" stroke="white" '
            f'stroke-width="3" paint-order="stroke" text-anchor="{anchor}">'
            f"{escape(labels[0] + more)}</text>"
        )
    return parts


def _box_svg(box: _Box) -> str:
    radius = 16 if box.node.name in TERMINAL else 5
    lines = [
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" '
        f'rx="{radius}" fill="{_FILL[box.node.kind]}" stroke="#334155"/>'
    ]
    for i, line in enumerate(box.lines):
        weight = ' font-weight="bold"' if i == 0 else ""
        lines.append(
            f'<text x="{box.x + PAD:.0f}" y="{box.y + PAD + 12 + i * LINE:.0f}" font-size="12"'
            f"{weight}>{escape(line)}</text>"
        )
    return "\n".join(lines)


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
