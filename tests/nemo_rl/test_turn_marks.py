"""Which reward belongs to which generated message, without NeMo RL or torch."""

import pytest

from nemo_tau2.nemo_rl.actor import _turns, group_hash, group_id, is_masked


def result(trained, rewards, indices=None, items=6, **more):
    """A postprocessed verify response: items at `trained` carry generated tokens."""
    output = [{"generation_str": ""} if i in trained else {} for i in range(items)]
    return {
        "response": {"output": output},
        "turn_rewards": rewards,
        "turn_output_indices": indices,
    } | more


def test_rewards_follow_the_output_indices():
    given = result({1, 4}, [0.5, 0.25], [1, 4], turn_tiers=["gold_exact", "error"])
    assert _turns(given, {}, 2, False) == ([0.5, 0.25], ["gold_exact", "error"])


def test_without_indices_the_order_decides():
    assert _turns(result({0, 2}, [1, 0]), {}, 2, False) == ([1.0, 0.0], ["message", "message"])


def test_a_turn_without_tokens_is_skipped():
    assert _turns(result({0, 4}, [1.0, 9.0, 0.5], [0, 2, 4]), {}, 2, False)[0] == [1.0, 0.5]


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (result({0, 2}, [1.0]), 2),
        (result({0, 2}, [1.0, 2.0, 3.0]), 2),
        (result({0, 2}, [1.0, 2.0], [0, 4]), 2),
        (result({0, 2}, [1.0, 2.0], [0, 0]), 2),
        (result({0, 2}, [1.0, 2.0], [0]), 2),
        (result({0, 2}, [1.0, 2.0], [0, 2]), 3),
        (result({0, 2}, [1.0, 2.0], [0, 2], turn_tiers=["error"]), 2),
    ],
)
def test_counts_that_do_not_match_raise_but_not_for_a_masked_rollout(given, count):
    with pytest.raises(ValueError, match=r"row 3 .*turn_rewards.*generated"):
        _turns(given, {"_rowidx": 3}, count, False)
    assert _turns(given, {"_rowidx": 3}, count, True) == ([0.0] * count, ["message"] * count)


def test_a_reward_that_is_no_number_raises():
    with pytest.raises(ValueError, match="must be finite"):
        _turns(result({0}, [float("nan")]), {}, 1, False)


@pytest.mark.parametrize(
    ("full_result", "row", "expected"),
    [
        ({"group_id": "a", "domain": "x", "task_id": "1"}, {}, "a"),
        ({}, {"verifier_metadata": {"group_id": 7}}, "7"),
        ({"domain": "airline", "task_id": "3"}, {}, "airline/3"),
        ({}, {"verifier_metadata": {"domain": "retail", "task_id": 0}}, "retail/0"),
        ({"task_id": "3"}, {}, None),
    ],
)
def test_group_id(full_result, row, expected):
    assert group_id(full_result, row) == expected


def test_the_group_hash_is_three_small_numbers_and_stable():
    numbers = group_hash("airline/0")
    assert len(numbers) == 3 and all(0 <= n < 65536 for n in numbers)
    assert numbers == group_hash("airline/0") != group_hash("airline/1")


def test_either_mask_flag_masks():
    assert is_masked({"mask_sample": True}) and is_masked(
        {"instance_config": {"mask_sample": True}}
    )
    assert not is_masked({"instance_config": None})
