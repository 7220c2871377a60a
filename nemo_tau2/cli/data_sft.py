"""`nemo-tau2 data sft`: supervised examples from verified rollouts."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators


def sft(
    rollouts: Path,
    *,
    model: str,
    output: Path,
    max_tokens: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 8192,
    validation: Annotated[float, Parameter(validator=validators.Number(gte=0, lt=1))] = 0.05,
    min_reward: float = 1.0,
    seed: int = 0,
) -> None:
    """Write one example per policy turn of the sessions that were solved without a failed call.

    Writes OUTPUT, and OUTPUT's name with `_validation` for the cases held out. Each line has `prompt`
    and `completion` (loss on the completion only), the messages and tools they were rendered from,
    and whether the text is that of the whole conversation.

    Parameters
    ----------
    rollouts
        A folder with `rollouts.jsonl`, or such a file.
    model
        A tokenizer's name or folder (needs transformers), or a `.jinja` chat template; with the
        latter, tokens are estimated on the safe side.
    output
        The JSONL file of the training examples.
    max_tokens
        Examples whose prompt and completion are longer are left out.
    validation
        Share of the cases held out, before examples are made.
    min_reward
        The reward a session needs.
    seed
        Seed of the split.
    """
    import json

    from nemo_tau2.datasets.chat_template import load_template
    from nemo_tau2.datasets.files import read_jsonl, write_lines
    from nemo_tau2.datasets.sft import Kept, case_in, examples, split_cases, unusable
    from nemo_tau2.errors import UserError

    stored = rollouts / "rollouts.jsonl" if rollouts.is_dir() else rollouts
    template, kept, good = load_template(model), Kept(), []
    for _, row in read_jsonl(stored):
        reason = unusable(row, min_reward)
        kept.sessions[reason or "used"] += 1
        if reason is None:
            good.append(row)
    if not good:
        raise UserError(f"{stored}: no session can be used ({_counts(kept.sessions) or 'empty'})")
    splits = split_cases(good, validation, seed)
    lines: dict[str, list[str]] = {"train": [], "validation": []}
    for row in good:
        for example in examples(row, template, max_tokens, kept):
            line = json.dumps(example, ensure_ascii=False) + "\n"
            lines[splits[case_in(row)]].append(line)
    files = {output: lines["train"]}
    if lines["validation"]:
        files[output.with_stem(f"{output.stem}_validation")] = lines["validation"]
    write_lines(files)
    print(f"sessions: {_counts(kept.sessions)}")
    print(f"examples: {_counts(kept.examples)}")
    print(f"{len(lines['train'])} in {output}, {len(lines['validation'])} for validation")


def _counts(counts) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
