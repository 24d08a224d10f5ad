"""Answers the questions of a new maintainer by searches, and checks that the answers are found.

    questions.py [--list]

Each question has the files that answer it, and at most five commands that find them. A command may contain only words
that a reader knows at this point: words of the question, of ARCHITECTURE.md, of the names in the root directory, and of
the output of the commands before it. Prints one line for each breach and exits 1 if there is one. `--list` prints the
commands.
"""

import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 5
#: Question, files in the output of the commands, commands.
QUESTIONS = [
    (
        "Where is the answer 416 decided?",
        ["Sources/CacheCore/HTTP/Caching/ContentPlan.swift", "Sources/CacheCore/HTTP/Caching/ResponseVerdict.swift"],
        ["grep -rnw 416 docs --include=*.md", "grep -rnw 416 Sources --include=ContentPlan* --include=ResponseVerdict*"],
    ),
    (
        "What happens when the disk is full?",
        [
            "docs/internals/full-disk.md", "Sources/CacheEngine/Eviction/SpaceReservations.swift",
            "Sources/CacheStore/Files/SpilledBytes.swift", "Sources/CacheStore/Disk/EmergencyReserve.swift",
            "Sources/CacheEngine/Eviction/Evictor+FullDisk.swift",
        ],
        [
            "grep -n 'full disk' ARCHITECTURE.md",
            "sed -n '/^## /,$p' docs/internals/full-disk.md",
            "grep -rlE '(class|struct) (SpaceReservations|SpilledBytes|EmergencyReserve)|func dropWhole' Sources",
        ],
    ),
    (
        "How do I add a setting?",
        [
            "Sources/LarderServer/Configuration/Setting+Larder.swift", "Sources/CacheCore/Settings/OriginSettings+Table.swift",
            "Sources/CacheCore/Settings/PolicySettings+Table.swift", "openapi.yaml", "docs/configuration.md", "CHANGELOG.md",
            "Tests/LarderServerTests/Configuration/SettingsChangeTests.swift",
        ],
        [
            "grep -rni 'add a setting' CONTRIBUTING.md docs",
            "sed -n '/^## Add a setting/,/^## Add an/p' CONTRIBUTING.md",
            "grep -rl SettingsChangeTests Tests",
        ],
    ),
    (
        "Where is hedging (a second request to the upstream) decided?",
        [
            "Sources/CacheEngine/Fills/FillTransfer+Attempts.swift", "Sources/CacheEngine/Fills/FillLocation.swift",
            "Sources/CacheEngine/Upstreams/OriginHealth.swift",
        ],
        ["grep -rniA4 hedging docs/internals", "grep -rnE 'hedgeDelay|func hedge|mayBeHedged' Sources"],
    ),
    (
        "What happens to a job after a kill?",
        [
            "docs/internals/prefetch.md", "Sources/CacheStore/Catalog/Catalog+Jobs.swift", "Sources/CacheCore/Jobs/PrefetchJob.swift",
            "Sources/CacheEngine/Prefetch/PrefetchQueue.swift", "Sources/CacheEngine/Prefetch/PrefetchQueue+Running.swift",
        ],
        [
            "grep -n job ARCHITECTURE.md",
            "sed -n '/^## Recovery/,$p' docs/internals/prefetch.md",
            "grep -rnE 'struct PrefetchJob|requeueRunningJobs|loadUnfinishedJobs' Sources",
        ],
    ),
    (
        "How do I add a metric?",
        [
            "Sources/CacheEngine/Statistics/TrafficFigures.swift", "Sources/CacheAPI/Figures/StatsReport.swift",
            "Sources/CacheEngine/Statistics/CacheCounters.swift", "docs/operations.md",
        ],
        ["grep -niA8 'a metric' CONTRIBUTING.md", "grep -rlE 'class CacheCounters' Sources"],
    ),
    (
        "Where is the size of the first window decided?",
        [
            "Sources/CacheCore/Fills/FillLedger+Planning.swift", "Sources/CacheCore/Fills/FillLedger.swift",
            "Sources/CacheCore/Fills/ReadAhead.swift",
        ],
        ["grep -rniA3 'first window' docs/internals", "grep -rnE 'firstWindowBytes|firstExposureBytes' Sources"],
    ),
]  # fmt: skip

#: Words of commands that need no source: options, and words of Swift.
FREE = {"include", "class", "struct", "func", "sed", "grep"}


def words(text):
    return {word.lower() for word in re.findall(r"\w+", text) if len(word) > 1}


def unknown(command, known):
    """The words of a command that the reader has not seen."""
    arguments = [part for part in shlex.split(command)[1:] if not re.fullmatch(r"-\w+", part)]
    return sorted(word for word in words(" ".join(arguments)) if word not in FREE and word not in known)


def breaches(question, files, commands):
    if len(commands) > MOST:
        yield f"{len(commands)} commands instead of at most {MOST}"
    known = words(" ".join([question, (ROOT / "ARCHITECTURE.md").read_text(), *(file.name for file in ROOT.iterdir())]))
    output = ""
    for command in commands:
        program = shlex.split(command)
        if program[0] not in ("grep", "sed"):
            yield f"{program[0]} is neither grep nor sed"
            continue
        if strange := unknown(command, known):
            yield f"nothing names {', '.join(strange)} before `{command}`"
        done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT)
        if done.returncode or not done.stdout:
            yield f"`{command}` finds nothing{done.stderr and ': ' + done.stderr.strip()}"
        # The command names the file whose lines it prints.
        output += f"{command}\n{done.stdout}"
        known |= words(done.stdout)
    for file in files:
        if not (ROOT / file).exists():
            yield f"there is no {file}"
        elif file not in output:
            yield f"no command finds {file}"


def main():
    if sys.argv[1:] == ["--list"]:
        for question, _, commands in QUESTIONS:
            print("\n    ".join([question, *commands]))
        return 0
    faults = [f"{question} {breach}" for question, *rest in QUESTIONS for breach in breaches(question, *rest)]
    print("\n".join(faults) if faults else f"questions: {len(QUESTIONS)} questions are answered")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
