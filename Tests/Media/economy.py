#!/usr/bin/env python3
"""Compares the requests of a job by time with those of ffmpeg that plays the same seconds directly.

    economy.py --larder .build/release/larder

The upstream answers after 100 ms. For each file and position the table shows medians of ROUNDS cold runs: requests, bytes
and seconds of the job, and of ffmpeg. The bytes of ffmpeg are those that it has read, without those in its socket.
"""

import pathlib
import re
import shutil
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests"), str(ROOT / "scripts")]

import run  # noqa: E402
from fillbench.stage import ScriptedUpstream  # noqa: E402
from harness import checks  # noqa: E402
from harness.process import Larder  # noqa: E402
from players import ffmpeg  # noqa: E402

SECONDS, ROUNDS, DELAY = 10, 5, 0.1
#: Files of long films and of many key frames, beside those of `run.py`.
FILES = {
    "mp4-tail.mp4": run.LAYOUTS["mp4-tail.mp4"],
    "mp4-head.mp4": run.LAYOUTS["mp4-head.mp4"],
    "mp4-sidx.mp4": run.LAYOUTS["mp4-sidx.mp4"],
    "mp4-fragmented.mp4": run.LAYOUTS["mp4-fragmented.mp4"],
    "matroska-tail.mkv": run.LAYOUTS["matroska-tail.mkv"],
    "matroska-live.mkv": run.LAYOUTS["matroska-live.mkv"],
    "constant.mp3": run.LAYOUTS["constant.mp3"],
    "stream.ts": run.LAYOUTS["stream.ts"],
}
BRIEF = ["mp4-tail.mp4", "matroska-tail.mkv"]


def job(program, root, name, start):
    """Requests, bytes and seconds of a job in a new Larder."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=root))
    upstream = ScriptedUpstream(root / "files", roundTrip=DELAY)
    larder = Larder(program, directory, upstream.port).start()
    began = time.monotonic()
    found = larder.finished(larder.job(run.played(name, start, SECONDS)))
    taken = time.monotonic() - began
    requests = upstream.requests()
    larder.stop()
    upstream.stop()
    shutil.rmtree(directory, True)
    if found["state"] != "succeeded":
        print(f"  {name} {start}: {found['error']}")
        return None
    return len(requests), sum(request["sent"] for request in requests), taken


def direct(root, name, start):
    """Requests, bytes and seconds of ffmpeg."""
    upstream = ScriptedUpstream(root / "files", roundTrip=DELAY)
    began = time.monotonic()
    url = f"http://127.0.0.1:{upstream.port}/{name}"
    _, output = ffmpeg("-loglevel", "verbose", "-ss", start, "-t", SECONDS, "-i", url, "-c", "copy", "-f", "null", "-")
    taken = time.monotonic() - began
    requests = upstream.requests()
    upstream.stop()
    read = sum(int(count) for count in re.findall(r"Statistics: (\d+) bytes read", output))
    return len(requests), read, taken


def median(runs):
    return [statistics.median(values) for values in zip(*runs)]


def main():
    parser = checks.arguments(__doc__)
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    names = [n for n in (BRIEF if options.brief else FILES) if any(part in n for part in options.only.split(","))]
    rounds = 1 if options.brief else ROUNDS
    root, check = checks.directory("media"), checks.Checks("economy")
    duration = 40 if options.brief else run.DURATION
    names = run.make(root, names, duration)
    columns = f"{'requests':>9}{'bytes':>10}{'time':>8}"
    print(f"  {'file':22}{'from':>5}{columns}   {'ffmpeg:':8}{columns}")
    for name in names:
        for start in (0, duration // 2):
            runs = [job(program, root, name, start) for _ in range(rounds)]
            check(None not in runs, f"{name} {start}: a job failed")
            if None in runs:
                continue
            mine, theirs = median(runs), median([direct(root, name, start) for _ in range(rounds)])
            shown = [f"{int(v[0]):9}{int(v[1]):10}{v[2]:7.2f}s" for v in (mine, theirs)]
            print(f"  {name:22}{start:5}{shown[0]}   {'':8}{shown[1]}", flush=True)
            what = f"{name} {start}: more than the limit of"
            check(mine[0] <= 1.5 * theirs[0] + 3, f"{what} requests")
            check(mine[1] <= 1.5 * theirs[1], f"{what} bytes")
            # ffmpeg does not search a transport stream for the requested time, if it has its duration.
            if not options.brief and not name.endswith(".ts"):
                check(mine[2] <= 1.2 * theirs[2] + DELAY, f"{what} time")
    sys.exit(check.finish())


if __name__ == "__main__":
    main()
