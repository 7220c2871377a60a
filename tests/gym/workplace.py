"""A script that makes the reference calls of a workplace row, one a turn, then says that it is done."""

import json


def tell(row, calls):
    body = json.dumps({"nemo_tau2": {"calls": calls}})
    params = row["responses_create_params"] | {"metadata": {"extra_body": body}}
    agent = {"type": "responses_api_agents", "name": "workplace_sandbox_agent"}
    return row | {"responses_create_params": params, "agent_ref": agent}


def script(note, messages):
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn >= len(note["calls"]):
        return {"content": "Done.", "tool_calls": []}
    call = {"id": f"call_{turn}", "type": "function", "function": note["calls"][turn]}
    return {"content": None, "tool_calls": [call]}
