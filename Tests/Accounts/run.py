#!/usr/bin/env python3
"""Tests origins with accounts, permissions of readers and reloads: Larder in front of object stores, authorization servers
and services with expiring links.

    run.py --larder .build/release/larder
    run.py --larder .build/debug/larder --only s3Static,herd
    run.py --larder .build/debug/larder --brief
    run.py --list

Each scenario has its own Larder, its own servers on loopback and its own secrets. At its end every secret is searched in
all places in which the service shows, logs or stores anything. scripts/accounts installs the packages for the real
servers; without them their scenarios are reported as skipped with --brief, and as failed otherwise.
"""

import argparse
import concurrent.futures
import os
import pathlib
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "scripts"), str(HERE.parent / "Conformance")]

import scenarios  # noqa: E402
import tools  # noqa: E402
from trial import Broken, Trial  # noqa: E402

#: Places in which the secrets are searched, at least.
MIN_PLACES = 40
#: Failures of one scenario that are printed.
SHOWN = 12
LOGS = ROOT / ".build" / "accounts" / "logs"
LOCK = threading.Lock()


class Totals:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.checks, self.secrets = 0, 0, 0, 0, 0
        self.places = set()


def say(text):
    with LOCK:
        print(text, flush=True)


def perform(scenario, program, is_brief, totals):
    """Runs one scenario and prints its result."""
    missing = tools.missing(scenario.needs)
    if missing and is_brief:
        totals.skipped += 1
        return say(f"skip {scenario.name}: {', '.join(missing)} is not installed")
    began = time.monotonic()
    t = Trial(scenario.name, program, tools, is_brief)
    is_broken = True
    try:
        if missing:
            raise Broken(f"{', '.join(missing)} is not installed")
        scenario.function(t)
        is_broken = False
    except Broken as reason:
        t.check(False, str(reason))
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        t.check(False, f"{error!r} at {pathlib.Path(at.filename).name}:{at.lineno}")
    finally:
        try:
            t.close(is_broken)
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            t.check(False, f"the search for secrets ends with {error!r} at {pathlib.Path(at.filename).name}:{at.lineno}")
    report(t, scenario, time.monotonic() - began, totals)


def report(t, scenario, seconds, totals):
    with LOCK:
        totals.checks += t.checks
        totals.secrets += t.secrets
        totals.places |= t.places
        totals.failed += bool(t.failures)
        totals.passed += not t.failures
    lines = [f"{'FAIL' if t.failures else 'ok  '} {scenario.name}: {scenario.summary} ({t.checks} checks, {seconds:.1f} s)"]
    lines += [f"       {note}" for note in t.notes]
    lines += [f"     - {failure[:700]}" for failure in dict.fromkeys(t.failures[:SHOWN])]
    if len(t.failures) > SHOWN:
        lines.append(f"     - and {len(t.failures) - SHOWN} more")
    if t.failures:
        lines += [f"       log: {os.path.relpath(path)}" for path in t.keep_logs(LOGS)]
    say("\n".join(lines))
    t.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--larder", metavar="PATH")
    parser.add_argument("--only", default="", metavar="NAMES", help="scenarios, separated by commas; a prefix selects several")
    parser.add_argument("--brief", action="store_true", help="small amounts, and no scenario with slow servers")
    parser.add_argument("--jobs", type=int, default=6, help="scenarios at once")
    parser.add_argument("--list", action="store_true", help="print the scenarios")
    options = parser.parse_args()
    known = list(scenarios.load().values())
    if options.list:
        for scenario in known:
            print(f"{scenario.name:22} {scenario.summary}{'' if scenario.is_brief else ' (not brief)'}")
        return
    if not options.larder:
        parser.error("--larder is required")
    program = str(pathlib.Path(options.larder).resolve())
    only = [name for name in options.only.split(",") if name]
    chosen = [s for s in known if (any(s.name.startswith(name) for name in only) if only else s.is_brief or not options.brief)]
    if not chosen:
        parser.error(f"no scenario has a name of {options.only}")
    totals = Totals()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda scenario: perform(scenario, program, options.brief, totals), chosen))
    print(f"     {totals.checks} checks; {totals.secrets} secrets were searched in {len(totals.places)} kinds of places")
    if not only and totals.failed == 0 and len(totals.places) < MIN_PLACES:
        print(f"FAIL places: secrets were searched in {len(totals.places)} places only, at least {MIN_PLACES} are required")
        totals.failed += 1
    if options.brief and not only:
        print(f"     {len(known) - len(chosen)} more scenarios run without --brief only; --list names them")
    print(f"accounts: {totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    sys.exit(1 if totals.failed else 0)


if __name__ == "__main__":
    main()
