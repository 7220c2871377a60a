"""`nemo-tau2 report`: what stored rollouts say."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def report(
    paths: list[Path],
    /,
    *,
    html: Path | None = None,
    json_output: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Report pass^k with intervals, bounds and every denominator.

    Parameters
    ----------
    paths
        Run folders or `rollouts.jsonl` files; several are read as one run.
    html
        Also write the viewer: one self-contained page with every rollout.
    json_output
        Print JSON instead of tables.
    """
    import json
    import sys

    from rich.console import Console

    from nemo_tau2.evaluation import load
    from nemo_tau2.evaluation.text import print_report

    result = load(paths).as_dict()
    if json_output:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        print_report(result, Console())
    if html is not None:
        from nemo_tau2.report.viewer import write_viewer

        write_viewer(paths, html, result)
        print(f"viewer: {html}", file=sys.stderr)
    return 0
