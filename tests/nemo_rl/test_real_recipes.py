"""`nemo-tau2 train --check` on every recipe that ships, and what it says about broken ones."""

import re

import pytest

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl.recipes import FOLDER, copy, names

pytestmark = pytest.mark.nemo_rl

ROW = '{"responses_create_params": {"input": []}, "agent_ref": {"name": "tau2_airline_agent"}}\n'


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(ROW)
    return [f"data.{split}.data_path={path}" for split in ("train", "validation")]


@pytest.fixture
def check(nemo_rl_root):
    from nemo_tau2.nemo_rl.check import check

    return check


@pytest.mark.parametrize("name", names())
def test_every_recipe_passes(check, tmp_path, name):
    kinds = {"koa": "service_routed_agent", "pivot": "pivot_turn_agent"}
    agent = kinds.get(name.partition("_")[0], "tau2_airline_agent")
    path = tmp_path / "rows.jsonl"
    path.write_text(ROW.replace("tau2_airline_agent", agent))
    files = [f"data.{split}.data_path={path}" for split in ("train", "validation")]
    assert agent in check(FOLDER / f"{name}.yaml", files).lines["agents"]


KOA = [name for name in names() if name.startswith(("koa", "pivot"))]


@pytest.mark.parametrize("name", KOA)
def test_the_koa_recipes_say_what_the_paper_says(nemo_rl_root, name):
    """K21-K28, read from the recipe as NeMo RL's loader resolves it."""
    from nemo_tau2.nemo_rl.check import load
    from nemo_tau2.nemo_rl.launch import prepare

    prepare()
    config = load(FOLDER / f"{name}.yaml", [])
    grpo, loss = config["grpo"], config["loss_fn"]
    assert grpo["use_dynamic_sampling"] and not grpo["async_grpo"]["enabled"]
    assert grpo["adv_estimator"]["name"] == "rloo_norm" and grpo["adv_estimator"]["clip"] == 50
    assert grpo["invalid_tool_call_advantage"] == grpo["malformed_thinking_advantage"] == -1.0
    assert grpo["overlong_filtering"] and grpo["seq_logprob_error_threshold"] == 2
    assert loss["force_on_policy_ratio"] and loss["reference_policy_kl_penalty"] == 0
    assert not loss["token_level_loss"] and not loss["sequence_level_importance_ratios"]
    assert loss["use_importance_sampling_correction"]
    assert loss["truncated_importance_sampling_type"] == "tis"
    batch = grpo["num_prompts_per_step"] * grpo["num_generations_per_prompt"]
    assert config["policy"]["train_global_batch_size"] == batch
    assert config["policy"]["generation"]["colocated"]["enabled"]


def test_a_copied_recipe_passes_where_it_lies(check, data, tmp_path):
    files = copy("grpo_qwen3_8b_kl_0.05", tmp_path / "mine")
    assert "lr 1e-06, KL 0.05" in check(files[0], data).lines["optimizer"]


SMOKE = FOLDER / "smoke_qwen3_0.6b.yaml"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("grpo.adv_estimator.name=gpto", "grpo.adv_estimator.name is 'gpto': choose one of grpo, "),
        ("++grpo.adv_estimator.lamda=1", "unknown option lamda: the known ones are gamma, lambda"),
        ("grpo.adv_estimator.gamma=2", "gamma is 2: it must be a number from 0 to 1"),
        ("++nemo_tau2.single_control=x", "nemo_tau2.single_control: Extra inputs"),
        ("policy.train_global_batch_size=7", "7 must divide num_prompts_per_step"),
        ("grpo.num_generations_per_prompt=1", "set at least 2"),
        ("grpo.max_val_samples=5", "grpo.max_val_samples must be null"),
        ("grpo.async_grpo.enabled=true", "colocated.enabled: false with vLLM"),
        ("policy.megatron_cfg.tensor_model_parallel_size=3", "must divide the 2 training GPUs"),
        ("policy.megatron_cfg.context_parallel_size=2", "make_sequence_length_divisible_by is 1"),
        (
            "~policy.megatron_cfg.activation_checkpointing",
            "activation_checkpointing: Field required",
        ),
        ("grpo.no_such_key=1", "a new key needs ++key=value"),
        ("++data_plane.enabled=true", "set data_plane.enabled: false"),
        ("env.should_use_nemo_gym=false", "env.should_use_nemo_gym is not true"),
        ("data.train.data_path=/nowhere.jsonl", "no file /nowhere.jsonl; make rows of τ²"),
        (
            "data.train.data_path=d/airline_train.jsonl",
            "make it with `nemo-tau2 data tau2 --domain airline --split train --output d/airline_train.jsonl`",
        ),
        ("policy.model_name=/nowhere", "holds no config.json"),
        ("~env.nemo_gym.policy_model", None),
        (
            "++env.nemo_gym.tau2_airline.resources_servers.tau2_bench.user_model_server="
            "{type: responses_api_models, name: usr_model}",
            "refers to responses_api_models 'usr_model'",
        ),
        ("++env.nemo_gym.config_paths=[/no/config.yaml]", "no file /no/config.yaml"),
    ],
)
def test_a_wrong_value_is_answered_with_its_key_and_the_fix(check, data, override, message):
    if message is None:
        check(SMOKE, [*data, override])  # vllm_model_for_training.yaml defines it
        return
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        check(SMOKE, [*data, override])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: a row must be a JSON object"),
        ('{"agent_ref": {"name": "tau2_airline_agent"}}', "line 2: no responses_create_params"),
        (ROW.replace("airline", "retail"), "line 2: its agent_ref names 'tau2_retail_agent'"),
    ],
)
def test_a_row_that_could_not_run_is_named(check, tmp_path, line, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(ROW + line)
    with pytest.raises(UserError, match=re.escape(message)):
        check(SMOKE, [f"data.train.data_path={path}"])


@pytest.mark.parametrize("text", ["a: [", "- 1", "a: ${no.such}", "defaults: nowhere.yaml"])
def test_a_file_that_is_no_recipe_is_answered_with_one_line(check, tmp_path, text):
    path = tmp_path / "r.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"r\.yaml: ") as caught:
        check(path, [])
    assert "\n" not in str(caught.value)


def test_a_checkpoint_ranked_by_validation_needs_a_validation_step(check, data):
    recipe = FOLDER / "grpo_qwen3_8b.yaml"
    with pytest.raises(UserError, match=r"save_period 7 must be a multiple of grpo.val_period 5"):
        check(recipe, [*data, "checkpointing.save_period=7"])


def test_the_command_exits_2_with_one_line(nemo_rl_root, capsys):
    from nemo_tau2.cli.main import main

    with pytest.raises(SystemExit) as exited:
        main(["train", "--check", "--config", str(SMOKE), "++grpo.adv_estimator.k=1"])
    assert exited.value.code == 2
    assert capsys.readouterr().err.startswith(
        "nemo-tau2: grpo.adv_estimator: gtpo_hybrid: unknown option k"
    )
