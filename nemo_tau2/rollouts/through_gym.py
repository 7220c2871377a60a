"""The gym backend: real NeMo Gym servers, started for this run and ended with it."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nemo_tau2.chat import Endpoint
from nemo_tau2.errors import UserError
from nemo_tau2.gym.launch import LaunchConfig, LaunchError, Scripted, Served, launch
from nemo_tau2.gym.rollouts import run_rows
from nemo_tau2.rollouts.plan import Plan


@contextmanager
def gym_results(
    plan: Plan, rows: list[dict[str, Any]], output: Path, report: Callable[[str], None]
) -> Iterator[AsyncIterator[dict[str, Any]]]:
    """The finished rows, as episodes end, while the servers live.

    Raises UserError where the servers do not come up: nothing has been played then.
    """
    frozen = {name: _served(model, token_ids=False) for name, model in plan.models().items()}
    trained = _served(plan.policy, plan.policy_token_ids) if plan.policy else None
    config = LaunchConfig(
        environment=plan.environment(rows, output),
        policy=trained or Scripted(script=plan.script),
        run_dir=output,
        overrides=plan.overrides(rows),
        **frozen,
    )
    try:
        with launch(config, report) as gym:
            yield _rows(plan, rows, gym.agent_urls)
    except LaunchError as error:
        raise UserError(f"the NeMo Gym servers did not start: {error}") from None


async def _rows(
    plan: Plan, rows: list[dict[str, Any]], agent_urls: dict[str, str]
) -> AsyncIterator[dict[str, Any]]:
    sampled = (_sampled(row, plan.policy) for row in rows)
    async for index, result in run_rows(enumerate(sampled), agent_urls, plan.concurrency):
        yield rows[index] | result


def _served(endpoint: Endpoint, token_ids: bool) -> Served:
    key = endpoint.api_key.get_secret_value() if endpoint.api_key else "none"
    return Served(url=endpoint.url, model=endpoint.model, api_key=key, token_ids=token_ids)


RESPONSES_SAMPLING = ("temperature", "top_p", "max_output_tokens")
"""Sampling parameters of the Responses API; NeMo Gym refuses rows with unknown ones."""


def _sampled(row: dict[str, Any], policy: Endpoint | None) -> dict[str, Any]:
    """The row with the policy's sampling parameters, which NeMo Gym takes from the row.

    Chat names are translated; what the Responses API does not know (`top_k`, …) travels in
    `metadata.extra_body`, from where vllm_model puts it into the chat request.
    """
    if policy is None or not policy.sampling:
        return row
    given = {"max_output_tokens" if k == "max_tokens" else k: v for k, v in policy.sampling.items()}
    params = row["responses_create_params"] | {
        key: value for key, value in given.items() if key in RESPONSES_SAMPLING
    }
    extra = {key: value for key, value in given.items() if key not in RESPONSES_SAMPLING}
    if extra:
        params |= {"metadata": {"extra_body": json.dumps(extra)}}
    return row | {"responses_create_params": params}
