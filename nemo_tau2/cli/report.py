"""`nemo-tau2 report`: what stored rollouts say."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from nemo_tau2.chat import LiteLLMChat


def report(
    paths: list[Path],
    /,
    *,
    html: Path | None = None,
    json_output: Annotated[bool, Parameter(name="--json")] = False,
    reblame: Annotated[bool, Parameter(negative="")] = False,
    judge_url: str | None = None,
    judge_model: str | None = None,
    api_key_file: Path | None = None,
) -> int:
    """Report pass^k with intervals, bounds and every denominator; failure patterns and blame.

    Parameters
    ----------
    paths
        Run folders or `rollouts.jsonl` files; several are read as one run.
    html
        Also write the viewer: one self-contained page with every rollout.
    json_output
        Print JSON instead of tables.
    reblame
        Make patterns and blame anew from the rows, store them beside (`findings.jsonl`) and say what
        changed.
    judge_url
        Base URL of a model that judges the failures no rule decides, /v1 included.
    judge_model
        The judge's name there. Verdicts are kept beside the rows (`judged.jsonl`).
    api_key_file
        A file whose first line is the judge's key.
    """
    from nemo_tau2.evaluation import load

    chat = _judge(judge_url, judge_model, api_key_file)
    more: dict[str, Any] = {}
    if reblame:
        more["reblame"] = _reblame(paths)
    if chat is not None:
        more["judge"] = _ask(paths, chat)
    _show(load(paths).as_dict() | more, paths, html, json_output)
    return 0


def _show(result: dict[str, Any], paths: list[Path], html: Path | None, as_json: bool) -> None:
    import json
    import sys

    from rich.console import Console

    from nemo_tau2.evaluation.text import print_report

    if as_json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        print_report(result, Console())
    if html is not None:
        from nemo_tau2.report.viewer import write_viewer

        write_viewer(paths, html, result)
        print(f"viewer: {html}", file=sys.stderr)


def _judge(url: str | None, model: str | None, key_file: Path | None) -> "LiteLLMChat | None":
    from nemo_tau2.chat import LiteLLMChat
    from nemo_tau2.endpoints import endpoint_of, read_key

    flags = (None, url, model, '{"temperature": 0.0}')
    endpoint = endpoint_of("judge", flags, read_key(key_file))
    return LiteLLMChat(endpoint) if endpoint else None


def _reblame(paths: list[Path]) -> list[dict[str, Any]]:
    """Stores the findings of every file; the summaries are printed and returned."""
    import sys

    from nemo_tau2.evaluation.stored import reblame, row_files

    summaries = [reblame(file) for file in row_files(paths)]
    for one in summaries:
        print(
            f"{one['file']}: {one['rows']} rows, {one['changed']} changed, {one['new']} new",
            file=sys.stderr,
        )
        for move, count in one["moves"].items():
            print(f"  {move}: {count}", file=sys.stderr)
    return summaries


def _ask(paths: list[Path], chat: "LiteLLMChat") -> list[dict[str, Any]]:
    """Has the judge decide what the rules do not; the tallies are printed and returned."""
    import asyncio
    import sys
    from dataclasses import asdict

    from nemo_tau2.evaluation.judge import judge_file
    from nemo_tau2.evaluation.stored import row_files

    async def ask() -> list[dict[str, Any]]:
        tallies = []
        for file in row_files(paths):
            tally = await judge_file(file, chat, chat.endpoint.model)
            tallies.append({"file": str(file)} | asdict(tally))
            print(
                f"{file}: judge asked about {tally.asked} undecided failures ({tally.undecided} of "
                f"them stay so), {tally.cached} had a verdict",
                file=sys.stderr,
            )
        return tallies

    return asyncio.run(ask())
