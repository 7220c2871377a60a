"""`nemo-tau2 data`: datasets for NeMo Gym and NeMo RL."""

import json
from pathlib import Path
from typing import Literal

import cyclopts

app = cyclopts.App(name="data", help="Make datasets for NeMo Gym and NeMo RL.")
app.command("nemo_tau2.cli.data_mix:mix", name="mix")
app.command("nemo_tau2.cli.data_mix:select", name="select")
app.command("nemo_tau2.cli.data_sft:sft", name="sft")


@app.command
def tau2(
    *,
    domain: Literal["airline", "retail", "telecom", "all"],
    output: Path,
    split: str = "train",
    repeats: int = 1,
    limit: int | None = None,
    tasks_dir: Path | None = None,
    drop_null_solvable: bool = False,
    drop_gold_errors: bool = False,
) -> None:
    """Write one row per τ² task and repeat, without anything the policy should not see.

    Parameters
    ----------
    domain
        Whose tasks; `all` is the three in turn.
    output
        The JSONL file to write.
    split
        train, test or base; telecom also has small and full.
    repeats
        Rows per task. NeMo RL repeats prompts itself, so leave 1 for training.
    limit
        At most so many tasks per domain.
    tasks_dir
        Take the tasks of a τ²-bench checkout (its data/tau2/domains folder) instead of the packaged
        ones, which lack the corrections of v1.0.
    drop_null_solvable
        Leave out tasks that reward an agent which does nothing (13 of 30 in airline train).
    drop_gold_errors
        Leave out tasks whose gold actions themselves fail (18 in retail).
    """
    from nemo_tau2.errors import UserError
    from nemo_tau2.tau2.dataset import dataset_rows, expand_domains, select_tasks

    if repeats < 1:
        raise UserError(f"--repeats {repeats}: must be at least 1")
    lines, kept = [], {}
    for name in expand_domains(domain):
        tasks, chosen = select_tasks(
            name,
            split,
            str(tasks_dir) if tasks_dir else None,
            limit,
            drop_null_solvable,
            drop_gold_errors,
        )
        kept[name] = len(chosen)
        for row in dataset_rows(name, split, tasks, chosen, repeats):
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    partial = output.with_name(output.name + ".partial")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text("".join(lines), encoding="utf-8")
        partial.replace(output)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"--output {output}: {error.strerror}; give a writable file") from None
    counts = ", ".join(f"{name} {count}" for name, count in kept.items())
    print(f"{len(lines)} rows ({counts} tasks) in {output}")
