"""Rows to one HTML file: the template with its styles and scripts, and the rows as packed data.

Data are gzip, base64, one `<script type="application/gzip">` block each: `index` (what the overview and
the table need), `r<i>` per rollout, `g<j>` per group (the credit of its rollouts), `c<n>` per distinct
prompt. Base64 cannot close a block, and the page's policy admits its own script and style by hash and
nothing else: neither a word of a row nor an address can run or load anything.
"""

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from nemo_tau2.credit.options import DEFAULTS
from nemo_tau2.errors import UserError
from nemo_tau2.evaluation import load
from nemo_tau2.evaluation.stored import Stored, row_files
from nemo_tau2.evaluation.tasks import noted
from nemo_tau2.evaluation.transcript import Finding
from nemo_tau2.report.viewer.credit import Credit, rollout_credit, tier_table
from nemo_tau2.report.viewer.records import context, rollout_view, table_line
from nemo_tau2.rollouts.store import read_rows

SCRIPTS = ("dom", "data", "charts", "overview", "table", "strips", "diff", "rollout", "main")
"""The page's JavaScript, one file each, in the order in which they are joined into one module."""


def write_viewer(rows_paths: Sequence[Path], out: Path, evaluation: dict | None = None) -> int:
    """Writes the page and returns its size in bytes.

    `rows_paths` are run folders or `rollouts.jsonl` files; groups never reach across files.
    `evaluation` is `nemo_tau2.evaluation.load(paths).as_dict()`, computed here where it is None.

    Raises UserError where there are no rows, a row is broken, or `out` cannot be written. The file
    appears whole or not at all.
    """
    rows_paths, out = [Path(path) for path in rows_paths], Path(out)
    evaluation = load(rows_paths).as_dict() if evaluation is None else evaluation
    blocks = _Blocks()
    for number, file in enumerate(row_files(rows_paths)):
        stored = Stored(file)
        for row in read_rows(file):
            try:
                blocks.add(noted(row), number, *stored.of(row))
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                where = f"{file}: task {row.get('task_id')}, trial {row.get('trial')}"
                raise UserError(
                    f"{where}: not a readable row ({type(error).__name__}: {error}); "
                    "docs/rollouts.md lists the fields"
                ) from None
    if not blocks.lines:
        raise UserError(f"{', '.join(map(str, rows_paths))}: no rollouts yet; finish the run first")
    return _write(out, blocks.finish(evaluation, [str(path) for path in rows_paths]))


@dataclass
class _Blocks:
    """The packed rows, gathered in one pass, and what the index is made of."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    packed: dict[str, str] = field(default_factory=dict)
    contexts: dict[str, int] = field(default_factory=dict)
    credit: Credit = field(default_factory=Credit)

    def add(
        self, row: dict[str, Any], file: int, found: list[Finding], blamed: Finding | None
    ) -> None:
        group = row.get("group_id") or f"{row['domain']}/{row['task_id']}"
        self.packed[f"r{len(self.lines)}"] = pack(rollout_view(row, found, blamed))
        line = table_line(row, found, blamed)
        self.lines.append(line | {"context": self._context(row)})
        self.credit.add(row, (file, str(group)))

    def finish(self, evaluation: dict[str, Any], sources: list[str]) -> dict[str, str]:
        """Name to packed block, the index first."""
        advantages = self.credit.advantages()
        for number, (_, members) in enumerate(self.credit.members().items()):
            strips = [rollout_credit(self.credit, advantages, i) for i in members]
            self.packed[f"g{number}"] = pack(strips)
            for i in members:
                self.lines[i]["group"] = number
        domains = sorted({line["domain"] for line in self.lines})
        parts = {d: [i for i, r in enumerate(self.lines) if r["domain"] == d] for d in domains}
        parts["overall"] = range(len(self.lines))
        index = {
            "sources": sources,
            "evaluation": evaluation,
            "estimators": list(advantages),
            "options": DEFAULTS,
            "tiers": {
                name: tier_table(self.credit, advantages, part) for name, part in parts.items()
            },
            "rollouts": self.lines,
        }
        return {"index": pack(index)} | self.packed

    def _context(self, row: dict[str, Any]) -> int:
        text = json.dumps(context(row))
        if text not in self.contexts:
            self.contexts[text] = len(self.contexts)
            self.packed[f"c{self.contexts[text]}"] = pack(context(row))
        return self.contexts[text]


def pack(value: Any) -> str:
    """JSON, gzip, base64. Numbers that JSON has no word for become text."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(value), parse_constant=str)
        text = json.dumps(finite, separators=(",", ":"), allow_nan=False)
    return b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode("ascii")


def asset(name: str) -> str:
    """One of the page's own files."""
    return (files("nemo_tau2.report.viewer") / "assets" / name).read_text(encoding="utf-8")


def _write(out: Path, blocks: dict[str, str]) -> int:
    style = asset("viewer.css")
    script = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    title = f"Rollouts: {out.stem}"
    head, tail = (
        Template(asset("page.html"))
        .substitute(
            title=escape(title),
            style=style,
            style_hash=_csp_hash(style),
            script=script,
            script_hash=_csp_hash(script),
        )
        .split("<!-- data -->")
    )
    partial = out.with_name(out.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.write(head)
            for name, text in blocks.items():
                file.write(f'<script type="application/gzip" id="{name}">{text}</script>\n')
            file.write(tail)
        partial.replace(out)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"{out}: {error.strerror}; give a path that can be written") from None
    return out.stat().st_size


def _csp_hash(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
