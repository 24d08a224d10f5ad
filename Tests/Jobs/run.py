#!/usr/bin/env python3
"""Jobs over time, with a real service and upstreams whose rate is limited: pauses, deadlines, times, schedules, jobs in lines,
live playlists.

    run.py --larder .build/debug/larder
    run.py --larder .build/debug/larder --only pause,deadlines
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import change  # noqa: E402
import deadlines  # noqa: E402
import lines  # noqa: E402
import live  # noqa: E402
import reactions  # noqa: E402
import schedules  # noqa: E402
import times  # noqa: E402
from harness import checks  # noqa: E402

#: Cases that --brief leaves out.
SLOW = {"deadlines", "large", "slow"}
CASES = [*change.CASES, *deadlines.CASES, *times.CASES, *schedules.CASES, *reactions.CASES, *lines.CASES, *live.CASES]


def main():
    parser = checks.arguments(__doc__, [function.__name__ for function in CASES], brief="without the measurement")
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    results, cases = checks.Checks("jobs"), {function.__name__: function for function in CASES}
    ordinary = [name for name in cases if name not in SLOW or not options.brief]
    chosen = checks.chosen(cases, options.only, ordinary)

    def perform(name):
        with results.part(name, cases[name].__doc__) as part:
            cases[name](part, program, checks.directory(f"jobs-{name}"))

    # Most cases wait; those that measure run alone.
    results.each(perform, chosen, 1 if SLOW & {*chosen} else 2)
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
