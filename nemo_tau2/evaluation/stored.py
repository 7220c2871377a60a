"""Findings kept beside the rows: `findings.jsonl` (what the rules say) and `judged.jsonl` (what a judge says).

Both name a row by the hash of all it holds, so findings of rows that have changed are never used. Findings
of another version of the rules are not used either: they are made again, in memory. A judge's verdict
counts only where no rule has decided.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from nemo_tau2.errors import UserError
from nemo_tau2.evaluation.blame import PARTIES, RULES_VERSION, findings
from nemo_tau2.evaluation.transcript import DEFAULT, JUDGE, Finding, Row
from nemo_tau2.rollouts.store import read_rows

Judgement = tuple[list[Finding], Finding | None]
"""A row's patterns and whom its outcome is owed to."""


def row_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files of rows of run folders, of folders of those (as `eval` makes them) or of JSONL files.

    Raises UserError for a file that is not there or is given twice.
    """
    seen = set()
    for file in (file for path in paths for file in _files_of(Path(path))):
        if not (file.exists() or _planned_only(file)):
            raise UserError(f"{file}: no such file; give a rollout folder or a rollouts.jsonl")
        if file.resolve() in seen:
            raise UserError(f"{file}: given twice; give every run once")
        seen.add(file.resolve())
        yield file


def _files_of(path: Path) -> list[Path]:
    own = path / "rollouts.jsonl"
    if not path.is_dir():
        return [path]
    if own.exists():
        return [own]
    runs = {
        file.parent
        for name in ("rollouts.jsonl", "planned.json")
        for file in path.glob(f"*/{name}")
    }
    return [run / own.name for run in sorted(runs)] or [own]


def _planned_only(file: Path) -> bool:
    """Whether the file is of a run that was interrupted before its first row."""
    return file.name == "rollouts.jsonl" and file.with_name("planned.json").exists()


def beside(rows: Path, name: str) -> Path:
    """`findings.jsonl` beside `rollouts.jsonl`, `x.findings.jsonl` beside `x.jsonl`."""
    own = f"{name}.jsonl" if rows.name == "rollouts.jsonl" else f"{rows.stem}.{name}.jsonl"
    return rows.with_name(own)


def row_sha256(row: Row) -> str:
    """The hash a row is known by here."""
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()


class Stored:
    """What is stored beside one file of rows, and the rules for what is not.

    Args:
        rows: the file of rows.
        use_findings: False makes every finding again (the judge's verdicts stay).
    """

    def __init__(self, rows: Path, use_findings: bool = True):
        self.found = {}
        if use_findings:
            lines = _lines(beside(rows, "findings"), _finding_line)
            self.found = {sha: known for sha, version, known in lines if version == RULES_VERSION}
        self.verdicts = read_verdicts(beside(rows, "judged"))

    def of(self, row: Row) -> Judgement:
        """The row's patterns and blame: stored, or made now, with the judge's word where it counts."""
        if not self.found and not self.verdicts:
            return findings(row)
        sha = row_sha256(row)
        found, blamed = self.found.get(sha) or findings(row)
        verdict = self.verdicts.get(sha)
        if verdict and blamed is not None and blamed.by == DEFAULT:
            blamed = verdict
        return found, blamed


def reblame(rows: Path) -> dict[str, Any]:
    """Makes the findings of a file again, stores them, and returns what changed.

    Raises UserError where the file cannot be written.
    """
    path = beside(rows, "findings")
    try:
        earlier = {sha: known for sha, _, known in _lines(path, _finding_line)}
    except UserError:
        earlier = {}  # about to be replaced
    summary: dict[str, Any] = {"file": str(path), "rows": 0, "new": 0, "changed": 0}
    moves: Counter[str] = Counter()

    def lines() -> Iterable[str]:
        for row in read_rows(rows):
            sha, (found, blamed) = row_sha256(row), findings(row)
            summary["rows"] += 1
            if sha not in earlier:
                summary["new"] += 1
            elif _short(earlier[sha]) != _short((found, blamed)):
                summary["changed"] += 1
                moves[f"{_short(earlier[sha])[0]} -> {_short((found, blamed))[0]}"] += 1
            yield json.dumps(
                {
                    "domain": row.get("domain"),
                    "task_id": row.get("task_id"),
                    "trial": row.get("trial"),
                    "row_sha256": sha,
                    "rules_version": RULES_VERSION,
                    "patterns": [asdict(finding) for finding in found],
                    "blame": asdict(blamed) if blamed else None,
                }
            )

    _write(path, lines())
    return summary | {"moves": dict(moves.most_common())}


def read_verdicts(
    path: Path, prompt_version: str = "", model: str = "", undecided: bool = False
) -> dict[str, Finding]:
    """The judge's verdicts by row, the latest of each; of one prompt and model where they are given.

    `undecided` keeps those that decide nothing. Raises UserError where the file holds something else.
    """
    found = {}
    for sha, version, by, verdict in _lines(path, _verdict_line, torn=True):
        if (prompt_version in ("", version)) and (model in ("", by)):
            found[sha] = verdict
    return {sha: v for sha, v in found.items() if undecided or v.kind in PARTIES}


def open_verdicts(path: Path) -> TextIO:
    """The file of verdicts, to be appended to after its last whole line. Raises OSError."""
    if path.exists():
        with path.open("rb+") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)
    return path.open("a", encoding="utf-8")


def verdict_line(row: Row, prompt_version: str, model: str, verdict: Finding) -> str:
    """One line of `judged.jsonl`."""
    names = {key: row.get(key) for key in ("domain", "task_id", "trial")}
    made = {"prompt_version": prompt_version, "model": model, "verdict": asdict(verdict)}
    return json.dumps(names | {"row_sha256": row_sha256(row)} | made) + "\n"


def _short(known: Judgement) -> tuple[str, list[str]]:
    """What counts as a change: the party with its rule, and the kinds of patterns."""
    found, blamed = known
    owed = f"{blamed.kind}/{blamed.about}" if blamed else "nobody"
    return owed, sorted({f"{f.kind} {f.about}" for f in found})


def _lines(path: Path, read: Any, torn: bool = False) -> list[Any]:
    """The lines of a file; of one that is appended to, a `torn` last line does not count."""
    if not path.exists():
        return []
    found = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if torn and not line.endswith("\n"):
                break  # the process ended within its last write
            try:
                found.append(read(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise UserError(
                    f"{path}, line {number}: not as this program writes it; remove the file "
                    "(report --reblame and --judge-url make it again)"
                ) from None
    return found


def _finding_line(line: Any) -> tuple[str, str, Judgement]:
    blamed = _finding(line["blame"]) if line["blame"] else None
    return (
        line["row_sha256"],
        line["rules_version"],
        ([_finding(one) for one in line["patterns"]], blamed),
    )


def _verdict_line(line: Any) -> tuple[str, str, str, Finding]:
    verdict = _finding(line["verdict"] | {"by": JUDGE})
    return line["row_sha256"], line["prompt_version"], line["model"], verdict


def _finding(stored: Any) -> Finding:
    finding = Finding(**stored | {"calls": tuple(stored.get("calls") or ())})
    texts = (finding.kind, finding.about, finding.evidence, finding.tool, finding.by)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a finding is made of texts")
    return finding


def _write(path: Path, lines: Iterable[str]) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(line + "\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"{path}: {error.strerror}; findings are stored beside the rows") from None
