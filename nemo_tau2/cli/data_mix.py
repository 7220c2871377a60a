"""`nemo-tau2 data mix` and `data select`: files of rows into files of rows."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators


def mix(file: Path, *, output: Path) -> None:
    """Repeat, then shuffle the rows of several environments.

    Writes OUTPUT, and OUTPUT's name with `_validation` where any environment has validation rows:
    those are joined in order, never repeated and never shuffled.

    Parameters
    ----------
    file
        YAML: `seed`, and `environments`, a list of `name`, `train`, `validation`, `repeat`.
    output
        The JSONL file to write.
    """
    from nemo_tau2.datasets.files import write_lines
    from nemo_tau2.datasets.mix import describe, load_mix, mix_rows

    mixed = mix_rows(load_mix(file), file.parent)
    files = {output: mixed.train()}
    if mixed.validation:
        files[output.with_stem(f"{output.stem}_validation")] = iter(mixed.validation)
    write_lines(files)
    for line in describe(mixed.counts):
        print(line)
    print(f"{len(mixed.order)} rows in {output}, {len(mixed.validation)} for validation")


def select(
    rows: Path,
    *,
    rollouts: Path,
    output: Path,
    min_rollouts: Annotated[int, Parameter(validator=validators.Number(gte=2))] = 8,
    min_variance: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 0.0,
) -> None:
    """Keep the rows whose rollouts differ in reward.

    Parameters
    ----------
    rows
        JSONL of dataset rows.
    rollouts
        A folder with `rollouts.jsonl`, or such a file: rollouts of these rows.
    output
        The JSONL file to write.
    min_rollouts
        Rows with fewer rollouts that count are left out.
    min_variance
        Keep rows whose reward variance is above this.
    """
    import json

    from nemo_tau2.datasets.files import metadata_of, read_jsonl, write_lines
    from nemo_tau2.datasets.selection import rewards_by_group
    from nemo_tau2.datasets.selection import select as choose

    stored = rollouts / "rollouts.jsonl" if rollouts.is_dir() else rollouts
    rewards = rewards_by_group(row for _, row in read_jsonl(stored))
    found = {}
    for number, row in read_jsonl(rows):
        group = metadata_of(row, f"{rows}, line {number}").get("group_id")
        found.setdefault(str(group), []).append(json.dumps(row, ensure_ascii=False) + "\n")
    chosen = choose(found, rewards, min_rollouts, min_variance)
    lines = [line for group in chosen.kept for line in found[group]]
    write_lines({output: lines})
    print(
        f"{len(lines)} of {sum(map(len, found.values()))} rows in {output}; groups left out: "
        f"{len(chosen.too_few)} with under {min_rollouts} rollouts, {len(chosen.always)} always "
        f"solved, {len(chosen.never)} never, {len(chosen.flat)} without variance"
    )
