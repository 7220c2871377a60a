"""Hand-made rollout rows for the viewer's tests."""

import json

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\u2028\ud800"
"""Markup, a line separator and a lone surrogate, as a model may write them."""


def said(role, text):
    return {"type": "message", "role": role, "content": text}


def call(name, arguments, result, number=0):
    call_id = f"call_{number}"
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments},
        {"type": "function_call_output", "call_id": call_id, "output": result},
    ]


def row(task="1", trial=0, reward=1.0, masked=False, text="Done.", **fields):
    """Two turns: a read, then a message."""
    stop = "world_failed" if masked else "user_stop"
    output = [
        *call("get_user", json.dumps({"id": "u1"}), json.dumps({"name": "Ann", "age": 30})),
        said("assistant", text),
        said("user", "Thanks. ###STOP###"),
    ]
    return {
        "domain": "airline", "task_id": task, "group_id": f"airline/{task}", "trial": trial,
        "reward": reward, "stop_reason": stop, "mask_sample": masked,
        "turn_rewards": [reward, 0.0], "turn_tiers": ["gold_exact", "message"],
        "call_tiers": [["gold_exact"], []], "turn_output_indices": [0, 2],
        "num_turns": 2, "num_tool_calls": 1, "num_tool_errors": 0, "seconds": 1.5,
        "reward_info": {"breakdown": {"DB": reward}, "db_match": reward == 1.0, "db_diff": []},
        "user_calls": [], "failure": {"kind": stop, "message": "it broke"} if masked else None,
        "responses_create_params": {
            "input": [said("system", "Be kind."), said("user", "Hello.")],
            "tools": [{"name": "get_user", "description": "Looks up."}],
        },
        "response": {"output": output},
        "task": {"gold_actions": [], "null_solvable": False},
    } | fields  # fmt: skip


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path
