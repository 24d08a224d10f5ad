#!/usr/bin/env python3
"""Mixed soak test: readers, aborted and slow reads, jobs, purges, scrubs, evictions, stalls of the upstream, new generations,
kills and restarts at the same time, on a plain and an encrypted origin. Writes a report.

    mixed.py --larder .build/release/larder --minutes 60 --report report.json

Every byte is compared with the generation that the response names. A failed read is a fault, unless the service was
being killed or restarted, the upstream was stalled, or the file has just been changed or purged: then a response can end
early, as a broken one.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import checks, http, process  # noqa: E402
from harness.upstream import Upstream, asset, pattern  # noqa: E402

FILES, SIZE, CAPACITY = 60, 6 << 20, 192 << 20
READERS = 24
#: Disk blocks above the capacity: the fills in progress, the catalog with its log, and the reserve.
MORE_DISK = 64 << 20
#: Growth of the resident memory and of the open files from the first quarter to the end.
MORE_RESIDENT, MORE_FILES = 48 << 20, 64
#: Seconds after a change or a purge in which responses of the file may be cut: the lifetime, and a slow read.
CUT = 90
#: Seconds between the actions of one kind, and before the first.
JOB, PURGE, SCRUB, CHANGE, STALL, END = 15, 40, 60, 30, 170, 240


class Films(Upstream):
    """An upstream whose files have generations; the entity tag names the one of a response."""

    def __post_init__(self):
        self.generations = {}
        super().__post_init__()

    def answer(self, request):
        name = request.path.rsplit("/", 1)[-1]
        seed = self.seed(name)
        return asset(SIZE, etag=f'"{seed}"', cache_control="max-age=20", seed=seed).answer(request)

    def seed(self, name):
        return int(name) * 4 + self.generations.get(name, 0) % 4

    def change(self, name):
        self.generations[name] = self.generations.get(name, 0) + 1


class Soak:
    """The service with its clients, and what they have seen."""

    def __init__(self, program, directory, minutes, chance):
        self.chance, self.ended, self.lock = chance, threading.Event(), threading.Lock()
        self.end = time.monotonic() + minutes * 60
        self.began, self.minutes = time.monotonic(), minutes
        self.upstream = Films()
        keys = directory / "keys"
        keys.mkdir(mode=0o700)
        (keys / "first").write_bytes(bytes(range(1, 33)))
        (keys / "first").chmod(0o600)
        settings = [
            f"policy.capacity={CAPACITY}", f"encryption.keysDirectory={keys}", "encryption.activeKey=first",
            *process.origin("films", self.upstream.url), *process.origin("sealed", self.upstream.url, encrypt="true"),
        ]  # fmt: skip
        self.larder = process.Larder(program, directory, None, settings)
        #: Times from which and until which failed reads are expected.
        self.excuses = []
        #: The time of the last change or purge of each name.
        self.touched = {}
        self.scrubbing = threading.Lock()
        self.counts = dict.fromkeys(
            ["reads", "bytes", "aborted", "excused", "cut", "jobs", "purges", "scrubs", "changes", "stalls", "kills", "restarts"], 0
        )
        self.faults, self.waits, self.starts, self.samples, self.bad = [], [], [], [], []

    def count(self, name, more=1):
        with self.lock:
            self.counts[name] += more

    def fault(self, text):
        with self.lock:
            self.faults.append(f"{time.monotonic() - self.began:.0f} s: {text}")
        checks.say(f"fault: {text}")

    def is_excused(self, began):
        return any(begin <= time.monotonic() and began <= end for begin, end in list(self.excuses))

    def excuse(self):
        """Begins a time of expected failures; the caller sets its end."""
        self.excuses.append([time.monotonic() - 0.5, float("inf")])
        return self.excuses[-1]

    # Clients

    def reader(self, number):
        chance = random.Random(number)
        while not self.ended.is_set():
            name = min(FILES - 1, int(chance.expovariate(1 / 12)))
            first = chance.randrange(SIZE)
            end = min(SIZE, first + chance.choice([1 << 10, 64 << 10, 512 << 10, SIZE]))
            target = f"/o/{chance.choice(['films', 'sealed'])}/{name}"
            began = time.monotonic()
            try:
                self.read(target, first, end, chance)
            except (OSError, http.ERROR, ValueError) as error:
                if "WRONG" not in str(error) and self.is_excused(began):
                    self.count("excused")
                    self.ended.wait(0.2)
                elif " bytes" in str(error) and time.monotonic() - self.touched.get(name, -CUT) < CUT:
                    self.count("cut")
                else:
                    self.fault(f"{target} {first}-{end - 1}: {type(error).__name__} {error}")

    def read(self, target, first, end, chance):
        began, is_aborted, is_slow = time.monotonic(), chance.random() < 0.1, chance.random() < 0.03
        with http.connection(self.larder.port, timeout=90) as opened:
            opened.request("GET", target, headers={"Range": f"bytes={first}-{end - 1}"})
            response = opened.getresponse()
            wait = time.monotonic() - began
            if response.status != 206:
                raise ValueError(f"{response.status} {response.read(300)}")
            seed, offset = int(response.getheader("ETag").strip('"')), first
            while offset < end:
                part = response.read(min(64 << 10, end - offset))
                if not part:
                    raise ValueError(f"{offset - first} of {end - first} bytes")
                if part != pattern(offset, offset + len(part), seed):
                    raise ValueError(f"WRONG BYTES in {offset}-{offset + len(part) - 1} of generation {seed}")
                offset += len(part)
                if is_aborted and offset - first > (end - first) // 2:
                    self.count("aborted")
                    break
                if is_slow:
                    self.ended.wait(0.05)
        with self.lock:
            self.counts["reads"] += 1
            self.counts["bytes"] += offset - first
            self.waits.append((time.monotonic() - self.began, wait))

    # Administrators

    def every(self, seconds, action):
        """Runs an action at intervals; an error is a fault unless it is excused."""
        while not self.ended.wait(seconds):
            began = time.monotonic()
            try:
                action()
            except (OSError, http.ERROR, ValueError, KeyError, RuntimeError) as error:
                if not self.is_excused(began):
                    self.fault(f"{action.__name__}: {type(error).__name__} {error}")

    def job(self):
        names = self.chance.sample(range(FILES), 4)
        self.larder.job(*({"origin": "films", "path": str(name)} for name in names))
        self.count("jobs")

    def purge(self):
        first = self.chance.randrange(1, 6)
        prefix = f"/o/{self.chance.choice(['films', 'sealed'])}/{first}"
        self.touch(*(number for number in range(FILES) if str(number).startswith(str(first))))
        reply = self.larder.call("POST", "/v1/purges", {"prefix": prefix})
        if reply.status not in (200, 202):
            raise ValueError(f"{prefix}: {reply}")
        self.count("purges")

    def touch(self, *names):
        self.touched |= dict.fromkeys(names, time.monotonic())

    def change(self):
        name = self.chance.randrange(FILES)
        self.touch(name)
        self.upstream.change(str(name))
        self.count("changes")

    def scrub(self):
        """Checks all stored bytes: none may be damaged."""
        with self.scrubbing:
            self.scrub_alone()

    def scrub_alone(self):
        made = self.larder.call("POST", "/v1/scrubs", {})
        if made.status not in (200, 201, 202):
            raise ValueError(str(made))
        place = f"/v1/scrubs/{made.json['scrubId']}"
        process.wait_until(lambda: self.larder.get(place).get("state") != "running", 120, 0.2)
        report = self.larder.get(place)
        if report.get("badBlocks") or report.get("damagedRows"):
            self.bad.append(report)
            self.fault(f"a scrub found {report['badBlocks']} bad blocks, {report['damagedRows']} damaged rows")
        self.count("scrubs")

    def stall(self):
        excuse = self.excuse()
        self.upstream.gate.clear()
        self.ended.wait(8)
        self.upstream.gate.set()
        excuse[1] = time.monotonic() + 1
        self.count("stalls")

    def stop_and_start(self):
        """Kills the service, or ends it in order, and starts it again."""
        excuse, is_kill = self.excuse(), self.chance.random() < 0.7
        self.larder.process.send_signal(signal.SIGKILL if is_kill else signal.SIGTERM)
        self.larder.process.wait(90)
        began = time.monotonic()
        self.larder.start()
        self.starts.append(time.monotonic() - began)
        excuse[1] = time.monotonic()
        self.count("kills" if is_kill else "restarts")
        self.scrub()

    def sample(self):
        number = self.larder.process.pid
        status = pathlib.Path(f"/proc/{number}/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0]) << 10
        disk = 0
        for place, _, files in os.walk(self.larder.store / "assets"):
            for file in files:
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    disk += os.lstat(os.path.join(place, file)).st_blocks * 512
        self.samples.append((time.monotonic() - self.began, resident, len(os.listdir(f"/proc/{number}/fd")), disk))

    # The run

    def run(self):
        self.larder.start()
        tasks = [lambda number=number: self.reader(number) for number in range(READERS)]
        actions = [
            (JOB, self.job), (PURGE, self.purge), (SCRUB, self.scrub), (CHANGE, self.change), (STALL, self.stall),
            (END, self.stop_and_start), (2, self.sample),
        ]  # fmt: skip
        share = min(1, self.minutes / 10)
        tasks += [lambda pause=pause, action=action: self.every(max(2, pause * share), action) for pause, action in actions]
        threads = [threading.Thread(target=task, daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        while time.monotonic() < self.end:
            time.sleep(min(60, max(0.1, self.end - time.monotonic())))
            with self.lock:
                checks.say(f"{(time.monotonic() - self.began) / 60:.1f} minutes: {self.counts}, {len(self.faults)} faults")
        self.ended.set()
        for thread in threads:
            thread.join(120)
        self.scrub()
        code = self.larder.stop()
        if code:
            self.fault(f"exit status {code}")

    def report(self):
        """The figures of the run, and what they break."""
        quarter = [each for each in self.samples if each[0] < self.minutes * 15] or self.samples
        last = [each for each in self.samples if each[0] > self.minutes * 45] or self.samples
        resident = [max(each[1] for each in part) for part in (quarter, last)]
        files = [max(each[2] for each in part) for part in (quarter, last)]
        waits = sorted(wait for _, wait in self.waits)
        disk = max(each[3] for each in self.samples)
        broken = [f"{len(self.faults)} faults"] if self.faults else []
        if disk > CAPACITY + MORE_DISK:
            broken.append(f"{disk >> 20} MiB on disk with a capacity of {CAPACITY >> 20} MiB")
        if self.minutes >= 10 and resident[1] > resident[0] + MORE_RESIDENT:
            broken.append(f"memory grew from {resident[0] >> 20} to {resident[1] >> 20} MiB")
        if self.minutes >= 10 and files[1] > files[0] + MORE_FILES:
            broken.append(f"open files grew from {files[0]} to {files[1]}")
        return {
            "minutes": self.minutes, "counts": self.counts, "faults": self.faults[:50], "badScrubs": self.bad,
            "residentMiB": {"firstQuarter": resident[0] >> 20, "lastQuarter": resident[1] >> 20},
            "openFiles": {"firstQuarter": files[0], "lastQuarter": files[1]},
            "diskMiB": {"peak": disk >> 20, "capacity": CAPACITY >> 20},
            "startSeconds": {"longest": round(max(self.starts, default=0), 2), "count": len(self.starts)},
            "firstByteSeconds": {
                name: round(waits[min(len(waits) - 1, int(len(waits) * share))], 4)
                for name, share in (("median", 0.5), ("p99", 0.99), ("longest", 1))
            },
            "broken": broken,
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--larder", required=True, metavar="PATH", help="the program")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("MINUTES") or 60), help="the duration (60)")
    parser.add_argument("--report", metavar="FILE", default=os.environ.get("REPORT"), help="write the report as JSON")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED") or time.time()), help="repeats a run")
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="larder-mixed."))
    print(f"mixed soak: {options.minutes:g} minutes, seed {options.seed}")
    soak = Soak(options.larder, directory, options.minutes, random.Random(options.seed))
    soak.run()
    report = soak.report()
    text = json.dumps({"seed": options.seed, **report}, indent=1)
    print(text)
    if options.report:
        pathlib.Path(options.report).write_text(text + "\n")
    if report["broken"]:
        print(f"mixed soak: FAILED: {', '.join(report['broken'])} (logs are in {directory})")
        return 1
    shutil.rmtree(directory)
    print("mixed soak: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
