"""A graph or a tool as a cache key: by identity, since neither ever changes."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ById:
    """Args: the thing; two keys are equal when they hold the same object."""

    value: Any

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.value is other.value
