"""What the checks of `lint` share: the script, its graph, and where findings go."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass, field

from nemo_tau2.agentscript.diagnostics import Diagnostic, Severity
from nemo_tau2.agentscript.fields import by_word, child, string
from nemo_tau2.agentscript.graph import Variable, WorkflowGraph
from nemo_tau2.agentscript.syntax import Element, Item, Script, Statement

LONGEST_HINT, MOST_HINTS = 80, 200
"""Words longer, and sets of words larger, than these are not searched for a close match."""


@dataclass(slots=True)
class LintContext:
    """A script under check. `graph` is None when the script has no entry node."""

    script: Script
    graph: WorkflowGraph | None
    found: list[Diagnostic] = field(default_factory=list)
    blocks: dict[str, Element] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.blocks = by_word(self.script.items)

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables of the script, by name."""
        return self.graph.variables if self.graph else {}

    def elements(self, items: list[Statement]) -> list[Element]:
        """The elements of a body, repeated keys included."""
        return [item for item in items if isinstance(item, Element)]

    def elements_of(self, block: Element | None) -> list[Element]:
        """The elements below a key; none when the key is absent."""
        return self.elements(block.body) if block else []

    def is_external(self, node: Element) -> bool:
        """True for a node run by other code."""
        return (string(child(node, "schema")) or "").startswith("node://")

    def report_at(
        self, code: str, message: str, span: tuple[int, int], severity: Severity = Severity.ERROR
    ) -> None:
        """Records a finding about characters `span`."""
        place = self.script.source.span(*span)
        self.found.append(Diagnostic(code, message, place, severity))

    def error(self, code: str, message: str, item: Item) -> None:
        """Records an error about an item."""
        self.report_at(code, message, item.span)

    def warn(self, code: str, message: str, item: Item) -> None:
        """Records a warning about an item."""
        self.report_at(code, message, item.span, Severity.WARNING)

    def info(self, code: str, message: str, item: Item) -> None:
        """Records a remark about an item."""
        self.report_at(code, message, item.span, Severity.INFO)


def hint(word: str, known: Collection[str]) -> str:
    """`; did you mean ...?` when a known word is close; nothing where the search would be long."""
    if len(word) > LONGEST_HINT or len(known) > MOST_HINTS:
        return ""
    close = difflib.get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean `{close[0]}`?" if close else ""
