"""Stand-ins for signatures that later NeMo RL versions have (issues and pull requests in docs/nemo_rl.md).

Each replaces one thing in the tree at hand by what the newer version does there.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from batches import EXPECTED, batch, compute, per_turn
from pydantic import BaseModel

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl.config import Estimator, estimator_of, stash
from nemo_tau2.nemo_rl.rollouts import from_batch, group_rows

pytestmark = pytest.mark.nemo_rl


@pytest.fixture
def gtpo(nemo_rl_root):
    from nemo_tau2.nemo_rl.config import parse_estimator
    from nemo_tau2.nemo_rl.estimators import TurnCredit

    return TurnCredit(parse_estimator({"name": "gtpo"}))


def test_literal_estimator_names_never_see_ours():
    """PR #3773: `name` is a Literal and MasterConfig is validated before the factory runs."""

    class AdvEstimator(BaseModel, extra="allow"):
        name: Literal["grpo", "gdpo", "opd", "reinforce_plus_plus"] = "grpo"

    class Grpo(BaseModel, extra="allow"):
        adv_estimator: AdvEstimator

    class Master(BaseModel, extra="allow"):
        grpo: Grpo

    recipe = {
        "grpo": {"adv_estimator": {"name": "gtpo_hybrid", "gamma": 0.5, "minus_baseline": True}}
    }
    master = Master(**stash(recipe))
    assert master.grpo.adv_estimator.name == "grpo" and master.grpo.adv_estimator.minus_baseline
    assert (
        estimator_of(master).name == "gtpo_hybrid" and estimator_of(master).options["gamma"] == 0.5
    )


def test_valid_mask_leaves_rollouts_out(gtpo):
    """A float [B] that folds every mask; None by default; weights count as valid."""
    import torch

    given = batch()
    masked = compute(gtpo, given, valid_mask=torch.tensor([1.0, 0.5, 1.0, 0.0]))
    assert (masked[3] == 0).all()
    assert torch.equal(compute(gtpo, given, valid_mask=None), compute(gtpo, given))
    given["truncated"][3] = True
    assert torch.equal(masked, compute(gtpo, given))


def test_unknown_keyword_arguments_are_accepted(gtpo):
    compute(gtpo, batch(), something_new=1, sample_mask=None)


def test_advantage_result_is_returned_where_it_exists(gtpo, monkeypatch):
    """PR #3512: AdvantageResult(advantages, returns, metrics)."""
    from nemo_rl.algorithms import advantage_estimator

    @dataclass
    class AdvantageResult:
        advantages: Any
        returns: Any = None
        metrics: dict | None = None

    monkeypatch.setattr(advantage_estimator, "AdvantageResult", AdvantageResult, raising=False)
    given = batch()
    result = compute(gtpo, given)
    assert per_turn(result.advantages, given)[3] == pytest.approx([-0.8982], abs=1e-4)
    assert result.metrics == gtpo.last_metrics


def test_group_indices_instead_of_prompt_tokens(nemo_rl_root):
    """Newer SingleControllers pass prompt_ids as [N, 1] group numbers; a dict for repeated_batch."""
    import torch

    rewards = torch.tensor([[0.5, float("nan")], [0.25, 1.0]])
    columns = {"nemo_tau2_turn_rewards": rewards, "nemo_tau2_excluded": torch.zeros(2, 1)}
    mask = torch.tensor([[0, 1, 1, 0, 0], [1, 0, 1, 1, 1.0]])
    found = from_batch(columns, mask, torch.tensor([[7], [7]]))
    assert found.groups == [0, 0] and found.turn_rewards == [[0.5], [0.25, 1.0]]
    assert [s.tolist() for s in found.spans] == [[[1, 3]], [[0, 1], [2, 5]]]
    assert group_rows(torch.tensor([4, 4, 9])) == [0, 0, 1]


def test_sharding_by_group_changes_nothing(gtpo):
    """Advantage workers get whole groups."""
    import torch

    both = batch(groups=["a", "a", "b", "b"])
    whole = compute(gtpo, both)
    halves = []
    for rows in ([0, 1], [2, 3]):
        part = {
            k: [v[i] for i in rows] if isinstance(v, list) else v[rows] for k, v in both.items()
        }
        halves.append(
            torch.nn.functional.pad(a := compute(gtpo, part), (0, whole.shape[1] - a.shape[1]))
        )
    assert torch.allclose(whole, torch.cat(halves))


def test_workers_are_refused_for_estimators_that_need_the_batch():
    from nemo_tau2.nemo_rl.hooks import refuse

    config = {"grpo": {"adv_estimator": {"name": "gdpo"}}, "async_rl": {"num_advantage_workers": 2}}
    with pytest.raises(UserError):
        refuse(config | {"nemo_tau2": {"single_controller": "experimental"}})
    assert not Estimator("reinforce_plus_plus").group_local and Estimator("opd").group_local


def test_a_spinup_of_another_name_still_gets_our_actor(hooks):
    """`build_nemo_gym_actors` reads the same module global as `spinup_nemo_gym_actor`."""
    from nemo_rl.environments import nemo_gym

    build = eval("lambda: NemoGym", vars(nemo_gym))
    assert any(
        c.__name__ == "TurnCreditNemoGym" for c in build().__ray_metadata__.modified_class.__mro__
    )


def test_an_actor_with_more_arguments_is_passed_them(nemo_rl_root):
    from nemo_tau2.nemo_rl import actor

    class Newer:
        def _postprocess_nemo_gym_to_nemo_rl_result(
            self, nemo_gym_row, nemo_gym_result, tokenizer, *, extra
        ):
            assert extra == "x"
            for item in nemo_gym_result["response"]["output"]:
                item["generation_str"] = ""
            import torch

            user = {"role": "user", "token_ids": torch.tensor([1])}
            log = [
                user,
                {
                    "role": "assistant",
                    "token_ids": torch.tensor([2]),
                    "generation_logprobs": torch.zeros(1),
                },
            ]
            return {
                "message_log": log,
                "input_message_log": log[:1],
                "full_result": nemo_gym_result,
            }

    Newer.__module__ = "nemo_rl.environments.nemo_gym"
    fake = SimpleNamespace(
        __ray_metadata__=SimpleNamespace(modified_class=Newer),
        _default_options={"max_restarts": -1},
    )
    subclass = actor.subclass(fake).__ray_metadata__.modified_class
    result = {
        "response": {"output": [{"generation_token_ids": [2]}]},
        "turn_rewards": [0.5],
        "group_id": "g",
    }
    out = object.__new__(subclass)._postprocess_nemo_gym_to_nemo_rl_result(
        {"_rowidx": 0}, result, None, extra="x"
    )
    assert out["message_log"][1]["turn_reward"] == 0.5


def test_the_factory_may_be_absent_from_single_controllers_setup(hooks, monkeypatch):
    """Newer setups import it inside a function."""
    import sys

    from nemo_tau2.nemo_rl import compat

    monkeypatch.setitem(sys.modules, compat.SC_SETUP, SimpleNamespace(__name__=compat.SC_SETUP))
    assert all(module.__name__ != compat.SC_SETUP for module, _ in compat.factory_bindings())


def test_expected_values_are_those_of_the_worked_example(gtpo):
    given = batch()
    for got, want in zip(per_turn(compute(gtpo, given), given), EXPECTED["gtpo"], strict=True):
        assert got == pytest.approx(want, abs=1e-4)
