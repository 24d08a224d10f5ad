"""The results of a test program: its parts, their checks, times and failures, and the exit status."""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import traceback

from . import process

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCK = threading.Lock()
#: Failures of one part that are printed.
SHOWN = 12


class Broken(Exception):
    """A part cannot go on; the text is the reason."""


class Skipped(Exception):
    """A part cannot run here; the text is the reason."""


def say(text):
    with LOCK:
        print(text, flush=True)


def arguments(description, parts=(), brief="few cases, with installed tools only"):
    """The parser of a test program: --larder, --only with the names of `parts`, and --brief."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--larder", metavar="PATH", help="the program")
    known = f" ({', '.join(parts)})" if parts else ""
    parser.add_argument(
        "--only", metavar="NAMES", default=os.environ.get("ONLY", ""), help=f"beginnings of names, with commas{known}"
    )
    if brief:
        parser.add_argument("--brief", action="store_true", help=brief)
    return parser


def program_of(parser, options):
    """The path of the program under test."""
    if not options.larder:
        parser.error("--larder is required")
    return str(pathlib.Path(options.larder).resolve())


def chosen(names, only, ordinary=None):
    """The names that begin with one of the texts in `only`, separated by commas; without texts, `ordinary` or all."""
    texts = tuple(text for text in only.split(",") if text)
    if not texts:
        return list(names if ordinary is None else ordinary)
    found = [name for name in names if name.startswith(texts)]
    unknown = [text for text in texts if not any(name.startswith(text) for name in names)]
    if unknown:
        raise SystemExit(f"no part is named {', '.join(unknown)}; parts: {', '.join(names)}")
    return found


def directory(name):
    """A temporary directory that is removed at the end of the program."""
    place = pathlib.Path(tempfile.mkdtemp(prefix=f"larder-{name}."))
    process.at_end(shutil.rmtree, place, True)
    return place


def shown(value, most=400):
    """A value for the message of a check: a body can have megabytes."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def reason_of(error):
    """The text of an exception as a failure."""
    if isinstance(error, (Broken, process.NotStarted)):
        return str(error)
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} at {pathlib.Path(at.filename).name}:{at.lineno}"


class Part:
    """One part with its checks. `name` precedes its failures. Failures are printed at once."""

    def __init__(self, name=""):
        self.name, self.count, self.failures, self.notes = name, 0, [], []

    def check(self, holds, sentence, shown=""):
        """`sentence` describes the fault, and `shown` is printed below it if the check does not hold."""
        self.count += 1
        if not holds:
            self.failures.append(sentence)
            name = f"{self.name}: " if self.name else ""
            if len(self.failures) <= SHOWN:
                say(f"  FAILED {name}{sentence}" + (f"\n{shown}" if shown not in ("", None) else ""))
        return bool(holds)

    __call__ = check

    def equal(self, found, expected, subject):
        return self.check(found == expected, f"{subject} is {shown(found)} instead of {shown(expected)}")

    def eventually(self, condition, sentence, seconds=20, pause=0.02):
        """Waits until a condition holds; returns its last value."""
        value = process.wait_until(condition, seconds, pause)
        self.check(value, f"{sentence} (not within {seconds} s)")
        return value

    def reaches(self, figure, expected, subject, seconds=20):
        """Waits until a figure has its value: a response comes before it is counted."""
        process.wait_until(lambda: figure() == expected, seconds)
        return self.equal(figure(), expected, subject)

    def attempt(self, function, *arguments):
        """Calls a function; an exception is a failure. Returns whether it ended without one."""
        try:
            function(*arguments)
            return True
        except Exception as error:  # noqa: BLE001  any exception of a part is a result
            return self.check(False, reason_of(error))

    def note(self, text):
        """A line of the report."""
        self.notes.append(text)


class Checks(Part):
    """All results of a program; `part` collects those of one part."""

    def __init__(self, program):
        super().__init__()
        self.program, self.parts, self.skipped, self.began = program, [], [], time.monotonic()

    @contextlib.contextmanager
    def part(self, name, summary="", part=None):
        """Collects the checks of a block, and prints its line at the end. An exception is a failure of this part only."""
        part, began = part or Part(name), time.monotonic()
        try:
            yield part
        except Skipped as reason:
            return self.skip(name, reason)
        except Exception as error:  # noqa: BLE001  any exception of a part is a result
            part.check(False, reason_of(error))
        self.add(part, summary, time.monotonic() - began)

    def each(self, perform, names, jobs):
        """Performs the parts with these names, several at the same time."""
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(perform, names))

    def add(self, part, summary="", seconds=0.0):
        """Adds the results of a part, and prints its line."""
        with LOCK:
            self.parts.append(part)
        verdict = "FAILED" if part.failures else "ok"
        if len(part.failures) > SHOWN:
            part.note(f"{len(part.failures) - SHOWN} more failures")
        title = f"{part.name}: {summary.splitlines()[0]}" if summary else part.name
        counts = f"{part.count} checks, {seconds:.1f} s" if part.count else f"{seconds:.1f} s"
        say("\n".join([f"  {verdict:6} {title} ({counts})", *(f"         {note}" for note in part.notes)]))

    def skip(self, name, reason):
        self.skipped.append(name)
        say(f"  skip   {name}: {reason}")

    def finish(self, text=""):
        """Prints the last line; returns the exit status."""
        count = self.count + sum(part.count for part in self.parts)
        failed = len(self.failures) + sum(len(part.failures) for part in self.parts)
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        seconds = time.monotonic() - self.began
        print(f"{self.program}: {text}{count} checks, {failed} failed{skipped}, {seconds:.0f} s", flush=True)
        return 1 if failed or not count and not self.skipped else 0


def skip_all(program, reason):
    """Ends a program that cannot run here."""
    print(f"{program}: skipped, {reason}")
    sys.exit(0)
