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
from nemo_tau2.rollouts.plan import RolloutPlan


@contextmanager
def gym_results(
    plan: RolloutPlan, rows: list[dict[str, Any]], output: Path, report: Callable[[str], None]
) -> Iterator[AsyncIterator[dict[str, Any]]]:
    """The finished rows, as episodes end, while the servers live.

    Raises UserError where the servers do not come up: nothing has been played then.
    """
    config = LaunchConfig(
        environment=f"tau2_{plan.domain}",
        policy=_served(plan.policy, plan.policy_token_ids) if plan.policy else Scripted(),
        user=_served(plan.user, token_ids=False) if plan.user else None,
        judge=_served(plan.judge, token_ids=False) if plan.judge else None,
        run_dir=output,
        overrides=_overrides(plan),
    )
    try:
        with launch(config, report) as gym:
            yield _rows(plan, rows, gym.agent_urls)
    except LaunchError as error:
        raise UserError(f"the NeMo Gym servers did not start: {error}") from None


async def _rows(
    plan: RolloutPlan, rows: list[dict[str, Any]], agent_urls: dict[str, str]
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


def _overrides(plan: RolloutPlan) -> dict[str, Any]:
    """Settings of the resources server and the agents that differ from the environment's own."""
    server: dict[str, Any] = {"rewards": plan.rewards}
    if Path(plan.rewards).is_file():
        server["rewards"] = str(Path(plan.rewards).resolve())
    if plan.tasks_dir:
        server["tasks_dir"] = plan.tasks_dir
    if plan.user:
        server["user"] = "llm"
        server["user_model_server"] = {"type": "responses_api_models", "name": "user_model"}
        server["user_sampling"] = plan.user.sampling
    if plan.judge:
        server["judge_model_server"] = {"type": "responses_api_models", "name": "judge_model"}
        server["judge_sampling"] = plan.judge.sampling
    overrides: dict[str, Any] = {
        f"tau2_{plan.domain}": {"resources_servers": {"tau2_bench": server}},
    }
    if plan.max_turns:
        names = ("airline", "retail", "telecom") if plan.domain == "all" else (plan.domain,)
        for name in names:
            agent = {"responses_api_agents": {"dialogue_agent": {"max_turns": plan.max_turns}}}
            overrides[f"tau2_{name}_agent"] = agent
    return overrides
