"""Stored rollouts: a JSONL file that never loses a finished row.

A row is written with one `write` and flushed as soon as its episode ends. A torn last line (power loss,
a full disk) is cut off when the file is opened again.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nemo_tau2.errors import UserError

RowKey = tuple[str, str, int]
"""(domain, task id, trial)."""


def row_key(row: dict[str, Any]) -> RowKey:
    """What makes a rollout the same rollout, of a stored row or of a planned one."""
    source = row if "task_id" in row else row["verifier_metadata"]
    return (source["domain"], source["task_id"], int(source["trial"]))


def part_of(row: dict[str, Any]) -> str:
    """What a row, stored or planned, is reported under: its domain, and its mode where there are several.

    Modes of one Agent Script environment have different tasks and mean different things by success.
    """
    metadata = row.get("verifier_metadata")
    mode = metadata.get("mode") if isinstance(metadata, dict) else None
    return f"{row_key(row)[0]} {mode}" if mode else row_key(row)[0]


class RolloutStore:
    """Args:
    directory: where `rollouts.jsonl` is; made if absent.
    resume: keep the finished rows of an earlier run; without it an existing file is refused.
    """

    def __init__(self, directory: Path, resume: bool = False):
        self.path = directory / "rollouts.jsonl"
        if self.path.exists() and self.path.stat().st_size and not resume:
            raise UserError(
                f"{self.path} exists; add --resume to finish it or give another --output"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _cut_torn_line(self.path)
            self.finished: set[RowKey] = {
                row_key(row) for row in read_rows(self.path) if not _retry(row)
            }
            self._drop_retried()
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise UserError(f"{directory}: {error.strerror}; give a writable --output") from None

    def add(self, row: dict[str, Any]) -> None:
        """Appends one row. Raises UserError when the disk refuses it; earlier rows stay whole."""
        line = (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
        end = self._file.seek(0, os.SEEK_END)
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(None, "the disk took only a part of a row")
        except OSError as error:
            os.ftruncate(self._file.fileno(), end)
            raise UserError(
                f"{self.path}: {error.strerror}; finished rows are kept, make room and run with --resume"
            ) from None
        self.finished.add(row_key(row))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every stored row, in the order of writing."""
        return read_rows(self.path)

    def close(self) -> None:
        self._file.close()

    def _drop_retried(self) -> None:
        """Rewrites the file without the rows that will be played again."""
        if not any(map(_retry, read_rows(self.path))):
            return
        kept = self.path.with_suffix(".kept")
        with kept.open("w", encoding="utf-8") as file:
            for row in read_rows(self.path):
                if not _retry(row):
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
        kept.replace(self.path)


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file; none where there is no file.

    Raises UserError naming the line that is no row.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8", "surrogatepass"))
                domain, task_id, _ = row_key(row)
                if not (isinstance(domain, str) and isinstance(task_id, str)):
                    raise TypeError("names are texts")
            except (ValueError, KeyError, TypeError, RecursionError):
                raise UserError(
                    f"{path}, line {number}: not a rollout row; remove the line"
                ) from None
            yield row


def _retry(row: dict[str, Any]) -> bool:
    """Infrastructure failures are played again on resume: no finished row is lost by that."""
    return bool(row.get("mask_sample"))


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("r+b") as file:
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)
