"""The numbers of every environment's verify response, and the graded means, without NeMo RL."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.nemo_rl.actor import MASKED
from nemo_tau2.nemo_rl.validation import FIELDS, graded_metrics


def numbers(response):
    """The fields that NeMo RL averages (rollouts.py: bool, int and float at the top level)."""
    return {key for key, value in response.items() if isinstance(value, bool | int | float)}


def judged(episode):
    async def run():
        await episode.seed()
        return await episode.verify()

    return asyncio.run(run())


def test_a_tau2_response_has_the_fields_and_its_seconds():
    from nemo_tau2.tau2.domains import load_domain
    from nemo_tau2.tau2.episode import Tau2Episode
    from nemo_tau2.tau2.tasks import load_tasks
    from nemo_tau2.tau2.users.scripted import ScriptedUser

    task = load_tasks("airline").get("0")
    episode = Tau2Episode(load_domain("airline"), task, ScriptedUser(task))
    assert numbers(judged(episode)) == {*FIELDS, "seconds"}


@pytest.mark.parametrize("mode", ["routed", "flat", "pivot", "sandbox"])
def test_a_response_of_the_service_environments_has_the_fields_and_its_seconds(mode):
    from nemo_tau2.simulation.factory import new_episode, plain_row

    row = plain_row("bank_cards", mode, 1)
    if mode == "pivot":
        tool = new_episode(plain_row("bank_cards", "flat", 1)).tools()[0]["name"]
        row["verifier_metadata"] |= {"withheld_tool": tool, "prefix": []}
    assert numbers(judged(new_episode(row))) == {*FIELDS, "seconds"}


def test_a_response_of_a_tool_server_has_the_fields_and_its_seconds():
    pytest.importorskip("nemo_gym")
    from nemo_tau2.gym.tool_server import ToolServerEpisode

    class Peer:
        name = "workplace_assistant"

        async def post(self, path, *_):
            return {"reward": 1.0} if path == "/verify" else {}

    row = {"responses_create_params": {"input": []}}
    episode = ToolServerEpisode(row, Peer(), SimpleNamespace(call_timeout_s=1.0))
    assert numbers(judged(episode)) == {*FIELDS, "seconds"}


def test_a_rollout_that_failed_before_it_was_judged_has_the_fields():
    from nemo_tau2.gym.rows import failure_row
    from nemo_tau2.tau2.episode import StopReason

    assert numbers(failure_row({}, StopReason.WORLD_FAILED, "down")) == set(FIELDS)


ROLLOUTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.booleans()), min_size=1, max_size=12
)


@given(ROLLOUTS)
def test_the_graded_mean_is_nemo_rls_mean_corrected_by_the_masked_share(rollouts):
    """Another way to the same number: masked rollouts have reward 0, so mean / (1 - share masked)."""
    rewards = np.array([0.0 if masked else quarter / 4 for _, quarter, masked in rollouts])
    masked = np.array([masked for *_, masked in rollouts])
    found = graded_metrics(
        {
            "total_reward": rewards,
            "message_log": [[{MASKED: bool(flag)}] for flag in masked],
            "agent_ref": [{"name": name} for name, *_ in rollouts],
        }
    )
    agents = np.array([name for name, *_ in rollouts])
    groups = {f"{name}/": agents == name for name in set(agents)} | {"": np.full(len(agents), True)}
    assert found.pop("masked/mean") == pytest.approx(masked.mean())
    assert set(found) == {f"{name}graded_reward/mean" for name in groups}
    for name, rows in groups.items():
        graded = 1 - masked[rows].mean()
        expected = rewards[rows].mean() / graded if graded else 0.0
        assert found[f"{name}graded_reward/mean"] == pytest.approx(expected)
