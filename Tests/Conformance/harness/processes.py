"""The processes that a test driver starts, each in its own session."""

import os
import signal

#: Processes to end, with their children.
STARTED = []


def stop_all():
    for process in STARTED:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
