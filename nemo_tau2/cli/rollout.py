"""`nemo-tau2 rollout`: episodes through real NeMo Gym servers, or in this process."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, validators

from nemo_tau2.errors import UserError

if TYPE_CHECKING:
    from nemo_tau2.rollouts.plan import RolloutPlan
    from nemo_tau2.rollouts.spec_plan import SpecPlan

Positive = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def rollout(
    *,
    domain: Literal["airline", "retail", "telecom", "all"] | None = None,
    rows: Path | None = None,
    output: Path,
    split: str = "train",
    limit: Positive | None = None,
    group_size: Positive = 1,
    policy: Literal["scripted"] | None = None,
    policy_url: str | None = None,
    policy_model: str | None = None,
    policy_sampling: str | None = None,
    policy_token_ids: bool = False,
    user: Literal["scripted"] | None = None,
    user_url: str | None = None,
    user_model: str | None = None,
    user_sampling: str = '{"temperature": 0.0}',
    judge_url: str | None = None,
    judge_model: str | None = None,
    helper_url: str | None = None,
    helper_model: str | None = None,
    helper_sampling: str = '{"temperature": 0.0}',
    settings: Path | None = None,
    api_key_file: Path | None = None,
    backend: Literal["gym", "direct"] = "gym",
    concurrency: Positive = 16,
    seed: int = 0,
    fault_rate: float = 0.25,
    max_turns: Positive | None = None,
    rewards: str = "calibrated",
    tasks_dir: Path | None = None,
    task_id: list[str] | None = None,
    resume: bool = False,
) -> int:
    """Roll out episodes of τ² or of your own Agent Script rows; each row is written as it ends.

    Writes `rollouts.jsonl` and `summary.json` into the output folder. Interrupted runs keep every
    finished row; `--resume` plays what is missing, infrastructure failures included.

    Parameters
    ----------
    domain
        Whose τ² tasks; `all` is the three in turn.
    rows
        Instead of a domain: a JSONL file of `nemo-tau2 spec rows` or `nemo-tau2 data mix`.
    output
        Folder for the results.
    split
        train, test or base; telecom also has small and full.
    limit
        At most so many tasks per domain, or rows.
    group_size
        Rollouts per task or row.
    policy
        `scripted`: the embedded policy that plays gold actions, or with full knowledge, with faults.
    policy_url
        Base URL of an OpenAI-compatible endpoint, /v1 included.
    policy_model
        The model's name there.
    policy_sampling
        Sampling parameters as JSON, such as '{"temperature": 1.0}'.
    policy_token_ids
        Ask the endpoint for token ids and log-probabilities (vLLM gives them); gym backend only.
    user
        `scripted`: the user played from the task's information.
    user_url
        Base URL of the user simulator's endpoint.
    user_model
        The user simulator's model.
    user_sampling
        Sampling parameters of the user simulator as JSON.
    judge_url
        Base URL of the endpoint that judges natural-language assertions. Only v1.0 retail tasks have
        them in their reward; without a judge they are left out and each row says so.
    judge_model
        The judge's model.
    helper_url
        `--rows`: base URL of the frozen model that plays customer, tool emulator and judge; `--user-url`
        and `--judge-url` give those two a model of their own.
    helper_model
        `--rows`: the helper's model.
    helper_sampling
        Sampling parameters of the helper as JSON.
    settings
        `--rows`: a YAML file with `options` and `rewards`, as in the configuration of `spec_service`.
    api_key_file
        A file whose first line is the key for the endpoints.
    backend
        `gym`: real NeMo Gym servers. `direct`: in this process, without token ids.
    concurrency
        Episodes at a time.
    seed
        Seeds the scripted policy's faults.
    fault_rate
        The scripted policy's faults per gold action.
    max_turns
        Policy turns per episode at most.
    rewards
        `calibrated`, `naive` or a reward file: what each turn tier pays.
    tasks_dir
        Tasks of a τ²-bench checkout instead of the packaged ones.
    task_id
        Only these tasks; may be given several times.
    resume
        Finish an earlier run in the same folder.
    """
    from nemo_tau2.rollouts.run import run

    shared = {
        "policy": (policy, policy_url, policy_model, policy_sampling),
        "policy_token_ids": policy_token_ids,
        "judge": (None, judge_url, judge_model, '{"temperature": 0.0}'),
        "api_key_file": api_key_file,
        "limit": limit,
        "group_size": group_size,
        "backend": backend,
        "concurrency": concurrency,
        "seed": seed,
        "fault_rate": fault_rate,
        "max_turns": max_turns,
    }
    played = (user, user_url, user_model, user_sampling)
    spec = {"helper_url": helper_url, "helper_model": helper_model, "settings": settings}
    if rows is not None:
        tau2 = {"domain": domain, "tasks_dir": tasks_dir, "task_id": task_id}
        _exclude("--rows", tau2)
        helper = (None, helper_url, helper_model, helper_sampling)
        plan = _spec_plan(rows=rows, customer=played, helper=helper, settings=settings, **shared)
        return run(plan, output, resume)
    if domain is None:
        raise UserError("give --domain airline|retail|telecom|all, or --rows FILE")
    _exclude("--domain", spec)
    return run(
        _tau2_plan(
            domain=domain,
            split=split,
            user=played,
            rewards=rewards,
            tasks_dir=str(tasks_dir.expanduser().resolve()) if tasks_dir else None,
            task_ids=tuple(task_id or ()),
            **shared,
        ),
        output,
        resume,
    )


def _exclude(chosen: str, others: dict[str, Any]) -> None:
    for name, value in others.items():
        if value:
            raise UserError(f"{chosen} and --{name.replace('_', '-')} exclude each other; give one")


def _spec_plan(**flags: Any) -> "SpecPlan":
    from nemo_tau2.rollouts.spec_plan import SpecPlan

    return SpecPlan.from_flags(**flags)


def _tau2_plan(**flags: Any) -> "RolloutPlan":
    from nemo_tau2.rollouts.plan import RolloutPlan

    return RolloutPlan.from_flags(**flags)
