"""The processes that a test driver starts, each in a session of its own."""

import os
import signal

#: To be ended with their children.
STARTED = []


def stop_all():
    for process in STARTED:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
