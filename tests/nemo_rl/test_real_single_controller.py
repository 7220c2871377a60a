"""The experimental column route, against NeMo RL's in-memory data plane.

main only: v0.7.0 has no SingleController.
"""

import asyncio
from types import SimpleNamespace

import pytest
from batches import EXPECTED, OUTCOMES, REWARDS, message_log, per_turn

pytestmark = pytest.mark.nemo_rl


@pytest.fixture
def controller(hooks):
    return pytest.importorskip("nemo_rl.algorithms.single_controller")


def create(**async_rl):
    from nemo_rl.algorithms import grpo

    config = SimpleNamespace(
        grpo={"adv_estimator": {"name": "gtpo_hybrid"}},
        loss_fn=None,
        nemo_tau2={"single_controller": "experimental"},
        data_plane={"enabled": True},
        async_rl=async_rl,
    )
    return grpo._create_advantage_estimator(config)


def record(group="airline/0", rewards=REWARDS, outcomes=OUTCOMES, truncated=()):
    from nemo_rl.experience.interfaces import Completion, PromptGroupRecord

    logs = [message_log(r, group, opening=i + 1) for i, r in enumerate(rewards)]
    completions = [
        Completion(message_log=log, env_extras={}, truncated=i in truncated, reward=o)
        for i, (log, o) in enumerate(zip(logs, outcomes, strict=True))
    ]
    prompt = [{"role": "user", "content": "", "token_ids": logs[0][0]["token_ids"]}]
    return PromptGroupRecord(
        prompt_idx=0,
        prompt=prompt,
        extra_env_info=None,
        metadata={},
        completions=completions,
        rollout_metrics={},
    )


async def through_the_data_plane(controller, estimator, records):
    """Producer → in-memory data plane → advantage stage; returns the written advantages and the logs."""
    from nemo_rl.algorithms.async_utils.replay_buffer import TQReplayBuffer
    from nemo_rl.data_plane.adapters.noop import NoOpDataPlaneClient

    client = NoOpDataPlaneClient()
    client.register_partition(partition_id="p", fields=[], num_samples=64, consumer_tasks=["train"])
    buffer = TQReplayBuffer(
        client, partition_id="p", pad_value_dict={"token_ids": 0, "input_ids": 0}
    )
    metas = []
    for rec in records:
        group = buffer.reserve(weight_version=0)
        group = await group if asyncio.iscoroutine(group) else group
        metas.append(await buffer.commit(group, rec, 0, 0))
    meta = metas[0]
    for other in metas[1:]:
        meta.sample_ids.extend(other.sample_ids)
        meta.sequence_lengths.extend(other.sequence_lengths)
        meta.tags.extend(other.tags)
    stage = object.__new__(controller.SingleControllerActor.__ray_metadata__.modified_class)
    stage._dp_client = client
    stage._advantage_cfg = controller.AdvantageConfig()
    stage._advantage_estimator = estimator
    stage._policy_logprobs_required = stage._reference_logprobs_required = False
    stage._master_config = SimpleNamespace(grpo=SimpleNamespace(seq_logprob_error_threshold=None))
    stage._step_log_dict = {"rewards": [], "masked_advantages": [], "seq_logprob_error_metrics": []}
    await stage._advantage_stage(meta)
    got = client.get_samples(
        sample_ids=meta.sample_ids, partition_id="p", select_fields=["advantages"]
    )
    advantages = got["advantages"]
    return advantages.to_padded_tensor(0.0) if advantages.is_nested else advantages


def test_turn_rewards_reach_the_estimator_as_columns(controller):
    rec = record()
    advantages = asyncio.run(through_the_data_plane(controller, create(), [rec]))
    logs = {"message_log": [c.message_log for c in rec.completions]}
    for got, want in zip(per_turn(advantages, logs), EXPECTED["gtpo_hybrid"], strict=True):
        assert got == pytest.approx(want, abs=1e-4)


def test_groups_are_told_apart_by_their_id(controller):
    """The simulated users' first words differ within a group and agree across the two."""
    both = [record("airline/0"), record("airline/1")]
    advantages = asyncio.run(through_the_data_plane(controller, create(), both))
    logs = {"message_log": [c.message_log for r in both for c in r.completions]}
    for got, want in zip(per_turn(advantages, logs), EXPECTED["gtpo_hybrid"] * 2, strict=True):
        assert got == pytest.approx(want, abs=1e-4)


def test_a_truncated_rollout_is_left_out(controller):
    advantages = asyncio.run(through_the_data_plane(controller, create(), [record(truncated={3})]))
    alone = asyncio.run(
        through_the_data_plane(
            controller, create(), [record(rewards=REWARDS[:3], outcomes=OUTCOMES[:3])]
        )
    )
    assert (advantages[3] == 0).all()
    assert advantages[:3].flatten().tolist() == pytest.approx(alone.flatten().tolist(), abs=1e-5)


def test_an_estimator_that_is_unpickled_installs_what_it_needs(controller):
    """The controller runs in an actor of its own, which gets the estimator as an argument."""
    from ray import cloudpickle

    from nemo_tau2.nemo_rl import hooks as module

    blob = cloudpickle.dumps(create())
    module.uninstall()
    assert not controller.AdvantageConfig().repeated_batch_fields
    cloudpickle.loads(blob)
    assert "nemo_tau2_turn_rewards" in controller.AdvantageConfig().repeated_batch_fields


def test_advantage_workers_may_shard_by_group(controller):
    """Later versions shard a batch by prompt group; ours need nothing beyond a group."""
    assert create(num_advantage_workers=2).config.group_local
