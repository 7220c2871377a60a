"""A script that plays a task's gold actions and then says goodbye: enough to cross every domain."""

import json
from typing import Any

from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.tasks import load_tasks


def script(spec: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    task = load_tasks(spec["domain"]).get(spec["task_id"])
    actions = [a for a in task.evaluation_criteria.actions or [] if a.requestor == "assistant"]
    mine = [message for message in messages if message["role"] == "assistant"]
    made = sum(len(message.get("tool_calls") or []) for message in mine)
    if made < len(actions):
        action = actions[made]
        function = {"name": action.name, "arguments": json.dumps(action.arguments)}
        return {
            "content": None,
            "tool_calls": [{"id": f"call_{len(messages)}", "function": function}],
        }
    said = sum(bool(message.get("content")) for message in mine)
    waits = spec["domain"] == "telecom" and said < 4  # the user has steps of his own to take
    return {"content": "Please check your phone." if waits else "Goodbye.", "tool_calls": []}


def row(domain: str, task_id: str) -> dict[str, Any]:
    shared = load_domain(domain)
    spec = {"nemo_tau2": {"domain": domain, "task_id": task_id, "trial": 0, "seed": 0}}
    tools = [
        {"type": "function", "strict": None, **schema["function"]}
        for schema in shared.sides["assistant"].schemas
    ]
    system = {"type": "message", "role": "system", "content": shared.system_prompt}
    return {
        "responses_create_params": {
            "input": [system],
            "tools": tools,
            "metadata": {"extra_body": json.dumps(spec)},
        },
        "agent_ref": {"type": "responses_api_agents", "name": f"tau2_{domain}_agent"},
        "verifier_metadata": {"domain": domain, "task_id": task_id},
    }
