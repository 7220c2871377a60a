"""JSONL in and out: rows by line, with the place named when a line is none; files written whole."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nemo_tau2.errors import UserError

Row = dict[str, Any]


def read_jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    """(line number from 1, row). Raises UserError for a missing file or a line that is no object."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    raise UserError(f"{path}, line {number}: not JSON; one row per line") from None
                if not isinstance(row, dict):
                    raise UserError(f"{path}, line {number}: a row must be a JSON object")
                yield number, row
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UserError(f"{path}: cannot be read ({reason})") from None


def metadata_of(row: Row, where: str) -> Row:
    """`verifier_metadata` of a dataset row. Raises UserError where there is none."""
    metadata = row.get("verifier_metadata")
    if not isinstance(metadata, dict) or not isinstance(row.get("responses_create_params"), dict):
        raise UserError(
            f"{where}: no dataset row; make rows with `nemo-tau2 spec rows` or `nemo-tau2 data tau2`"
        )
    return metadata


def case_of(row: Row, metadata: Row) -> tuple[str, str, str]:
    """What is split between training and validation: (agent, domain, scenario or task)."""
    agent = (row.get("agent_ref") or {}).get("name")
    case = metadata.get("scenario_id") or metadata.get("task_id")
    return (str(agent), str(metadata.get("domain")), str(case))


def write_lines(files: dict[Path, Iterable[str]]) -> None:
    """Writes each file's lines (ending in a newline): all of the files, or none. Raises UserError."""
    parts = {path: path.with_name(path.name + ".partial") for path in files}
    path = None
    try:
        for path, lines in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with parts[path].open("w", encoding="utf-8") as file:
                file.writelines(lines)
        for path, part in parts.items():
            part.replace(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give a writable --output") from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
