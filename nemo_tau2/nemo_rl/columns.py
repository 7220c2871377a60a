"""Experimental: turn credit through NeMo RL's SingleController, as columns of its data plane.

SingleController's estimator sees no message logs. So the producer adds two columns to what it writes
(turn rewards padded with NaN, exclusion flags) and groups by our group id, and the advantage stage
asks for them. Tested against NeMo RL's in-memory data plane only, not against TransferQueue.
"""

import functools
from typing import Any

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl import compat
from nemo_tau2.nemo_rl.actor import GROUP, MASKED, TURN_REWARD, group_hash, is_masked
from nemo_tau2.nemo_rl.rollouts import EXCLUDED_COLUMN, REWARD_COLUMN

COLUMNS = (REWARD_COLUMN, EXCLUDED_COLUMN)
WIDTH = 256
"""Columns of the reward table. Rows of different groups are stacked, so it cannot follow the batch."""


def add_columns(record: Any, batch: Any) -> Any:
    """Adds the columns of one PromptGroupRecord's N completions to its train batch, in place.

    Raises `UserError` for a rollout of more than `WIDTH` turns.
    """
    import torch

    completions = record.completions
    table = torch.full((len(completions), WIDTH), float("nan"), dtype=torch.float32)
    excluded = torch.zeros((len(completions), 1), dtype=torch.float32)
    for i, completion in enumerate(completions):
        log = completion.message_log
        rewards = [message[TURN_REWARD] for message in log if TURN_REWARD in message]
        if len(rewards) > WIDTH:
            raise UserError(
                f"a rollout of {len(rewards)} turns: the data-plane route takes {WIDTH}"
            )
        table[i, : len(rewards)] = torch.tensor(rewards)
        flagged = log[0].get(MASKED) or is_masked(completion.env_extras or {})
        excluded[i] = float(bool(completion.truncated or flagged))
    batch[REWARD_COLUMN] = table
    batch[EXCLUDED_COLUMN] = excluded
    groups = [completion.message_log[0].get(GROUP) for completion in completions]
    if None not in groups:
        batch["prompt_ids_for_adv"] = torch.tensor([group_hash(group) for group in groups])
    return batch


def replacements() -> list[tuple[Any, str, Any, Any]]:
    """(module, name, original, replacement) for a process that runs or builds a SingleController."""
    out: list[tuple[Any, str, Any, Any]] = []
    buffer = compat.module("nemo_rl.algorithms.async_utils.replay_buffer")
    make_batch = buffer.record_to_train_batch

    @functools.wraps(make_batch)
    def record_to_train_batch(record: Any, *args: Any, **kwargs: Any) -> Any:
        return add_columns(record, make_batch(record, *args, **kwargs))

    out.append((buffer, "record_to_train_batch", make_batch, record_to_train_batch))
    controller = compat.module(compat.SINGLE_CONTROLLER)
    make_config = controller.AdvantageConfig

    @functools.wraps(make_config, updated=())
    def advantage_config(*args: Any, **kwargs: Any) -> Any:
        config = make_config(*args, **kwargs)
        config.repeated_batch_fields = [*config.repeated_batch_fields, *COLUMNS]
        return config

    out.append((controller, "AdvantageConfig", make_config, advantage_config))
    schema = getattr(controller, "SC_ROLLOUT_SCHEMA_FIELDS", None)
    if schema is not None:  # later versions register every column up front
        out.append(
            (controller, "SC_ROLLOUT_SCHEMA_FIELDS", schema, type(schema)([*schema, *COLUMNS]))
        )
    return out
