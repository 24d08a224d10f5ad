#!/usr/bin/env python3
"""Builds the tests and runs the parts of `make test`; prints the output of each part, with several jobs
at its end, and at last a table of times and what failed.

    parts.py
    parts.py --jobs 1
    parts.py --only swift,accounts
    parts.py --list

Parts run at the same time as long as together they need no more than the processor cores: on a busy machine their time
limits can be missed. With one job (JOBS=1 make test) nothing else runs beside a part, and the Swift tests are one part,
the last one. All parts run, also after a failure. SEED is the seed of the fault trials and of the Swift tests (default 1; `random`: new
ones).
"""

import argparse
import atexit
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

sys.dont_write_bytecode = True

from harness import checks, process, venv  # noqa: E402

#: The program that the parts test; `make released` sets that of a release build.
LARDER = os.environ.get("LARDER") or ".build/debug/larder"
SWIFT = ["scripts/tests", "--skip-build"]
#: Targets with a part of their own; the part `swift-others` runs all other targets.
LARGE = ["CacheEngineTests", "CacheAPITests"]
#: Lines that say what failed, and the most lines of a failed part that are shown again at the end.
FAILURE = re.compile(r"✗|✘|FAIL|\berror:|Fatal error|Traceback|crashed")
SHOWN = 30
FAULTS = "kill,flips,catalog,capacity,full,small,aborts,load,fuzz"


def cores():
    """The processor cores that may be used: those of the affinity, at most the quota of the control group."""
    allowed = len(os.sched_getaffinity(0))
    try:
        quota, period = pathlib.Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except FileNotFoundError:
        return allowed
    return allowed if quota == "max" else max(1, min(allowed, int(quota) // int(period)))


CORES = cores()


@dataclass
class Part:
    """One command, with additional environment variables."""

    name: str
    words: list
    variables: dict = field(default_factory=dict)
    #: The processor cores that the part uses: processor time ÷ elapsed time, measured on an idle machine.
    load: float = 1
    #: Elapsed time, and processor time of the part with all its processes.
    seconds: float = 0
    processor: float = 0
    status: int = None
    text: str = ""
    #: The process of a running part.
    command: process.Process = None

    def show(self, output):
        """Prints the output of the part as it comes, and keeps it."""
        for line in output:
            print(line, end="", flush=True)
            self.text += line


def swift(name, load, *options):
    """The Swift tests of some targets, or of all without options."""
    return Part(f"swift-{name}", [*SWIFT, *options], {"LARDER_TEST_SEED": os.environ.get("SEED", "")}, load)


def brief(name, load, **variables):
    return Part(name, [f"scripts/{name}", LARDER, "--brief"], variables, load)


def parts(jobs):
    """All parts in the order of their start."""
    conformance = ["Tests/Conformance/run.py", "--larder", LARDER, "--jobs", "8"]
    seed = os.environ.get("SEED") or "1"
    faults = {"BRIEF": "1", "ONLY": FAULTS, "SEED": "" if seed == "random" else seed}
    programs = [
        brief("accounts", 1.4),
        Part("conformance", conformance, load=1.3),
        brief("jobs", 1.1),
        brief("ui", 1.5),
        brief("state", 0.4),
        Part("mixed", ["Tests/Soak/mixed.py", "--larder", LARDER, "--minutes", "1"], load=0.8),
        Part("bench", ["Benchmarks/bench", LARDER, "--brief"], load=1.1),
        brief("client", 0.6),
        brief("encryption", 1),
        Part("faults", ["scripts/faults", LARDER], faults, load=0.9),
        brief("api", 1),
        brief("fleet", 0.8),
        brief("packaging", 0.6),
        brief("peers", 0.5),
        brief("webhooks", 0.6),
        brief("monitoring", 0.5),
        brief("traces", 0.5),
        brief("media", 1),
        brief("network", 0.4),
        Part("conformance-tls", [*conformance, "--tls", "--only", "range syntax"], load=1),
        Part("readme", ["scripts/readme", LARDER], load=0.4),
        brief("upstreams", 0.9),
        brief("kubernetes", 0.4),
        brief("fills", 0.5, ONLY="overlap,herd,cuts,slow"),
    ]
    if jobs == 1:
        return [*programs, swift("all", 1)]
    targets = [
        swift("engine", 0.6, "--filter", f"^{LARGE[0]}\\."),
        swift("api", 0.7, "--filter", f"^{LARGE[1]}\\."),
        swift("others", 0.8, "--skip", f"^({'|'.join(LARGE)})\\."),
    ]
    # A Swift part is beside most of the programs with a large load; the small ones fill the rest.
    heavy = [part for part in programs if part.load > 1]
    return [heavy[0], targets[0], *heavy[1:], *targets[1:], *(part for part in programs if part.load <= 1)]


class Run:
    """Runs parts in threads, and shows them."""

    def __init__(self, jobs):
        self.jobs, self.directory = jobs, checks.directory("tests")
        self.running, self.changed, self.ended = {}, threading.Condition(), []
        atexit.register(self.end)

    def all(self, chosen):
        waiting = list(chosen)
        workers = [threading.Thread(target=self.work, args=(waiting,), daemon=True) for _ in range(self.jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():  # so that a signal is handled
                worker.join(0.5)

    def work(self, waiting):
        while part := self.next(waiting):
            try:
                self.one(part)
            except OSError as error:
                part.status, part.text = 1, f"error: {error}"
                self.ended.append(part)
            with self.changed:
                self.running.pop(part.name, None)
                self.changed.notify_all()

    def next(self, waiting):
        """The next part that may run now; None if no part is left."""

        def may_run(part):
            load = sum(other.load for other in [part, *self.running.values()])
            return not self.running or round(load, 1) <= CORES

        with self.changed:
            self.changed.wait_for(lambda: not waiting or any(map(may_run, waiting)))
            part = next(filter(may_run, waiting), None)
            if part:
                waiting.remove(part)
                self.running[part.name] = part
            return part

    def one(self, part):
        checks.say(f"started: {part.name}")
        environment = {**os.environ, "ONLY": "", **part.variables}
        began = time.monotonic()
        if self.jobs == 1:
            running = subprocess.Popen(
                part.words, env=environment, cwd=checks.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace",
            )  # fmt: skip
            reader = threading.Thread(target=part.show, args=(running.stdout,), daemon=True)
            reader.start()
        else:
            log = self.directory / f"{part.name}.log"
            part.command = process.Process(part.words, log, None, environment, checks.ROOT).launch()
            running = part.command.process
        _, status, usage = os.wait4(running.pid, 0)
        if self.jobs == 1:
            reader.join(10)  # not longer: a process that is left over can hold the pipe open
        part.status = running.returncode = os.waitstatus_to_exitcode(status)
        part.seconds, part.processor = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        self.ended.append(part)
        verdict, text = "passed" if part.status == 0 else f"FAILED with {part.status}", ""
        if part.command:
            part.text = part.command.text()
            text = f"\n{part.text.rstrip()}\n"
        checks.say(f"\n== {part.name}: {verdict}, {part.seconds:.0f} s{text}")

    def end(self):
        """Ends parts that still run after an interruption; they end their own processes."""
        commands = [part.command for part in self.running.values() if part.command]
        for command in commands:
            if command.is_running:
                os.killpg(command.process.pid, signal.SIGTERM)
        process.wait_until(lambda: not any(command.is_running for command in commands), 20)

    def table(self):
        print(f"  {'part':18}{'seconds':>9}{'processor':>11}  result")
        for part in sorted(self.ended, key=lambda part: -part.seconds):
            result = "passed" if part.status == 0 else "FAILED"
            print(f"  {part.name:18}{part.seconds:>9.0f}{part.processor:>11.0f}  {result}")


def failures(part):
    """The lines of a part that say what failed, each with the next one; without such lines, its last ones."""
    lines = [line[:300] for line in part.text.splitlines() if line.strip()]
    places = [index for index, line in enumerate(lines) if FAILURE.search(line)]
    told = [lines[index] for index in sorted({each for place in places for each in (place, place + 1) if each < len(lines)})]
    return (told or lines)[-SHOWN:]


def is_built(run):
    """Builds all targets and tests; returns whether that succeeds."""
    build, began = Part("build", ["scripts/debug", "--build-tests"]), time.monotonic()
    build.status = subprocess.call(build.words, cwd=checks.ROOT)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    build.seconds, build.processor = time.monotonic() - began, usage.ru_utime + usage.ru_stime
    run.ended.append(build)
    return build.status == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=os.environ.get("ONLY", ""), help="beginnings of names, with commas")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or 4), help="most parts at the same time")
    parser.add_argument("--skip-build", action="store_true", help="the tests are built already")
    parser.add_argument("--list", action="store_true", help="print the parts and their commands")
    options = parser.parse_args()
    known = {part.name: part for part in parts(options.jobs)}
    if options.list:
        for part in known.values():
            print(f"{part.name:18}{' '.join(part.words)}")
        return 0
    chosen, began, run = checks.chosen(known, options.only), time.monotonic(), Run(options.jobs)
    # Before the parts, which would wait for the lock of apt.
    venv.packages("nginx", "python3", "curl", "openssl", "wrk", "ffmpeg")
    if options.skip_build or is_built(run):
        run.all([known[name] for name in chosen])
    run.table()
    for part in run.ended:
        if part.status:
            print(f"\n== failures of {part.name}", *failures(part), sep="\n  ", end="\n\n")
    failed = [part.name for part in run.ended if part.status]
    seconds = time.monotonic() - began
    names = f": {', '.join(failed)}" if failed else ""
    print(f"test: {len(run.ended)} parts, {seconds / 60:.1f} minutes, {len(failed)} failed{names}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
