"""The NemoGym actor subclass against NeMo RL itself: what its messages carry and what survives."""

import os
from types import SimpleNamespace

import pytest
from batches import EXPECTED, OUTCOMES, REWARDS, compute, per_turn
from gym_results import Tokenizer, row, verify_response

pytestmark = pytest.mark.nemo_rl


def postprocess(result: dict, number: int = 0) -> dict:
    """Runs the subclass's postprocessing outside Ray, in either version's signature."""
    import inspect

    from nemo_rl.environments import nemo_gym

    actor = nemo_gym.NemoGym.__ray_metadata__.modified_class
    place = [c.__name__ for c in actor.__mro__].index("TurnCreditNemoGym")
    upstream = actor.__mro__[place + 1]
    names = inspect.signature(upstream._postprocess_nemo_gym_to_nemo_rl_result).parameters
    instance = object.__new__(actor)
    instance.cfg = {}
    first = [row(number, result["group_id"])] if "nemo_gym_row" in names else []
    return instance._postprocess_nemo_gym_to_nemo_rl_result(*first, result, Tokenizer())


def test_each_generated_message_gets_its_turn_reward(hooks):
    result = postprocess(verify_response([2, 3], [0.25, -0.5]))
    generated = [m for m in result["message_log"] if m["role"] == "assistant"]
    assert [m["turn_reward"] for m in generated] == [0.25, -0.5]
    assert all(type(m["turn_reward"]) is float for m in generated)
    assert [m["turn_tier"] for m in generated] == ["read_only", "read_only"]
    assert result["message_log"][0]["nemo_tau2_group"] == "airline/0"


def test_rollouts_of_a_task_group_together_though_the_user_opened_differently(hooks):
    """NeMo RL compares `input_message_log` tokens; the simulated user's first words are in the prompt."""
    import torch

    a, b, c = (
        postprocess(verify_response([2], [0.0], start=start, group=group))
        for start, group in [(100, "airline/0"), (555, "airline/0"), (100, "airline/1")]
    )
    prompts = [r["input_message_log"][0]["token_ids"] for r in (a, b, c)]
    assert torch.equal(prompts[0], prompts[1])
    assert not torch.equal(prompts[0], prompts[2])
    assert a["message_log"][0]["token_ids"].tolist() == [100, 7, 8]


def test_a_count_that_does_not_match_names_row_and_counts(hooks):
    broken = verify_response([2, 3], [0.25])
    with pytest.raises(ValueError, match=r"task '0'.*1 turn_rewards.*generated 2 messages"):
        postprocess(broken)


def test_an_empty_generation_is_a_turn_without_tokens(hooks):
    """The model server answers an overflown context with an empty message that has no ids."""
    result = verify_response([2, 3], [0.25, -0.5, 0.125])
    result["response"]["output"].append({"type": "message", "role": "assistant", "content": []})
    generated = [m for m in postprocess(result)["message_log"] if m["role"] == "assistant"]
    assert [m["turn_reward"] for m in generated] == [0.25, -0.5]


def test_a_rollout_that_failed_before_its_first_turn_does_not_end_the_run(hooks):
    failed = verify_response([], [], reward=0.0, mask_sample=True)
    result = postprocess(failed)
    assert [m["role"] for m in result["message_log"]] == ["user"]
    assert result["message_log"][0]["nemo_tau2_masked"] is True


def test_an_unmasked_rollout_without_generation_still_raises(hooks):
    with pytest.raises(ValueError, match="no generation data"):
        postprocess(verify_response([], []))


@pytest.fixture(scope="module")
def ray_cluster(nemo_rl_root, tmp_path_factory):
    """Ray whose workers see NeMo RL but not this package: the class must travel by value."""
    import ray

    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    path = os.pathsep.join([str(nemo_rl_root), os.path.dirname(__file__)])
    environment = {"env_vars": {"PYTHONPATH": path}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    yield ray
    ray.shutdown()
    os.chdir(before)


def serve(ray, results):
    """The installed actor class in a worker, its servers replaced by a helper that yields `results`."""
    from nemo_rl.environments import nemo_gym

    class Stored:
        def run_examples(self, examples, head_server_config):
            for example, result in zip(examples, results, strict=True):
                yield done((example, result))

    async def done(value):
        return value

    class WithStoredResults(nemo_gym.NemoGym.__ray_metadata__.modified_class):
        def serve(self):
            self.rch, self.rh, self.head_server_config = Stored(), object(), None
            self.rollout_max_attempts_to_avoid_lp_nan = 1

        def sees_the_package(self):
            import importlib.util

            return importlib.util.find_spec("nemo_tau2") is not None

    config = {"model_name": "m", "base_urls": [], "initial_global_config_dict": {}}
    actor = ray.remote(WithStoredResults).remote(config)
    assert not ray.get(actor.sees_the_package.remote())
    ray.get(actor.serve.remote())
    if hasattr(actor, "set_tokenizer"):
        ray.get(actor.set_tokenizer.remote(Tokenizer()))
    return actor


def test_round_trip_through_the_real_actor(hooks, ray_cluster):
    """The actor runs in a worker without this package; what it returns keeps its marks."""
    import inspect

    from nemo_rl.environments import nemo_gym

    ray = ray_cluster
    actor = serve(ray, [verify_response([2], [0.5]), verify_response([3], [-0.5], reward=0.0)])
    rows = [row(0), row(1)]
    if inspect.isasyncgenfunction(nemo_gym.NemoGym.__ray_metadata__.modified_class.run_rollouts):
        stream = actor.run_rollouts.options(num_returns="streaming").remote(rows, "timing")
        got = [ray.get(ref)[1] for ref in stream]
    else:
        got, _ = ray.get(actor.run_rollouts.remote(rows, Tokenizer(), "timing"))
    assert [r["message_log"][1]["turn_reward"] for r in got] == [0.5, -0.5]
    assert {r["message_log"][0]["nemo_tau2_group"] for r in got} == {"airline/0"}


def rollout(actor, rows):
    """NeMo RL's own rollout function for the sync loop, in either version: (input_ids, final batch)."""
    import torch
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict
    from nemo_rl.experience import rollouts

    run = (
        getattr(rollouts, "run_nemo_gym_rollout_sync", None) or rollouts.run_async_nemo_gym_rollout
    )
    generation = {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": None,
        "max_new_tokens": 64,
        "stop_strings": None,
        "stop_token_ids": None,
        "vllm_cfg": {"max_model_len": 64},
    }
    more = {"log_full_result_tables": False} if run.__name__ == "run_nemo_gym_rollout_sync" else {}
    result = run(
        policy_generation=SimpleNamespace(cfg=generation),
        input_batch=BatchedDataDict(
            {"extra_env_info": rows, "loss_multiplier": torch.ones(len(rows))}
        ),
        tokenizer=Tokenizer(),
        task_to_env={"nemo_gym": actor},
        generation_config=generation,
        **more,
    )
    return result.input_ids, result.final_batch


def test_from_the_actor_to_advantages(hooks, ray_cluster):
    """Two tasks; in the first, the worked example's rollouts and one that failed before its first turn.

    Every step is NeMo RL's: rollout function, its own baseline, factory, estimator call.
    """
    import torch
    from nemo_rl.algorithms import grpo
    from nemo_rl.algorithms.utils import calculate_baseline_and_std_per_prompt

    results = [
        verify_response([k + 1 for k in range(len(r))], r, reward=o, start=100 + i)
        for i, (r, o) in enumerate(zip(REWARDS, OUTCOMES, strict=True))
    ]
    results.append(verify_response([], [], reward=0.0, mask_sample=True))
    results += [verify_response([2], [0.5], reward=o, group="airline/1") for o in (1.0, 1.0)]
    rows = [row(i, result["group_id"]) for i, result in enumerate(results)]
    input_ids, batch = rollout(serve(ray_cluster, results), rows)

    baseline, _ = calculate_baseline_and_std_per_prompt(
        input_ids, batch["total_reward"], torch.ones(7), leave_one_out_baseline=False
    )
    assert baseline.tolist() == pytest.approx([0.4] * 5 + [1.0] * 2)

    config = SimpleNamespace(
        grpo={"adv_estimator": {"name": "gtpo_hybrid"}}, loss_fn=None, nemo_tau2={}
    )
    estimator = grpo._create_advantage_estimator(config)
    advantages = compute(estimator, batch)
    for got, want in zip(per_turn(advantages, batch), EXPECTED["gtpo_hybrid"], strict=False):
        assert got == pytest.approx(want, abs=1e-4)
    assert (advantages[4:] == 0).all()
    assert estimator.last_metrics["nemo_tau2/excluded_rollouts"] == 1
