"""Finding and ending every process of one launch, however it was orphaned.

NeMo Gym starts servers through shells and Ray daemons in their own groups, and 0.4.0 leaves servers
behind when one of them fails (nemo_gym/cli/env.py, `RunHelper.shutdown` kills the shells only). All
of them inherit the environment, so a random marker in it finds them again. The marker configures
nothing.
"""

import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

MARKER = "NEMO_TAU2_LAUNCH"


def marked(launch_id: str, but_not: Collection[int] = ()) -> list[int]:
    """Process ids of the launch, zombies left out."""
    wanted = f"{MARKER}={launch_id}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in but_not:
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # ended meanwhile, or another user's
            continue
    return found


def end_all(launch_id: str, grace_s: float, but_not: Collection[int] = ()) -> None:
    """SIGTERM to every process of the launch, SIGKILL to those still there after `grace_s` seconds."""
    _signal(marked(launch_id, but_not), signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while marked(launch_id, but_not) and time.monotonic() < deadline:
        time.sleep(0.05)
    while left := marked(launch_id, but_not):
        _signal(left, signal.SIGKILL)
        time.sleep(0.05)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
