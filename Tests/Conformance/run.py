#!/usr/bin/env python3
"""Runs the conformance checks against Larder, or against a peer for comparison.

    run.py --larder .build/release/larder
    run.py --peer nginx --only 1
"""

import argparse
import importlib
import itertools
import pathlib
import queue
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).resolve().parents[1])]

from harness.process import NotStarted  # noqa: E402
from suite import case, peers, report  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--larder", metavar="PATH", help="the executable to check")
    parser.add_argument("--peer", choices=["nginx", "varnish"], help="another cache, from Debian's packages")
    parser.add_argument("--only", default="", metavar="TEXT", help="a section's number, or part of a check's name")
    parser.add_argument("--list", action="store_true", help="lists the checks and runs none")
    parser.add_argument("--jobs", type=int, default=16, help="concurrent checks (16)")
    parser.add_argument("--json", metavar="FILE", help="also writes the results to a file")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs every check N times")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting for Larder")
    parser.add_argument("--tls", action="store_true", help="lets Larder serve with TLS")
    parser.add_argument("--keep", action="store_true", help="keeps the temporary directory with its logs")
    parser.add_argument("--verbose", action="store_true", help="names every check with its result")
    return parser.parse_args()


def load_checks(only):
    """All checks in section order; those selected by `only`, and the titles of their sections."""
    for file in sorted(pathlib.Path(__file__).parent.glob("s[0-9][0-9]_*.py")):
        importlib.import_module(file.stem)
    chosen = [check for check in case.REGISTRY if is_chosen(check, only)]
    chosen.sort(key=lambda check: check.section[0])
    return chosen, {check.section[0]: check.section[1] for check in chosen}


def is_chosen(check, only):
    if only.isdigit():
        return check.section[0] == int(only)
    return only.lower() in f"{check.section[1]}: {check.name}".lower()


class Run:
    """Runs the chosen checks against one cache, several concurrently."""

    def __init__(self, peer, jobs, verbose):
        self.peer, self.jobs, self.verbose = peer, jobs, verbose
        self.results, self.secrets = [], []
        self.lock = threading.Lock()
        self.labels = itertools.count(1)

    def all(self, checks):
        self.some([check for check in checks if not check.alone], self.jobs)
        self.some([check for check in checks if check.alone], 1)
        order = {id(check): place for place, check in enumerate(checks)}
        self.results.sort(key=lambda result: order[id(result.check)])

    def some(self, checks, jobs):
        waiting = queue.SimpleQueue()
        for check in checks:
            waiting.put(check)

        def work(slot):
            while True:
                try:
                    check = waiting.get_nowait()
                except queue.Empty:
                    return
                self.one(check, slot)

        threads = [threading.Thread(target=work, args=(slot,), daemon=True) for slot in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def one(self, check, slot):
        if check.is_for_larder and not self.peer.is_larder:
            result = case.Result(check, "skipped")
        else:
            began = time.monotonic()
            trial = case.Trial(check, self.peer, f"c{next(self.labels)}", slot)
            reason = trial.run()
            outcome = "skipped" if trial.skipped else "passed" if reason is None else "failed"
            result = case.Result(check, outcome, reason or "", time.monotonic() - began)
            with self.lock:
                self.secrets += trial.secrets
        with self.lock:
            self.results.append(result)
            if self.verbose:
                print(f"  {result.outcome:<8}{result.seconds:6.2f} s  {check.section[0]}. {check.name}", flush=True)


def main():
    options = arguments()
    checks, titles = load_checks(options.only)
    if options.list:
        for check in checks:
            print(f"{check.section[0]:>2}. {check.name} (RFC {check.rfc})")
        return 0
    if not checks:
        raise SystemExit(f"conformance: no check matches {options.only}")
    if bool(options.larder) == bool(options.peer):
        raise SystemExit("conformance: --larder PATH or --peer NAME is needed")
    if options.larder:
        peer = peers.Larder(options.jobs, options.larder, options.set, options.tls)
    else:
        peer = {"nginx": peers.Nginx, "varnish": peers.Varnish}[options.peer](options.jobs)
    run = Run(peer, options.jobs, options.verbose)
    began = time.monotonic()
    try:
        peer.start()
    except NotStarted as reason:
        raise SystemExit(f"conformance: {reason}") from None
    try:
        run.all(checks * options.repeat if options.repeat > 1 else checks)
    finally:
        faults = peer.stop()
    faults += [f"the log contains a secret: {secret}" for secret in peers.secrets_in_log(peer.log, run.secrets)]
    is_kept = options.keep or bool(faults and options.larder)
    if not is_kept:
        peer.remove()
    if options.json:
        report.write_json(options.json, run.results, peer.name)
    print(f"conformance of {peer.name}, {time.monotonic() - began:.0f} s")
    report.print_table(run.results, titles)
    (report.print_failures if options.larder or options.verbose else report.print_families)(run.results)
    for fault in faults:
        print(f"\n✗ {fault}")
    if is_kept:
        print(f"\nlogs and files are kept in {peer.directory}")
    failed = bool(faults) or any(result.outcome == "failed" for result in run.results)
    return 1 if failed and options.larder else 0


if __name__ == "__main__":
    sys.exit(main())
