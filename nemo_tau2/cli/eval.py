"""`nemo-tau2 eval`: rollouts of a policy on a split, several trials a task, then the report."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

Positive = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def evaluate(
    *,
    output: Path,
    domains: str = "airline,retail,telecom",
    split: str = "base",
    trials: Positive = 4,
    policy_url: str | None = None,
    policy_model: str | None = None,
    policy_sampling: str | None = None,
    user_url: str | None = None,
    user_model: str | None = None,
    user_sampling: str = '{"temperature": 0.0}',
    judge_url: str | None = None,
    judge_model: str | None = None,
    api_key_file: Path | None = None,
    backend: Literal["gym", "direct"] = "gym",
    concurrency: Positive = 16,
    limit: Positive | None = None,
    seed: int = 0,
    max_turns: Positive | None = None,
    tasks_dir: Path | None = None,
    resume: bool = False,
) -> int:
    """Roll out each domain into its own folder under the output, then report over all of them.

    Without --policy-url and --user-url the scripted policy and user play: a rehearsal, no score.

    Parameters
    ----------
    output
        Folder for the results; one subfolder per domain.
    domains
        Comma-separated.
    split
        base, test or train.
    trials
        Rollouts per task.
    policy_url
        Base URL of the policy's OpenAI-compatible endpoint, /v1 included.
    policy_model
        The policy's name there.
    policy_sampling
        Sampling parameters as JSON.
    user_url
        Base URL of the user simulator's endpoint.
    user_model
        The user simulator's model.
    user_sampling
        Sampling parameters of the user simulator as JSON.
    judge_url
        Base URL of the judge of natural-language assertions (v1.0 retail tasks).
    judge_model
        The judge's model.
    api_key_file
        A file whose first line is the key for the endpoints.
    backend
        `gym`: real NeMo Gym servers. `direct`: in this process.
    concurrency
        Episodes at a time.
    limit
        At most so many tasks per domain.
    seed
        Seeds the scripted policy.
    max_turns
        Policy turns per episode at most.
    tasks_dir
        Tasks of a τ²-bench checkout instead of the packaged ones.
    resume
        Finish an earlier run in the same folder; finished domains are not played again.
    """
    from nemo_tau2.cli.report import report
    from nemo_tau2.errors import UserError
    from nemo_tau2.rollouts.plan import RolloutPlan
    from nemo_tau2.rollouts.run import run, write_planned
    from nemo_tau2.tau2.domains import DOMAINS

    names = [name.strip() for name in domains.split(",")]
    if unknown := [name for name in names if name not in DOMAINS]:
        raise UserError(f"--domains {unknown[0]!r}: use some of {','.join(DOMAINS)}")
    plans = [
        RolloutPlan.from_flags(
            domain=name,
            split=split,
            limit=limit,
            group_size=trials,
            policy=(None, policy_url, policy_model, policy_sampling),
            policy_token_ids=False,
            user=(None, user_url, user_model, user_sampling),
            judge=(None, judge_url, judge_model, '{"temperature": 0.0}'),
            api_key_file=api_key_file,
            backend=backend,
            concurrency=concurrency,
            seed=seed,
            fault_rate=0.0 if policy_url else 0.25,
            max_turns=max_turns,
            rewards="calibrated",
            tasks_dir=str(tasks_dir.expanduser().resolve()) if tasks_dir else None,
            task_ids=(),
        )
        for name in names
    ]
    for name, plan in zip(names, plans, strict=True):
        # Reports count the domains that an interrupted run never reaches.
        if not (output / name / "planned.json").exists():
            write_planned(plan.rows()[0], output / name)
    for name, plan in zip(names, plans, strict=True):
        folder = output / name
        # A domain that an interrupted run never reached has nothing to resume.
        if code := run(plan, folder, resume and (folder / "rollouts.jsonl").exists()):
            return code
    return report([output / name for name in names]) or 0
