"""Declared types and their JSON Schemas."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A declared type: `string`, `list[object]`, ..."""

    name: str
    is_list: bool = False

    def __str__(self) -> str:
        return f"list[{self.name}]" if self.is_list else self.name

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        item = dict(_JSON_TYPES.get(self.name.lower(), {"type": "string"}))
        return {"type": "array", "items": item} if self.is_list else item


_JSON_TYPES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "text": {"type": "string"},
    "id": {"type": "string"},
    "number": {"type": "number"},
    "currency": {"type": "number"},
    "integer": {"type": "integer"},
    "long": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "timestamp": {"type": "string", "format": "date-time"},
    "time": {"type": "string", "format": "time"},
}
