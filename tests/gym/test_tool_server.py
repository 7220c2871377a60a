"""A NeMo Gym tool server behind the dialogue agent: `workplace_assistant`, not copied, not changed."""

import asyncio
import json
import os
from pathlib import Path

import pytest
from nemo_gym import PARENT_DIR

from nemo_tau2.gym.http import CallFailed
from nemo_tau2.gym.launch import LaunchConfig, Scripted, launch
from nemo_tau2.gym.rollouts import run_rows
from nemo_tau2.gym.tool_server import ToolServerConfig, ToolServerEpisode
from tests.conftest import REPO
from tests.gym import workplace

CALL = {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 1}'}
TEXT = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Done."}],
}


class Server:
    """Stands where the tool server's peer is; answers from a table, remembers what it was asked."""

    name = "tools"

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    async def post(self, path, body, timeout_s):
        self.asked.append((path, body))
        answer = self.answers.get(path.strip("/"), {})
        if isinstance(answer, Exception):
            raise answer
        return answer


def play(server, *generations, stop_reason=None):
    params = {"input": [], "tools": [{"type": "function", "name": "add"}]}
    row = {"responses_create_params": params, "id": 3, "ground_truth": []}
    config = ToolServerConfig(
        host="127.0.0.1", port=1, entrypoint="app.py", name="t", domain="agent",
        tool_server={"type": "resources_servers", "name": "tools"},
    )  # fmt: skip
    episode = ToolServerEpisode(row, server, config)

    async def all_of_it():
        seen = [await episode.seed()]
        for output in generations:
            seen.append(await episode.step(output))
        return seen, await episode.verify(stop_reason)

    return asyncio.run(all_of_it())


def test_calls_go_to_their_routes_and_verify_scores():
    server = Server(add={"output": "2"}, verify={"reward": 1.0})
    seen, verdict = play(server, [CALL], [TEXT])
    assert seen[1].items == [{"type": "function_call_output", "call_id": "c", "output": "2"}]
    assert [path for path, _ in server.asked] == ["/seed_session", "/add", "/verify"]
    assert server.asked[1][1] == {"a": 1}
    assert seen[2].done and verdict["stop_reason"] == "agent_stop"
    assert verdict["reward"] == 1.0
    assert verdict["turn_rewards"] == [0.0, 1.0]
    assert verdict["turn_tiers"] == ["tool_call", "message"]


def test_token_ids_are_not_sent_to_the_tool_server():
    server = Server(add={"output": "2"}, verify={"reward": 0.0})
    play(server, [CALL | {"generation_token_ids": [1, 2], "prompt_token_ids": [3]}], [TEXT])
    sent = server.asked[-1][1]["response"]["output"]
    assert [item["type"] for item in sent] == ["function_call", "function_call_output", "message"]
    assert "token_ids" not in json.dumps(sent)


@pytest.mark.parametrize(
    "call",
    [
        CALL | {"name": "verify"},
        CALL | {"name": "../seed_session"},
        CALL | {"name": None},
        CALL | {"arguments": "{"},
        CALL | {"arguments": "[1]"},
        CALL | {"arguments": '{"a": "' + "x" * 70_000 + '"}'},
        CALL | {"arguments": "[" * 60_000},
    ],
)
def test_what_is_no_call_of_a_tool_of_the_row_never_leaves(call):
    server = Server(verify={"reward": 0.0})
    seen, verdict = play(server, [call], [TEXT])
    assert [path for path, _ in server.asked] == ["/seed_session", "/verify"]
    assert seen[1].items[0]["output"].startswith("Error")
    assert verdict["turn_tiers"][0] == "error" and verdict["num_tool_errors"] == 1


@pytest.mark.parametrize("broken", ["seed_session", "add", "verify"])
def test_a_server_that_breaks_masks_the_rollout(broken):
    server = Server(
        **{"add": {"output": "2"}, "verify": {"reward": 1.0}, broken: CallFailed("gone")}
    )
    generations = (
        [] if broken == "seed_session" else [[CALL]] if broken == "add" else [[CALL], [TEXT]]
    )
    _, verdict = play(server, *generations)
    assert verdict["mask_sample"] and verdict["reward"] == 0.0
    assert (verdict["stop_reason"], verdict["blame"]) == ("world_failed", "harness")


@pytest.mark.parametrize("answer", [{}, {"reward": None}, {"reward": "1"}, {"reward": True}])
def test_a_verdict_without_a_number_is_the_servers_failure(answer):
    _, verdict = play(Server(verify=answer), [TEXT])
    assert verdict["mask_sample"]


def test_a_spent_budget_is_scored_on_the_state_reached():
    _, verdict = play(
        Server(add={"output": "2"}, verify={"reward": 1.0}), [CALL], stop_reason="max_turns"
    )
    assert (verdict["stop_reason"], verdict["reward"]) == ("max_turns", 1.0)


@pytest.mark.gym
def test_workplace_assistant_end_to_end(tmp_path, monkeypatch):
    """Its own rows: the reference calls get 1, no call gets 0, a mistake corrected gets 1."""
    paths = [str(REPO), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    examples = Path(PARENT_DIR, "resources_servers/workplace_assistant/data/example.jsonl")
    rows = [json.loads(line) for line in examples.read_text(encoding="utf-8").splitlines()]
    played = [workplace.tell(row, row["ground_truth"]) for row in rows]
    played += [workplace.tell(row, []) for row in rows]
    wrong = {"name": "email_reply_email", "arguments": '{"email_id": "none", "body": "x"}'}
    played.append(workplace.tell(rows[0], [wrong, *rows[0]["ground_truth"]]))

    config = LaunchConfig(
        environment="workplace_sandbox",
        policy=Scripted(script="tests.gym.workplace:script"),
        run_dir=tmp_path,
    )

    async def collect(urls):
        return {index: row async for index, row in run_rows(enumerate(played), urls, 8)}

    with launch(config) as gym:
        results = asyncio.run(collect(gym.agent_urls))
    assert [results[i]["reward"] for i in range(len(played))] == [1.0] * 5 + [0.0] * 5 + [1.0]
    assert not any(row["mask_sample"] for row in results.values())
    for row in results.values():
        turns = [row["response"]["output"][i] for i in row["turn_output_indices"]]
        assert all(item["generation_token_ids"] for item in turns)
