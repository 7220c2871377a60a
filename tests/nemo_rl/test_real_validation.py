"""What NeMo RL's own validation measures on our verify responses, and which names rank checkpoints."""

import re
from numbers import Real

import pytest
from validations import AIRLINE, MIXED, MIXED_GRADED, RETAIL, response, validate

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl.recipes import FOLDER

pytestmark = pytest.mark.nemo_rl

OURS = {AIRLINE: True, RETAIL: True}


def test_graded_means_leave_masked_rollouts_out(hooks, config, monkeypatch):
    metrics = validate(config, MIXED, monkeypatch)
    assert {k: metrics[k] for k in MIXED_GRADED} == pytest.approx(MIXED_GRADED)
    assert metrics["accuracy"] == pytest.approx(2.5 / 7)
    assert metrics[f"{AIRLINE}/reward/mean"] == pytest.approx(0.5)
    assert metrics[f"{AIRLINE}/mask_sample/mean"] == pytest.approx(1 / 3)


def test_an_environment_of_which_nothing_could_be_graded_has_the_metric_too(
    hooks, config, monkeypatch
):
    """A missing metric would end the run at its save."""
    metrics = validate(config, [(AIRLINE, response(0.0, masked=True))] * 2, monkeypatch)
    assert metrics[f"{AIRLINE}/graded_reward/mean"] == metrics["graded_reward/mean"] == 0.0
    assert metrics["masked/mean"] == 1.0


def unranked(name):
    """What NeMo RL logs and `train --check` does not offer."""
    return name.startswith("timing/") or name.endswith(("/histogram", "/full_result"))


@pytest.mark.parametrize("generations", [1, 2])
def test_the_names_that_the_check_knows_are_those_that_validation_produces(
    hooks, config, monkeypatch, generations
):
    from nemo_tau2.nemo_rl import compat
    from nemo_tau2.nemo_rl.validation import metric_names

    if generations > 1:
        if not compat.validation_percentiles():
            pytest.skip("v0.7.0 validates each prompt once")
        config.grpo.val_num_generations_per_prompt = generations
        # NeMo RL repeats the rows itself; the stand-in answers each repetition.
        monkeypatch.setattr(
            "nemo_rl.distributed.batched_data_dict.BatchedDataDict.repeat_interleave",
            lambda self, _: self,
        )
    rollouts = [pair for pair in MIXED if not pair[1]["mask_sample"]]
    produced = validate(config, rollouts, monkeypatch)
    names = metric_names(OURS, generations)
    assert len(names) == len(set(names))
    seconds = {n for n in produced if re.fullmatch(r"\w+/seconds/\w+", n) and not unranked(n)}
    assert len(seconds) == 10  # two agents, five statistics; a broken first rollout has none
    assert {n for n in produced if not unranked(n)} == set(names) | seconds
    assert all(isinstance(produced[name], Real) for name in names)


def test_they_are_there_when_a_broken_rollout_comes_first(hooks, config, monkeypatch):
    """NeMo RL takes an agent's fields from its first response."""
    from nemo_tau2.nemo_rl.validation import metric_names

    produced = validate(config, [*MIXED[::-1], MIXED[2]], monkeypatch)
    broken_first = validate(config, [MIXED[2], *MIXED], monkeypatch)
    assert set(metric_names(OURS)) <= set(broken_first)
    assert set(metric_names(OURS)) <= set(produced)
    assert f"{AIRLINE}/seconds/mean" not in broken_first


ROW = '{"responses_create_params": {"input": []}, "agent_ref": {"name": "%s"}}\n'


@pytest.fixture
def check(nemo_rl_root, tmp_path):
    """`train --check` of a recipe with three agents, validated on the airline's tasks."""
    from nemo_tau2.nemo_rl.check import check

    train, validation = tmp_path / "train.jsonl", tmp_path / "validation.jsonl"
    train.write_text(ROW % AIRLINE + ROW % RETAIL)
    validation.write_text(ROW % AIRLINE)
    files = [f"data.train.data_path={train}", f"data.validation.data_path={validation}"]

    def run(metric, *overrides):
        named = f'checkpointing.metric_name="{metric}"'
        return check(FOLDER / "grpo_qwen3_8b.yaml", [*files, named, *overrides])

    return run


@pytest.mark.parametrize(
    "name", ["accuracy", "graded_reward/mean", f"{AIRLINE}/reward/mean", "total_reward/median"]
)
def test_a_metric_that_validation_has_passes(check, name):
    assert not [note for note in check(f"val:{name}").notes if "metric_name" in note]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("acuracy", "did you mean val:accuracy?"),
        ("tau2_airlin_agent/reward/mean", f"did you mean val:{AIRLINE}/reward/mean?"),
        (
            f"{RETAIL}/reward/mean",
            "no validation of this recipe has it",
        ),  # trained on, not validated
        (f"{AIRLINE}/rewards/mean", f"did you mean val:{AIRLINE}/reward/mean?"),
        (f"{AIRLINE}/reward", "no validation of this recipe has it"),
        (f"{AIRLINE}/reward/histogram", "no validation of this recipe has it"),
        (f"{AIRLINE}/seconds/mean", "no validation of this recipe has it"),
        ("", "no validation of this recipe has it"),
    ],
)
def test_a_metric_that_no_validation_has_is_answered_with_the_valid_names(check, name, hint):
    with pytest.raises(UserError) as caught:
        check(f"val:{name}")
    message = str(caught.value)
    assert message.startswith(f"checkpointing.metric_name 'val:{name}': ") and "\n" not in message
    assert hint in message
    assert f"val:{AIRLINE}/{{reward,mask_sample,trial,num_turns," in message
    assert f"val:{AIRLINE}/graded_reward/mean" in message
    assert "{accuracy," in message


def test_a_training_metric_is_noted_not_checked(check):
    assert any("was not checked" in note for note in check("train:loss").notes)


def test_ranking_by_validation_needs_validation_data(check):
    with pytest.raises(UserError, match=r"ranks by validation, but there is no data.validation"):
        check("val:accuracy", "data.validation=null")


def test_the_command_exits_2_and_names_the_key(check, tmp_path, capsys):
    from nemo_tau2.cli.main import main

    files = [f"data.{s}.data_path={tmp_path}/{s}.jsonl" for s in ("train", "validation")]
    recipe = str(FOLDER / "grpo_qwen3_8b.yaml")
    override = 'checkpointing.metric_name="val:nobody/reward/mean"'
    with pytest.raises(SystemExit) as exited:
        main(["train", "--check", "--config", recipe, *files, override])
    assert exited.value.code == 2
    assert capsys.readouterr().err.startswith("nemo-tau2: checkpointing.metric_name 'val:nobody/")
