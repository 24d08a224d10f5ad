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

import os
import pathlib
import sys

sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import checks, venv  # noqa: E402

if __name__ == "__main__" and not {"--list", "-h", "--help"} & {*sys.argv}:
    IS_BRIEF = "--brief" in sys.argv
    venv.enter("accounts/tools", HERE / "requirements.txt", not IS_BRIEF)
    if not IS_BRIEF:
        venv.packages("nginx-light", "haproxy", "openssl")

import scenarios  # noqa: E402
import tools  # noqa: E402
from trial import Trial  # noqa: E402

#: Places in which the secrets are searched, at least.
MIN_PLACES = 40
LOGS = checks.ROOT / ".build" / "accounts" / "logs"


def perform(scenario, program, is_brief, results, totals):
    """Runs one scenario and prints its result."""
    t = Trial(scenario.name, program, tools, is_brief)
    with results.part(scenario.name, scenario.summary, t):
        if missing := tools.missing(scenario.needs):
            raise (checks.Skipped if is_brief else checks.Broken)(f"{', '.join(missing)} is not installed")
        has_failed = not t.attempt(scenario.function, t)
        t.attempt(t.close, has_failed)
        if t.failures:
            for path in t.keep_logs(LOGS):
                t.note(f"log: {os.path.relpath(path)}")
    t.remove()
    with checks.LOCK:
        totals["secrets"] += t.secrets
        totals["places"] |= t.places


def main():
    known = scenarios.load()
    parser = checks.arguments(__doc__, brief="small amounts, and no scenario with slow servers")
    parser.add_argument("--jobs", type=int, default=6, help="scenarios at once")
    parser.add_argument("--list", action="store_true", help="print the scenarios")
    options = parser.parse_args()
    if options.list:
        for scenario in known.values():
            print(f"{scenario.name:22} {scenario.summary}{'' if scenario.is_brief else ' (not brief)'}")
        return 0
    program, results = checks.program_of(parser, options), checks.Checks("accounts")
    ordinary = [name for name, scenario in known.items() if scenario.is_brief or not options.brief]
    chosen, totals = checks.chosen(known, options.only, ordinary), {"secrets": 0, "places": set()}
    results.each(lambda name: perform(known[name], program, options.brief, results, totals), chosen, options.jobs)
    found = len(totals["places"])
    print(f"  {totals['secrets']} secrets were searched in {found} kinds of places")
    if not options.only:
        results.check(found >= MIN_PLACES, f"secrets were searched in {found} places only, at least {MIN_PLACES} are required")
        if len(chosen) < len(known):
            print(f"  {len(known) - len(chosen)} more scenarios run without --brief only; --list names them")
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
