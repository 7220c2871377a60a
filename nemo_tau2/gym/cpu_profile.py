"""A sampling CPU profile of one server process, for `nemo-tau2 bench gym`.

Samples on the process's CPU clock (SIGPROF), so waiting costs nothing and is not counted. Each
sample goes to the package of the innermost frame that belongs to one: time spent in the standard
library or in compiled code counts for whoever called it.
"""

import json
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

INTERVAL_S = 0.002
OTHER_THREADS = "other threads"
_PACKAGE = re.compile(r"site-packages/([A-Za-z0-9_]+)|/(nemo_tau2)/")


def owner(frame: FrameType | None) -> str:
    """The package of the innermost frame that lies in one; `python` where none does."""
    while frame is not None:
        # The last match: a checkout may lie in a folder of the same name, a wheel in site-packages.
        if found := _PACKAGE.findall(frame.f_code.co_filename):
            return "".join(found[-1])
        frame = frame.f_back
    return "python"


@contextmanager
def profile_into(path: str | None) -> Iterator[None]:
    """Samples until the end of the block and writes {package: CPU seconds} as JSON; None: nothing.

    A sample weighs what the main thread used since the one before; the rest of the process (Ray's
    threads in NeMo Gym 0.4.0) goes to `other threads`. The file is rewritten every second of CPU, so
    that a killed server leaves its profile.
    """
    if path is None:
        yield
        return
    seconds: Counter[str] = Counter()
    last = [time.thread_time(), time.process_time(), time.process_time()]

    def sample(_signum: int, frame: FrameType | None) -> None:
        thread, process = time.thread_time(), time.process_time()
        seconds[owner(frame)] += thread - last[0]
        seconds[OTHER_THREADS] += max(0.0, (process - last[1]) - (thread - last[0]))
        last[:2] = thread, process
        if process - last[2] > 1:
            last[2] = process
            write()

    def write() -> None:
        Path(path).write_text(json.dumps(seconds), encoding="utf-8")

    previous = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
        write()
