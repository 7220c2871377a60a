"""Copy-on-access worlds: one shared database per process, kilobytes per episode.

A `World` is a τ² environment over tables that share their rows with the process-wide database. A row
is copied when a tool first fetches it by key, which is the only way τ²'s tools get hold of a row they
change; scans (`.values()`, `.items()`) read shared rows. A world is not safe for concurrent calls.

`World.delta` says what changed, in JSON text, because τ² compares databases by their JSON (2 ≠ 2.0).
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from nemo_tau2.tau2.engine import DB, Environment, ToolCall, ToolMessage

Key = tuple[str, str, str]
"""(side, table, row): "agent" or "user", a field of that database, a key of the table ("" for all of it)."""

Delta = dict[Key, str | None]
"""What differs from the shared database: JSON text of each changed row, None for a deleted one."""

_ABSENT = object()


class CowTable(dict):
    """A table whose rows are shared with `base` until they are fetched.

    `copied` holds the keys that were fetched or written; only those can differ from `base`.
    """

    __slots__ = ("base", "copied")

    def __init__(self, base: dict):
        super().__init__(base)
        self.base = base
        self.copied: set = set()

    def __getitem__(self, key):
        if key in self.copied:
            return super().__getitem__(key)
        value = copy_plain(super().__getitem__(key))
        super().__setitem__(key, value)
        self.copied.add(key)
        return value

    def __setitem__(self, key, value):
        self.copied.add(key)
        super().__setitem__(key, value)

    def __delitem__(self, key):
        self.copied.add(key)
        super().__delitem__(key)

    def get(self, key, default=None):
        return self[key] if key in self else default  # noqa: SIM401 dict.get would not copy

    def pop(self, key, *default):
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def clear(self):
        for key in list(self):
            del self[key]

    def popitem(self):
        key = next(reversed(self))
        return key, self.pop(key)


def copy_plain(value: Any) -> Any:
    """Deep copy of pydantic models, dicts and lists of plain values, about 8 times faster than `deepcopy`.

    Anything else (sets, dates, enums …) goes to `deepcopy`. Rows of one database hold no references to
    each other, so no memo is kept.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {key: copy_plain(item) for key, item in value.items()}
    if kind is list:
        return [copy_plain(item) for item in value]
    if isinstance(value, BaseModel) and value.__pydantic_private__ is None:
        twin = kind.__new__(kind)
        object.__setattr__(twin, "__dict__", copy_plain(value.__dict__))
        object.__setattr__(twin, "__pydantic_fields_set__", set(value.__pydantic_fields_set__))
        object.__setattr__(twin, "__pydantic_extra__", copy_plain(value.__pydantic_extra__))
        object.__setattr__(twin, "__pydantic_private__", None)
        return twin
    return copy.deepcopy(value)


_ATOMS = frozenset({str, int, float, bool, type(None)})


def cow_database(base: DB) -> DB:
    """A database that shares the rows of `base`'s dict tables and copies everything else."""
    tables = {
        name: CowTable(value) if type(value) is dict else copy_plain(value)
        for name, value in base.__dict__.items()
    }
    return type(base).model_construct(_fields_set=set(base.__pydantic_fields_set__), **tables)


class World:
    """One episode's environment: executes calls, tells what changed.

    Args:
        environment: a τ² environment over databases made by `cow_database`.
        bases: the shared databases by side ("agent", and "user" where the user has tools).
    """

    def __init__(self, environment: Environment, bases: dict[str, DB]):
        self.environment = environment
        self._bases = bases

    def execute(
        self, actor: str, name: str, arguments: dict[str, Any], call_id: str = ""
    ) -> ToolMessage:
        """Runs one call as τ² does, on behalf of whoever sent the message.

        A tool that the actor does not have is τ²'s own error "Tool 'x' not found.". The arguments are
        copied first, so that a tool which stores them cannot be reached through the trajectory.
        """
        call = ToolCall.model_construct(
            id=call_id, name=name, arguments=copy_plain(arguments), requestor=actor
        )
        return self.environment.get_response(call)

    def initialise(self, task) -> None:
        """Puts the world into the task's initial state."""
        state = task.initial_state
        self.environment.set_state(
            initialization_data=state.initialization_data if state else None,
            initialization_actions=state.initialization_actions if state else None,
            message_history=[],
        )

    def delta(self) -> Delta:
        """What differs from the shared databases, as the JSON text τ² would hash."""
        changes: Delta = {}
        for side, base in self._bases.items():
            database = _toolkit(self.environment, side).db
            for table in type(base).model_fields:
                for row, new, old in _candidates(getattr(database, table), getattr(base, table)):
                    if not _same(new, old):
                        text, known = _json(new), _json(old)
                        if text != known:
                            changes[(side, table, str(row))] = text
        return changes


def _toolkit(environment: Environment, side: str):
    return environment.tools if side == "agent" else environment.user_tools


def _candidates(new: Any, old: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(row, value now, value in the base) for everything that may differ."""
    if isinstance(new, CowTable) and new.base is old:
        for row in new.copied:
            yield row, dict.get(new, row, _ABSENT), old.get(row, _ABSENT)
    elif isinstance(new, dict) and isinstance(old, dict):
        for row in new.keys() | old.keys():
            yield row, dict.get(new, row, _ABSENT), dict.get(old, row, _ABSENT)
    else:
        yield "", new, old


def _same(new: Any, old: Any) -> bool:
    """Same types and values throughout; cheap, and never true for values whose JSON differs."""
    kind = type(new)
    if kind is not type(old):
        return False
    if kind is float:
        return new == old and repr(new) == repr(old)
    if kind in _ATOMS:
        return new == old
    if kind is dict:
        return new.keys() == old.keys() and all(_same(item, old[key]) for key, item in new.items())
    if kind is list:
        return len(new) == len(old) and all(map(_same, new, old))
    if isinstance(new, BaseModel):
        return _same(new.__dict__, old.__dict__)
    return new is old or new == old


def _json(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    return json.dumps(_dump(value), sort_keys=True, default=str)


def _dump(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(warnings=False)
    if isinstance(value, list):
        return [_dump(item) for item in value]
    if isinstance(value, dict):
        return {key: _dump(item) for key, item in value.items()}
    return value
