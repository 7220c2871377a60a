"""The `adv_estimator` block and the `nemo_tau2` section of a recipe; no NeMo RL needed."""

import pytest

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl.config import estimator_of, parse_estimator, parse_section, stash

RECIPE = {
    "grpo": {
        "num_prompts_per_step": 4,
        "adv_estimator": {"name": "gtpo_hybrid", "lambda": 0.1, "normalize_rewards": True},
    },
    "policy": {"model_name": "m"},
}


def test_stash_leaves_nemo_rl_a_block_it_knows_and_the_input_alone():
    out = stash(RECIPE)
    assert out["grpo"]["adv_estimator"] == {"name": "grpo", "normalize_rewards": True}
    assert out["nemo_tau2"]["adv_estimator"]["lambda"] == 0.1
    assert out["grpo"]["num_prompts_per_step"] == 4 and out["policy"] is RECIPE["policy"]
    assert RECIPE["grpo"]["adv_estimator"]["name"] == "gtpo_hybrid" and "nemo_tau2" not in RECIPE
    assert estimator_of(out).options["lam"] == 0.1


@pytest.mark.parametrize("name", ["gdpo", "opd", "reinforce_plus_plus"])
def test_nemo_rls_other_estimators_stay_where_they_are(name):
    recipe = {"grpo": {"adv_estimator": {"name": name, "reward_weights": [1.0]}}}
    assert stash(recipe) == recipe
    assert not estimator_of(recipe).ours


def test_grpo_keeps_nemo_rls_meaning_and_default():
    assert parse_estimator({"name": "grpo"}).leave_one_out
    assert not parse_estimator({"name": "grpo", "use_leave_one_out_baseline": False}).leave_one_out
    assert (
        "leave_one_out=True, normalize=False"
        in parse_estimator({"name": "grpo", "normalize_rewards": False}).describe()
    )


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            {"name": "gpto"},
            "choose one of grpo, rloo_norm, mt_grpo, gtpo, gtpo_hybrid, turn_rloo, gdpo",
        ),
        (
            {"name": "gtpo", "gama": 1},
            "unknown option gama: the known ones are gamma, lambda, norm",
        ),
        ({"name": "mt_grpo", "mode": "max"}, "mode is 'max': choose one of sum, immediate"),
    ],
)
def test_a_wrong_block_is_refused(block, message):
    with pytest.raises(UserError, match=message):
        parse_estimator(block)


def test_the_section_knows_one_key():
    assert parse_section(None).single_controller == "refuse"
    with pytest.raises(
        UserError, match=r"nemo_tau2.single_controller: Input should be 'refuse' or"
    ):
        parse_section({"single_controller": "yes"})
    with pytest.raises(
        UserError, match=r"nemo_tau2.other: .*; the section knows single_controller"
    ):
        parse_section({"other": 1})
    with pytest.raises(UserError, match=r"configure the estimator under grpo.adv_estimator"):
        stash({"nemo_tau2": {"adv_estimator": {"name": "gtpo"}}})
