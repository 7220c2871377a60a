"""Writes `data/example.jsonl` of each environment: `python -m nemo_tau2.gym.examples`.

Five rows each, the first train tasks, as NeMo Gym wants them for a look at an environment. A test
regenerates them, so they are never edited by hand.
"""

import json
from itertools import chain
from typing import Any

from nemo_tau2.gym_compat import GYM_ROOT
from nemo_tau2.simulation.factory import plain_row
from nemo_tau2.simulation.scripts import built_in
from nemo_tau2.tau2.dataset import dataset_rows, select_tasks
from nemo_tau2.tau2.domains import DOMAINS

ROWS = 5
SPEC_MODES = {
    "support_flat": "flat",
    "service_routed": "routed",
    "tool_sandbox": "sandbox",
    "pivot_turn": "pivot",
}
"""Environments compiled from Agent Script, and their mode."""


def example_rows(environment: str) -> list[dict[str, Any]]:
    """The rows of one environment; `tau2_all` takes the domains in turn."""
    if environment in SPEC_MODES:
        scripts = built_in()[:ROWS]
        return [plain_row(script, SPEC_MODES[environment], seed=1) for script in scripts]
    domains = DOMAINS if environment == "tau2_all" else [environment.removeprefix("tau2_")]
    rows = []
    for domain in domains:
        tasks, chosen = select_tasks(domain, "train", limit=ROWS)
        rows.append(dataset_rows(domain, "train", tasks, chosen))
    in_turn = chain.from_iterable(zip(*rows, strict=True))
    return list(in_turn)[:ROWS]


def main() -> None:
    for path in sorted(GYM_ROOT.glob("environments/*/config.yaml")):
        rows = example_rows(path.parent.name)
        target = path.parent / "data" / "example.jsonl"
        target.parent.mkdir(exist_ok=True)
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        target.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
