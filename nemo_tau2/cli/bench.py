"""`nemo-tau2 bench`: ratios against named peers, measured in one run."""

import cyclopts

app = cyclopts.App(name="bench", help="Measure speed, memory and parity against named peers.")

for _name, _target, _help in (
    ("world", "nemo_tau2.bench.world:world", "Episodes/s and memory against stock AgentGymEnv."),
    ("gym", "nemo_tau2.bench.gym:gym", "Episodes/s through NeMo Gym against stock threads."),
    ("spec", "nemo_tau2.bench.spec:spec", "Agent Script environments: episodes/s, memory, CPU."),
    ("parity", "nemo_tau2.bench.parity:parity", "Rewards against stock evaluate_simulation."),
    ("credit", "nemo_tau2.bench.credit:credit", "Time and memory of the estimators."),
    ("learning", "nemo_tau2.bench.learning:learning", "What the estimators do to learning."),
):
    app.command(_target, name=_name, help=_help)
