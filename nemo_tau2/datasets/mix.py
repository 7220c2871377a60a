"""Mixtures of environments (K7):

    D_train = Shuffle( (+)_e r_e * D_train^(e) )          (Koa eq. 4)

Rows of environment e are repeated r_e times and everything is shuffled afterwards. Validation files
are joined as they are: neither repeated nor shuffled. r_e is 1 where prefixes have multiplied an
environment already.
"""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nemo_tau2.datasets.files import case_of, metadata_of, read_jsonl
from nemo_tau2.errors import UserError
from nemo_tau2.simulation.scenario import require_one_row


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Environment(_Strict):
    """One part of a mixture."""

    name: str
    """How the part is called in messages."""
    train: Path
    """JSONL of its training rows; relative to the mixture file."""
    validation: Path | None = None
    """JSONL of its validation rows."""
    repeat: int = Field(1, ge=1)
    """r_e: how often each training row is taken."""


class Mix(_Strict):
    """A mixture file."""

    environments: tuple[Environment, ...] = Field(min_length=1)
    """The parts."""
    seed: int = 0
    """Seed of the shuffle."""


@dataclass
class Mixed:
    """What was mixed. `lines` holds each part's rows once; `order` says which to write."""

    lines: list[list[str]]
    order: list[tuple[int, int]]
    validation: list[str]
    counts: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Part → (training rows, repeat, validation rows)."""

    def train(self) -> Iterator[str]:
        """The shuffled training lines."""
        return (self.lines[part][line] for part, line in self.order)


def load_mix(path: Path) -> Mix:
    """Reads a mixture file. Raises UserError for anything wrong in it."""
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
        mix = Mix.model_validate(data)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML ({str(error).splitlines()[0]})") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "mixture"
        keys = ", ".join(Environment.model_fields)
        raise UserError(
            f"{path}: {place}: {first['msg']} (keys: environments, seed; of each environment: {keys})"
        ) from None
    names = [part.name for part in mix.environments]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{path}: two environments are called {twice!r}; give each its own name")
    return mix


def mix_rows(mix: Mix, folder: Path) -> Mixed:
    """Reads, checks, repeats and shuffles; `folder` is where relative paths start.

    Raises:
        UserError: a file cannot be read, holds no row, or holds rows of the other split; an
            environment with prefixes is repeated; a case is in training and in validation.
    """
    mixed = Mixed([], [], [])
    seen: dict[str, dict[tuple[str, str, str], str]] = {"train": {}, "validation": {}}
    groups: dict[str, Any] = {}
    for index, part in enumerate(mix.environments):
        lines, has_prefix = _read(folder / part.train, "train", seen["train"], groups)
        if has_prefix and part.repeat > 1:
            raise UserError(
                f"environment {part.name!r}: repeat is {part.repeat}, but prefixes have multiplied "
                "its rows already; set it to 1"
            )
        held: list[str] = []
        if part.validation is not None:
            held, _ = _read(folder / part.validation, "validation", seen["validation"], groups)
        mixed.lines.append(lines)
        mixed.order += [(index, line) for line in range(len(lines))] * part.repeat
        mixed.validation += held
        mixed.counts[part.name] = (len(lines), part.repeat, len(held))
    both = min(seen["train"].keys() & seen["validation"].keys(), default=None)
    if both is not None:
        raise UserError(
            f"{both[1]}: {both[2]} is in {seen['train'][both]} and in {seen['validation'][both]}; "
            "split by scenario, never by row"
        )
    random.Random(mix.seed).shuffle(mixed.order)
    return mixed


def _read(
    path: Path, split: str, cases: dict[tuple[str, str, str], str], groups: dict[str, Any]
) -> tuple[list[str], bool]:
    lines, has_prefix = [], False
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        metadata = metadata_of(row, where)
        other = {"train": "validation", "validation": "train"}[split]
        if metadata.get("split") == other and metadata.get("scenario_id"):
            raise UserError(f"{where}: a row of split {other!r} in a {split} file")
        if metadata.get("group_id") is not None:
            require_one_row(groups, metadata, where)
        has_prefix = has_prefix or bool(metadata.get("prefix"))
        cases.setdefault(case_of(row, metadata), path.name)
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    if not lines:
        raise UserError(f"{path}: no rows")
    return lines, has_prefix


def describe(counts: dict[str, tuple[int, int, int]]) -> Iterable[str]:
    """One line per part."""
    for name, (rows, repeat, held) in counts.items():
        yield f"{name}: {rows} rows x {repeat} = {rows * repeat}; {held} for validation"
