"""What a policy puts out in one generation, for policies that are not models: words or a call."""

import json
from typing import Any

from nemo_tau2.episodes import Item


def message(text: str) -> list[Item]:
    """A generation that says something."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return [{"type": "message", "role": "assistant", "content": content}]


def call(name: str, arguments: dict[str, Any]) -> list[Item]:
    """A generation that calls one tool."""
    return [
        {
            "type": "function_call",
            "call_id": f"call_{name}"[:40],
            "name": name,
            "arguments": json.dumps(arguments),
        }
    ]
