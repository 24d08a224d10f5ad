"""Load from the other core: wrk reads random ranges of one file; its results."""

import pathlib
import re
import shutil
import subprocess

LONGEST_HEAD = 2048
SCRIPT = """
local size, length, pause, chance = {size}, {length}, {pause}, 0
function init() math.randomseed({seed}) end
function request()
    local first = math.random(0, length - size)
    wrk.headers["Range"] = string.format("bytes=%d-%d", first, first + size - 1)
    return wrk.format("GET", "{target}")
end
{delay}
function done(summary, latency)
    io.write(string.format("RESULT %d %d %d %d %d %d\\n", summary.requests, summary.duration,
        summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status
        + summary.errors.timeout, latency:percentile(50), latency:percentile(99), summary.bytes))
end
"""
DELAY = """
function delay()
    -- Exponential, as requests of many independent clients; wrk waits whole milliseconds.
    local wait = -math.log(1 - math.random()) * pause
    local whole = math.floor(wait)
    if math.random() < wait - whole then whole = whole + 1 end
    return whole
end
"""


class Run:
    """The results of one run of wrk; times in seconds."""

    def __init__(self, words):
        self.requests, duration, self.errors, median, p99, self.bytes = (int(float(word)) for word in words)
        self.seconds, self.median, self.p99 = duration / 1e6, median / 1e6, p99 / 1e6

    @property
    def rate(self):
        return self.requests / self.seconds


class Load:
    def __init__(self, directory, core):
        self.directory, self.core = pathlib.Path(directory), core

    def run(self, port, target, size, length, connections, seconds, seed, pause=0.0, scheme="http"):
        """`pause`: the mean think time of a connection between two requests, in milliseconds; 0: none."""
        script = self.directory / "load.lua"
        script.write_text(
            SCRIPT.format(
                size=size, length=length, pause=pause, seed=seed, target=target, delay=DELAY if pause else ""
            )
        )
        command = [
            "taskset", "-c", str(self.core), shutil.which("wrk") or "wrk", "-t1", f"-c{connections}",
            f"-d{seconds:g}s", "--timeout", "30s", "-s", script, f"{scheme}://127.0.0.1:{port}",
        ]  # fmt: skip
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        run = Run(re.search(r"^RESULT (.*)$", told, re.MULTILINE).group(1).split())
        # Checked without wrk's `response`: with it wrk keeps each body, for more than a third of its time.
        whole = size * run.requests <= run.bytes <= (size + LONGEST_HEAD) * (run.requests + connections)
        if run.errors or not run.requests or not whole:
            told = f"{run.errors} errors, {run.requests} requests, {run.bytes} bytes"
            raise RuntimeError(f"{told}: {' '.join(map(str, command))}")
        return run
