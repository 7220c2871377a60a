"""`nemo-tau2 rollout`: episodes through real NeMo Gym servers, or in this process."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

Positive = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def rollout(
    *,
    domain: Literal["airline", "retail", "telecom", "all"],
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
    """Roll out τ² episodes and write a row as soon as each ends.

    Writes `rollouts.jsonl` and `summary.json` into the output folder. Interrupted runs keep every
    finished row; `--resume` plays what is missing, infrastructure failures included.

    Parameters
    ----------
    domain
        Whose tasks; `all` is the three in turn.
    output
        Folder for the results.
    split
        train, test or base; telecom also has small and full.
    limit
        At most so many tasks per domain.
    group_size
        Rollouts per task.
    policy
        `scripted`: the embedded policy that plays gold actions with faults. No model needed.
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
    from nemo_tau2.rollouts.plan import RolloutPlan
    from nemo_tau2.rollouts.run import run

    plan = RolloutPlan.from_flags(
        domain=domain,
        split=split,
        limit=limit,
        group_size=group_size,
        policy=(policy, policy_url, policy_model, policy_sampling),
        policy_token_ids=policy_token_ids,
        user=(user, user_url, user_model, user_sampling),
        judge=(None, judge_url, judge_model, '{"temperature": 0.0}'),
        api_key_file=api_key_file,
        backend=backend,
        concurrency=concurrency,
        seed=seed,
        fault_rate=fault_rate,
        max_turns=max_turns,
        rewards=rewards,
        tasks_dir=str(tasks_dir.expanduser().resolve()) if tasks_dir else None,
        task_ids=tuple(task_id or ()),
    )
    return run(plan, output, resume)
