"""Our compilation against the official one: what is equal, what differs, counted.

Both sides are AgentJSON. What is compared is nodes (with their type), transition edges (with the
phase and the condition they fire under), action definitions and tools, the last two field by field.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nemo_tau2.agentscript.agentjson import to_agentjson
from nemo_tau2.agentscript.lowering import compile_script
from nemo_tau2.errors import UserError

Json = dict[str, Any]
_HANDOFF_FIELDS = (
    "before_reasoning", "before_reasoning_iteration", "after_reasoning", "after_all_tool_calls",
    "after_response", "on_init", "on_exit",
)  # fmt: skip
KINDS = ("nodes", "edges", "actions", "tools")


@dataclass(slots=True)
class Count:
    """How many of the expected things we have exactly, and how many we have beyond them."""

    matched: int = 0
    expected: int = 0
    extra: int = 0

    def add(self, other: "Count") -> None:
        """Adds the counts of another file."""
        self.matched += other.matched
        self.expected += other.expected
        self.extra += other.extra

    @property
    def is_exact(self) -> bool:
        """True if nothing is missing and nothing is extra."""
        return self.matched == self.expected and not self.extra


@dataclass(slots=True)
class Report:
    """The result for a directory."""

    files: int = 0
    counts: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})
    differences: list[Json] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """True if every count is exact."""
        return all(count.is_exact for count in self.counts.values())

    def to_json(self) -> Json:
        """The report as plain values."""
        counts = {
            kind: {"matched": c.matched, "expected": c.expected, "extra": c.extra}
            for kind, c in self.counts.items()
        }
        return {"files": self.files, **counts, "differences": self.differences}


def check_directory(directory: Path, limit: int = 50) -> Report:
    """Compares every `X.agent` that has an expected file; keeps the first `limit` differences.

    The expected file is `X.agent.json`, `X.agentjson.json` or `X.agent.agentjson.json`, beside the
    script or in a sibling folder `expected`.

    Raises:
        UserError: the directory holds no pair, or an expected file is not AgentJSON.
    """
    if not directory.is_dir():
        raise UserError(f"{directory}: not a directory")
    report = Report()
    for script in sorted(directory.glob("*.agent")):
        expected = expected_file(script)
        if expected is not None:
            _compare_file(script, expected, report, limit)
    if not report.files:
        raise UserError(f"{directory}: no X.agent with X.agent.json or X.agentjson.json beside it")
    return report


def expected_file(script: Path) -> Path | None:
    """The official output for a script, where there is one."""
    names = (
        f"{script.name}.json", f"{script.stem}.agentjson.json", f"{script.name}.agentjson.json",
    )  # fmt: skip
    folders = (script.parent, script.parent.parent / "expected")
    candidates = (folder / name for folder in folders for name in names)
    return next((path for path in candidates if path.is_file()), None)


def _compare_file(script: Path, expected: Path, report: Report, limit: int) -> None:
    try:
        official = json.loads(expected.read_text("utf-8"))
        wanted = facts(official)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{expected}: not AgentJSON ({error!r})") from None
    report.files += 1
    try:
        ours = facts(to_agentjson(compile_script(script)))
    except UserError as error:
        ours = {kind: {} for kind in KINDS}
        report.differences.append({"file": script.name, "kind": "compile", "ours": str(error)})
    for kind in KINDS:
        count, differences = compare(wanted[kind], ours[kind])
        report.counts[kind].add(count)
        for item in differences:
            if len(report.differences) < limit:
                report.differences.append({"file": script.name, "kind": kind, **item})


def compare(wanted: dict[str, Any], ours: dict[str, Any]) -> tuple[Count, list[Json]]:
    """Compares two sets of facts by key, then by value."""
    count = Count(expected=len(wanted), extra=len(ours.keys() - wanted.keys()))
    differences: list[Json] = []
    for key, value in wanted.items():
        if key not in ours:
            differences.append({"item": key, "expected": value, "ours": None})
        elif ours[key] == value:
            count.matched += 1
        else:
            differences += _field_differences(key, value, ours[key])
    for key in ours.keys() - wanted.keys():
        differences.append({"item": key, "expected": None, "ours": ours[key]})
    return count, differences


def _field_differences(key: str, wanted: Any, ours: Any) -> list[Json]:
    if not (isinstance(wanted, dict) and isinstance(ours, dict)):
        return [{"item": key, "expected": wanted, "ours": ours}]
    return [
        {"item": key, "field": name, "expected": wanted.get(name), "ours": ours.get(name)}
        for name in sorted(wanted.keys() | ours.keys())
        if wanted.get(name) != ours.get(name)
    ]


def facts(document: Json) -> dict[str, dict[str, Any]]:
    """Nodes, edges, actions and tools of an AgentJSON document, each under a readable key."""
    found: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    version = document["agent_version"]
    seen: Counter[str] = Counter()

    def put(kind: str, key: str, value: Any) -> None:
        seen[f"{kind} {key}"] += 1
        repeat = seen[f"{kind} {key}"]
        found[kind][key if repeat == 1 else f"{key} #{repeat}"] = value

    for node in version["nodes"]:
        name = node["developer_name"]
        put("nodes", name, {"type": node["type"], "is_entry": name == version["initial_node"]})
        for action in node.get("action_definitions", []):
            put("actions", f"{name}.{action['developer_name']}", action)
        for tool in node.get("tools", []):
            put("tools", f"{name}.{tool['name']}", tool)
            if node["type"] == "router":
                put("edges", f"{name} -> {tool['target']} (tool)", {"when": tool.get("enabled")})
            elif tool.get("type") == "supervision" or tool["target"] == "__end_session_action__":
                put("edges", f"{name} -> {tool['target']} (call)", {"when": tool.get("enabled")})
        _put_handoffs(node, put)
    return found


def _put_handoffs(node: Json, put: Any) -> None:
    """Hand-offs, each with the condition under which `next_topic` is set for it."""
    name = node["developer_name"]
    for phase in _HANDOFF_FIELDS:
        gate = None
        for action in node.get(phase) or []:
            if action["type"] == "handoff":
                key = f"{name} -> {action['target']} ({phase})"
                put("edges", key, {"when": action.get("enabled"), "set_when": gate})
            elif any("AgentScriptInternal_next_topic" in u for u in action["state_updates"]):
                gate = action.get("enabled")
