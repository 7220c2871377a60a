"""Reading a batch: spans, exclusions and groups, in numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl.rollouts import from_batch, group_ids, group_rows, runs


def message(role, tokens, **more):
    return {"role": role, "token_ids": [0] * tokens} | more


def log(*turns, group="g", **marks):
    """turns: (prompt tokens, generated tokens, reward or None)."""
    out = []
    for prompt, generated, reward in turns:
        out.append(message("user", prompt))
        marked = {} if reward is None else {"turn_reward": reward, "turn_tier": "read_only"}
        out.append(message("assistant", generated, generation_logprobs=[0.0] * generated, **marked))
    out[0] |= {"nemo_tau2_group": group} | marks
    return out


def test_spans_are_the_generated_tokens():
    found = from_batch({"message_log": [log((3, 2, 0.5), (1, 4, 0.25))]}, np.ones((1, 12)))
    assert found.spans[0].tolist() == [[3, 5], [6, 10]]
    assert found.turn_rewards == [[0.5, 0.25]] and found.groups == ["g"]


def test_tokens_with_logprobs_but_no_loss_are_no_turn():
    """NeMo RL gives prompt history logprobs of zero and a loss mask of zero."""
    history = message("assistant", 2, generation_logprobs=[0, 0], token_loss_mask=np.zeros(2))
    turns = log((1, 3, 1.0))
    found = from_batch({"message_log": [[turns[0], history, turns[1]]]}, np.ones((1, 6)))
    assert found.spans[0].tolist() == [[3, 6]]


def test_a_missing_reward_is_named_and_forgiven_for_excluded_rollouts():
    logs = [log((1, 1, 0.5)), log((1, 1, None))]
    found = from_batch({"message_log": logs}, np.ones((2, 2)))
    assert (
        found.turn_rewards is None
        and "rollout 1: 0 turn rewards for 1 turns" in found.without_rewards
    )
    found = from_batch({"message_log": logs, "truncated": [False, True]}, np.ones((2, 2)))
    assert found.turn_rewards == [[0.5], [0.0]] and found.excluded.tolist() == [False, True]


@pytest.mark.parametrize(
    ("columns", "mask", "valid"),
    [
        ({"truncated": [False, True]}, np.ones((2, 2)), None),
        ({"mask_sample": np.array([0, 1])}, np.ones((2, 2)), None),
        ({"loss_multiplier": np.array([1.0, 0.0])}, np.ones((2, 2)), None),
        ({}, np.array([[0, 1], [0, 0]]), None),
        ({}, np.ones((2, 2)), np.array([0.5, 0.0])),
    ],
)
def test_every_way_to_be_left_out(columns, mask, valid):
    batch = {"message_log": [log((1, 1, 0.0)), log((1, 1, 0.0))], **columns}
    assert from_batch(batch, mask, None, valid).excluded.tolist() == [False, True]


def test_prompts_group_what_has_no_id():
    logs = [log((1, 1, 0.0), group=g) for g in ("a", None, None, None)]
    ids = group_ids(logs, np.array([[1, 2], [1, 2], [3, 4], [1, 2]]))
    assert ids[0] == "a" and ids[1] == ids[3] != ids[2]
    with pytest.raises(UserError, match=r"verifier_metadata.group_id"):
        group_ids(logs)


def test_a_batch_of_neither_form_says_what_to_set():
    with pytest.raises(UserError, match=r"data_plane.enabled: false"):
        from_batch({"total_reward": [1.0]}, np.ones((1, 2)))


def test_columns_that_do_not_match_the_mask_raise():
    batch = {
        "nemo_tau2_turn_rewards": np.array([[1.0, 2.0, np.nan]]),
        "nemo_tau2_excluded": np.zeros((1, 1)),
    }
    with pytest.raises(UserError, match="2 turn rewards for 1 runs"):
        from_batch(batch, np.array([[0, 1, 1]]), np.array([[1]]))
    batch["nemo_tau2_excluded"][0] = 1
    assert from_batch(batch, np.array([[0, 1, 1]]), np.array([[1]])).turn_rewards == [[0.0]]


@given(st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=5))
def test_runs_rebuild_the_mask(rows):
    mask = np.array(rows, dtype=bool)
    rebuilt = np.zeros_like(mask)
    for i, spans in enumerate(runs(mask)):
        for start, end in spans:
            assert not rebuilt[i, max(start - 1, 0)] and start < end
            rebuilt[i, start:end] = True
    assert (rebuilt == mask).all()


def test_equal_rows_have_equal_numbers():
    assert group_rows(np.array([[1, 2], [1, 3], [1, 2]])) == [0, 1, 0]
    assert group_rows([5, 5, 6]) == [0, 0, 1]
