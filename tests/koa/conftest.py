"""Rows of one built-in script per mode, made once."""

import asyncio
import json
from functools import cache

from nemo_tau2.cli.main import main
from nemo_tau2.simulation.factory import new_episode
from nemo_tau2.simulation.policies import play


def run(*tokens):
    """The exit code of a command."""
    try:
        main([str(token) for token in tokens])
    except SystemExit as exited:
        return exited.code
    raise AssertionError("main returned")


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def verdict(row, policy):
    """What a policy gets on a row."""
    return asyncio.run(play(new_episode(row), policy))


@cache
def built(folder, mode, script="bank_cards", scenarios=8, personas=2, prefixes="0", seed=0):
    """(training rows, validation rows) of a build."""
    output = folder / f"{script}_{mode}_{prefixes}_{seed}.jsonl".replace(" ", "_")
    flags = ["--scenarios", scenarios, "--personas", personas, "--seed", seed]
    depths = ["--prefixes", *prefixes.split()]
    code = run("spec", "rows", script, "--mode", mode, "--output", output, *flags, *depths)
    assert code == 0
    held = output.with_stem(output.stem + "_validation")
    return lines(output), lines(held) if held.exists() else []
