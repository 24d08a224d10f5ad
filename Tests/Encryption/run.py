#!/usr/bin/env python3
"""Checks encryption at rest with the real program: no plain text on the disk, master keys, rotation, erasure, changes of
the setting, bad input and tampered stores.

    run.py --larder .build/debug/larder
    run.py --larder .build/debug/larder --only disk,keys
    run.py --larder .build/debug/larder --brief
"""

import concurrent.futures
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import conversion  # noqa: E402
import erasures  # noqa: E402
import keys  # noqa: E402
import kills  # noqa: E402
import stores  # noqa: E402
from harness import checks  # noqa: E402
from stage import Stage  # noqa: E402

CASES = {
    "disk": (stores.disk, "no plain text in the store, also after kills"),
    "evict": (stores.evict, "evictions beside reads and kills"),
    "kills": (kills.kills, "kills of a full store beside readers, evictions and scrubs"),
    "keys": (keys.missing, "lost, wrong and restored master keys"),
    "rotation": (keys.rotation, "rotated and half-rotated stores"),
    "shred": (erasures.shred, "receipts, readers and copies"),
    "many": (erasures.many, "erasure of many assets, in the background and by plans"),
    "torn": (erasures.torn, "erasures that do not come to their end"),
    "switch": (stores.switch, "encrypt switched on and off"),
    "convert": (conversion.convert, "assets rewritten in the other form, beside kills and readers"),
    "input": (keys.bad_input, "key files and commands that are refused"),
    "tamper": (stores.tamper, "changed files and tables"),
}

#: Parts that a brief run omits.
LONG = ("evict", "kills", "rotation", "many")


def main():
    parser = checks.arguments(__doc__, tuple(CASES), "fewer files and kills, three parts at a time")
    options = parser.parse_args()
    program, results = checks.program_of(parser, options), checks.Checks("encryption")

    def run(name):
        function, summary = CASES[name]
        with results.part(name, summary) as part:
            stage = Stage(program, checks.directory(f"encryption-{name}"), options.brief, part)
            try:
                function(stage)
            finally:
                stage.close()

    ordinary = [name for name in CASES if name not in LONG] if options.brief else None
    with concurrent.futures.ThreadPoolExecutor(3 if options.brief else 1) as pool:
        list(pool.map(run, checks.chosen(tuple(CASES), options.only, ordinary)))
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
