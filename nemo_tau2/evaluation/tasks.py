"""What a row's task says: the note stored with the row, or the packaged task file it was made from.

The note is written after the episode; no policy ever sees it.
"""

import json
from dataclasses import dataclass
from typing import Any

from nemo_tau2.evaluation.known_issues import PACKAGED
from nemo_tau2.evaluation.transcript import Row

NOTED = ("gold_actions", "null_solvable", "scenario")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What the user simulator was told.

    `texts` is all of it, unless it is not `complete`; `own` what the user knows of themselves; `unknown`
    what they do not know.
    """

    texts: tuple[str, ...]
    own: str = ""
    unknown: str = ""
    complete: bool = True

    @classmethod
    def of(cls, row: Row) -> "Scenario | None":
        """None where the row does not say."""
        told = (row.get("task") or {}).get("scenario")
        if isinstance(told, dict):
            texts = tuple(str(text) for text in told.values() if text)
            return cls(
                texts, str(told.get("known_info") or ""), str(told.get("unknown_info") or "")
            )
        return _of_specification(row.get("verifier_metadata") or {})


def noted(row: Row) -> Row:
    """The row with a full `task` note where one can be had: rows of older runs have none or half of it."""
    note = row.get("task") or {}
    sha = (row.get("verifier_metadata") or {}).get("tasks_file_sha256")
    sha = sha or (row.get("provenance") or {}).get("tasks_file_sha256")
    domain = row.get("domain")
    if all(key in note for key in NOTED) or not _packaged(domain, sha):
        return row
    from nemo_tau2.rollouts.notes import task_note  # half a second of imports, rarely needed

    found = task_note(domain, str(row["task_id"]), None)
    return row | {"task": found | note}


def _packaged(domain: Any, sha: Any) -> bool:
    return sha is not None and PACKAGED.get(domain) == sha


def _of_specification(metadata: dict[str, Any]) -> Scenario | None:
    """A row made from a specification: its questions and its customer. Facts drawn from the
    specification's records are not in the row, so what it says is not all."""
    if "customer" not in metadata:
        return None
    told = [metadata["customer"], metadata.get("questions"), metadata.get("persona")]
    texts = tuple(json.dumps(part, ensure_ascii=False) for part in told)
    return Scenario(texts, complete=False)
