"""Responses-API items as chat messages and tools, and a chat answer as items."""

import json
from typing import Any

from nemo_tau2.episodes import Item


def chat_messages(items: list[Item]) -> list[dict[str, Any]]:
    """Responses-API items as chat messages; the calls of one turn share one assistant message."""
    messages: list[dict[str, Any]] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            messages.append(
                {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
            )
        elif kind == "message":
            messages.append({"role": item["role"], "content": _text(item["content"])})
    return messages


def chat_tools(tools: list[Item] | None) -> list[dict[str, Any]] | None:
    """Responses-API function tools in chat format."""
    keys = ("name", "description", "parameters")
    return [
        {"type": "function", "function": {key: tool[key] for key in keys}} for tool in tools or []
    ]


def output_items(answer: dict[str, Any]) -> list[Item]:
    """A chat answer as Responses-API output items."""
    items: list[Item] = []
    if answer.get("content"):
        content = [{"type": "output_text", "text": answer["content"], "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": content})
    for index, call in enumerate(answer.get("tool_calls") or []):
        function = call["function"]
        arguments = function.get("arguments")
        items.append(
            {
                "type": "function_call",
                "call_id": call.get("id") or f"call_{index}",
                "name": function.get("name"),
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            }
        )
    return items or [{"type": "message", "role": "assistant", "content": []}]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)
