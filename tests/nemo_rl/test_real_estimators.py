"""Estimators through NeMo RL's own factory, batches through its own containers and loop functions."""

from types import SimpleNamespace

import pytest
from batches import EXPECTED, OUTCOMES, REWARDS, batch, compute, per_turn

pytestmark = pytest.mark.nemo_rl


def master_config(block, **more):
    """What the factory reads of a MasterConfig, in the version's own types."""
    from nemo_rl.algorithms import advantage_estimator

    loss = SimpleNamespace(
        use_kl_in_reward=False, reference_policy_kl_penalty=0.0, reference_policy_kl_type="k3"
    )
    if hasattr(advantage_estimator, "AdvEstimatorConfig"):
        grpo = SimpleNamespace(adv_estimator=advantage_estimator.AdvEstimatorConfig(**block))
    else:  # v0.7.0 has dicts
        grpo = {"adv_estimator": block}
    return SimpleNamespace(grpo=grpo, loss_fn=loss, nemo_tau2={}, data_plane=None, **more)


def create(block, **more):
    from nemo_rl.algorithms import grpo

    return grpo._create_advantage_estimator(master_config(block, **more))


def batched(given):
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict

    return BatchedDataDict(given)


@pytest.mark.parametrize("name", ["mt_grpo", "gtpo", "gtpo_hybrid", "turn_rloo"])
def test_worked_example_through_the_factory(hooks, name):
    import torch

    given = batched(batch())
    advantages = compute(create({"name": name}), given)
    assert advantages.dtype == torch.float32 and advantages.device.type == "cpu"
    assert advantages.is_contiguous() and 0 not in advantages.stride()
    for got, want in zip(per_turn(advantages, given), EXPECTED[name], strict=True):
        assert got == pytest.approx(want, abs=1e-4)


def test_grpo_reads_nemo_rls_own_flags(hooks):
    given = batched(batch())
    off = {"name": "grpo", "use_leave_one_out_baseline": False, "normalize_rewards": True}
    for got, want in zip(
        per_turn(compute(create(off), given), given), EXPECTED["grpo"], strict=True
    ):
        assert got == pytest.approx(want, abs=1e-4)
    # Others of a success: [0, 1, 0], mean 1/3, sample std 1/√3.
    turns = per_turn(compute(create({"name": "grpo"}), given), given)
    assert turns[0][0] == pytest.approx((1 - 1 / 3) * 3**0.5, abs=1e-4)
    centred = {"name": "grpo", "normalize_rewards": False}
    turns = per_turn(compute(create(centred), given), given)
    assert turns[0][0] == pytest.approx(2 / 3) and turns[1][0] == pytest.approx(-2 / 3)


@pytest.mark.parametrize("leave_one_out", [True, False])
def test_grpo_agrees_with_nemo_rl_where_nemo_rl_is_right(hooks, leave_one_out):
    """Binary rewards, equal prompts, nothing filtered: NeMo RL's own estimator is the oracle."""
    import torch
    from nemo_rl.algorithms.advantage_estimator import GRPOAdvantageEstimator

    outcomes = [1.0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1]
    given = batched(batch([[0.0, 0.0]] * 12, outcomes, ["a"] * 6 + ["b"] * 6))
    flags = {"use_leave_one_out_baseline": leave_one_out, "normalize_rewards": True}
    ours = per_turn(compute(create({"name": "grpo", **flags}), given), given)
    try:
        upstream = GRPOAdvantageEstimator(SimpleNamespace(**flags), None)
    except TypeError:
        upstream = GRPOAdvantageEstimator(flags, None)  # v0.7.0 reads a dict
    prompts = torch.tensor([[0]] * 6 + [[1]] * 6)
    theirs = upstream.compute_advantage(prompts, given["total_reward"], torch.ones(12, 3))
    assert [turns[0] for turns in ours] == pytest.approx(theirs[:, 0].tolist(), abs=1e-4)


@pytest.mark.parametrize(
    "mark",
    [
        lambda b: b["truncated"].__setitem__(3, True),
        lambda b: b["loss_multiplier"].__setitem__(3, 0.0),
        lambda b: b["message_log"][3][0].__setitem__("nemo_tau2_masked", True),
    ],
    ids=["truncated", "loss_multiplier", "masked by the actor"],
)
@pytest.mark.parametrize("name", ["rloo_norm", "gtpo_hybrid", "reinforce_plus_plus"])
def test_left_out_rollouts_enter_no_statistic_and_get_zeros(hooks, mark, name):
    """Four rollouts with one left out give the other three what three rollouts alone give."""
    import torch

    given = batched(batch())
    mark(given)
    advantages = compute(create({"name": name, "minus_baseline": True}), given)
    three = batched(batch(REWARDS[:3], OUTCOMES[:3]))
    alone = compute(create({"name": name, "minus_baseline": True}), three)
    assert (advantages[3] == 0).all()
    assert torch.allclose(advantages[:3, : alone.shape[1]], alone, atol=1e-6)


def test_traps_of_float32_residue_and_the_lone_success(hooks):
    for outcomes in ([0.0] + [0.95] * 7, [1.0] + [0.3] * 7, [1.0, 0, 0, 0]):
        given = batched(batch([[0.0]] * len(outcomes), outcomes))
        for name in ("grpo", "rloo_norm", "mt_grpo", "gtpo_hybrid", "turn_rloo"):
            assert compute(create({"name": name}), given).abs().max() <= 10


def test_metrics_are_there_to_log(hooks):
    estimator = create({"name": "gtpo_hybrid"})
    compute(estimator, batched(batch()))
    found = estimator.last_metrics
    assert found["nemo_tau2/reward/tau2_airline_agent"] == 0.5
    assert "nemo_tau2/gtpo_hybrid/mean_advantage/read_only" in found
    assert {"nemo_tau2/gtpo_hybrid/mismatches", "nemo_tau2/gtpo_hybrid/dead_turns"} <= found.keys()


def test_the_sync_loop_logs_them(hooks):
    import torch
    from nemo_rl.algorithms import grpo

    compute(create({"name": "gtpo"}), batched(batch()))
    logged = []
    logger = SimpleNamespace(
        log_metrics=lambda m, step, prefix: logged.append((m, step, prefix)),
        log_histogram=lambda *_: None,
    )
    grpo._log_mixed_rewards_and_advantages_information(
        logger=logger,
        total_steps=4,
        metrics={},
        baseline=torch.zeros(2),
        advantages=torch.zeros(2, 3),
    )
    assert logged[0][0]["nemo_tau2/reward/tau2_airline_agent"] == 0.5 and logged[0][1:] == (
        5,
        "train",
    )


def test_message_logs_survive_every_container(hooks, tmp_path):
    """slice, select_indices, from_batches, Ray's pickle; then the estimator still finds its turns."""
    import ray
    import torch
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict

    both = BatchedDataDict.from_batches(
        [batched(batch()), batched(batch(groups=["airline/1"] * 4))]
    )
    both = both.select_indices([4, 5, 6, 7, 0, 1, 2, 3]).slice(0, 8)
    both = ray.cloudpickle.loads(ray.cloudpickle.dumps(both))
    torch.save(both, tmp_path / "buffer.pt")
    both = torch.load(tmp_path / "buffer.pt", weights_only=False)
    got = per_turn(compute(create({"name": "gtpo"}), both), both)
    for turns, want in zip(got, EXPECTED["gtpo"] * 2, strict=True):
        assert turns == pytest.approx(want, abs=1e-4)


def test_the_replay_buffer_keeps_turn_rewards(hooks):
    import inspect

    from nemo_rl.algorithms import async_utils

    cls = async_utils.ReplayBuffer.__ray_metadata__.modified_class
    known = inspect.signature(cls.__init__).parameters
    options = {"max_size": 4, "drop_incomplete_targets_on_restore": False}
    buffer = cls(**{k: v for k, v in options.items() if k in known})
    item = {"batch": batched(batch()), "rollout_metrics": {}, "timestamp": 0.0}
    add = buffer.add if hasattr(buffer, "add") else buffer.push_with_wait_signal  # v0.7.0
    given = {"trajectory": item, "weight_version": 0, "target_weight_version": 0}
    known = inspect.signature(add).parameters
    add(**{k: v for k, v in given.items() if k in known})
    sampled = buffer.sample(num_prompt_groups=1, current_weight_version=0, max_age_steps=1)
    (trajectory,) = sampled["trajectories"]
    assert trajectory["batch"]["message_log"][0][1]["turn_reward"] == 0.3


def test_flattening_for_training_ignores_the_marks(hooks):
    from nemo_rl.algorithms.grpo import add_grpo_token_loss_masks_and_generation_logprobs
    from nemo_rl.data.llm_message_utils import batched_message_log_to_flat_message

    given = batched(batch())
    add_grpo_token_loss_masks_and_generation_logprobs(given["message_log"])
    flat, _ = batched_message_log_to_flat_message(
        given["message_log"], pad_value_dict={"token_ids": 0}
    )
    got = compute(create({"name": "gtpo"}), given, mask=flat["token_loss_mask"].float())
    for turns, want in zip(per_turn(got, given), EXPECTED["gtpo"], strict=True):
        assert turns == pytest.approx(want, abs=1e-4)


def test_penalties_overwrite_and_clipping_comes_last(hooks):
    """NeMo RL's own functions in the order of its loop, on our advantages."""
    from nemo_rl.algorithms import grpo
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict

    given = batched(batch())
    given["message_log"][0][3]["is_invalid_tool_call"] = True
    data = BatchedDataDict({"advantages": compute(create({"name": "gtpo"}), given)})
    grpo._apply_message_level_advantage_penalties(data, given["message_log"], -5.0, None)
    turns = per_turn(data["advantages"], given)
    assert turns[0] == pytest.approx([0.6379, -5.0, -0.7071], abs=1e-4)


def test_a_clip_that_weakens_a_penalty_is_warned_of(hooks):
    block = {"name": "gtpo"}
    config = master_config(block)
    keys = {"advantage_clip_low": -2.0, "invalid_tool_call_advantage": -5.0}
    config.grpo.update(keys) if isinstance(config.grpo, dict) else vars(config.grpo).update(keys)
    from nemo_rl.algorithms import grpo

    with pytest.warns(UserWarning, match=r"advantage_clip_low -2.0 raises"):
        grpo._create_advantage_estimator(config)


@pytest.mark.parametrize("leave_one_out_std", [[0.0, 0.577, 0.577, 0.577]])
def test_dynamic_sampling_keeps_the_lone_success(hooks, leave_one_out_std):
    """One informative and one uniform group: the first stays whole, the second goes."""
    import contextlib

    import torch
    from nemo_rl.algorithms import grpo

    outcomes = [1.0, 0, 0, 0, 1, 1, 1, 1]
    given = batched(batch([[0.0]] * 8, outcomes, ["a"] * 4 + ["b"] * 4))
    std = torch.tensor(leave_one_out_std + [0.0] * 4)
    settings = {
        "use_dynamic_sampling": True,
        "num_prompts_per_step": 1,
        "num_generations_per_prompt": 4,
        "dynamic_sampling_max_gen_batches": 3,
        "deduplicate_multimodal_data": False,
    }
    as_object = SimpleNamespace(**settings)
    config = SimpleNamespace(grpo=as_object if hasattr(grpo, "RewardPenaltyConfig") else settings)
    timer = SimpleNamespace(time=lambda name: contextlib.nullcontext())
    kept, complete, _, _ = grpo.dynamic_sampling(given, std, torch.zeros(8), 1, config, timer)
    assert complete and kept["filtered_reward"].tolist() == [1.0, 0, 0, 0]
    assert {log[0]["nemo_tau2_group"] for log in kept["message_log"]} == {"a"}
    # The unfiltered rewards stay in total_reward, so the estimator must use its own argument.
    advantages = compute(
        create({"name": "rloo_norm"}),
        kept,
        rewards=kept["filtered_reward"],
        mask=torch.tensor([[0, 0, 1.0]] * 4),
    )
    assert advantages[:, 2].tolist() == pytest.approx([1.0, -0.57735, -0.57735, -0.57735], abs=1e-4)
