"""`nemo-tau2`: the table of verbs and the mapping from exceptions to exit codes.

Exit codes: 0 done, 1 the work ran and found something wrong, 2 bad input (one line says what,
where and how to mend it), 130 interrupted.
"""

import os
import sys

import cyclopts

from nemo_tau2 import __version__
from nemo_tau2.errors import UserError

VERBS = {
    "train": (
        "nemo_tau2.cli.train:train",
        "Train with NeMo RL's own GRPO loop, or --check a recipe.",
    ),
    "recipes": ("nemo_tau2.cli.recipes:app", "List the recipes, or copy one to edit."),
    "rollout": (
        "nemo_tau2.cli.rollout:rollout",
        "Roll out τ² tasks or Agent Script rows and store what came of them.",
    ),
    "eval": ("nemo_tau2.cli.eval:evaluate", "Evaluate a policy endpoint: rollouts and a report."),
    "report": (
        "nemo_tau2.cli.report:report",
        "Report pass^k with intervals and every denominator.",
    ),
    "compare": ("nemo_tau2.cli.compare:compare", "Compare two runs, paired by task."),
    "data": ("nemo_tau2.cli.data:app", "Make datasets for NeMo Gym and NeMo RL."),
    "bench": ("nemo_tau2.cli.bench:app", "Measure speed, memory and parity against named peers."),
    "calibrate": (
        "nemo_tau2.cli.calibrate:calibrate",
        "Measure what turn rewards teach, and propose rewards.",
    ),
    "spec": (
        "nemo_tau2.cli.spec:app",
        "Check, compile, show and format Agent Script; make its dataset rows.",
    ),
    "gym-roots": ("nemo_tau2.cli.gym_roots:gym_roots", "Where NeMo Gym finds the components."),
    "doctor": (
        "nemo_tau2.cli.doctor:doctor",
        "What is installed, what is missing, and the command that mends it.",
    ),
}


def build_app() -> cyclopts.App:
    """Returns the application; a verb's module is imported when the verb is first used."""
    app = cyclopts.App(name="nemo-tau2", version=__version__, help="τ²-bench for NVIDIA NeMo.")
    for name, (target, help_line) in VERBS.items():
        app.command(target, name=name, help=help_line)
    return app


def main(tokens: list[str] | None = None) -> None:
    """Runs one verb and exits."""
    try:
        code = build_app()(tokens, exit_on_error=False, result_action="return_value")
    except cyclopts.CycloptsError:
        sys.exit(2)  # cyclopts has printed the line
    except UserError as error:
        print(f"nemo-tau2: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
