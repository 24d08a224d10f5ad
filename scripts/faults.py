"""Fault injection: damaged files, power cuts, full disks, failing system calls, abusive clients, malformed input.

    faults.py LARDER

Environment: ONLY (kill, power, calls, inject, flips, catalog, capacity, full, small, aborts, load, fuzz; separated by
commas), ROUNDS (of each trial; each has its own default), SEED, BRIEF (few rounds), START. Prints a row at the end of each
trial, and exits 0 if all trials passed.

An interrupted run prints the command that continues it, with ONLY, SEED and START: the number of completed rounds of
the first trial. The random numbers of a round depend only on seed, trial and round number.
"""

import asyncio
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tests"))

import crowd  # noqa: E402
from harness import http as requests  # noqa: E402
from harness.process import Larder, MediaServer, NotStarted, wait_until  # noqa: E402

LARDER = sys.argv[1]
ONLY = [name for name in os.environ.get("ONLY", "").split(",") if name]
SEED = int(os.environ.get("SEED") or time.time())
START = int(os.environ.get("START") or 0)
ROOT = pathlib.Path(__file__).resolve().parent.parent
BRIEF = bool(os.environ.get("BRIEF"))
COLUMNS = [("trial", 10), ("rounds", 9), ("what was done", 56), ("wrong bytes", 13), ("failed", 8), ("seconds", 9), ("", 8)]


def rounds(ordinary, brief):
    return int(os.environ.get("ROUNDS") or (brief if BRIEF else ordinary))


class Pace:
    """Progress and failures of the running trial."""

    name, start, reached, failed = None, 0, 0, []

    @classmethod
    def begin(cls, name, start):
        cls.name, cls.start, cls.reached, cls.failed = name, start, start, []

    @classmethod
    def at(cls, number):
        """Records that all rounds before `number` are complete; returns the random source of that round."""
        cls.reached = max(cls.start, number)
        return random.Random(f"{SEED} {cls.name} {number}")

    @classmethod
    def rounds(cls, count):
        """(number, random source) of each remaining round."""
        for number in range(cls.start, count):
            yield number, cls.at(number)


def line(cells):
    print("  " + "".join(str(cell).ljust(width) for cell, (_, width) in zip(cells, COLUMNS)).rstrip(), flush=True)


class Library:
    """Files of seeded random bytes, and nginx in front of them."""

    def __init__(self, directory, chance, sizes):
        media = directory / "media"
        media.mkdir()
        self.files = {}
        for number, size in enumerate(sizes):
            self.files[f"{number}.bin"] = chance.randbytes(size)
            (media / f"{number}.bin").write_bytes(self.files[f"{number}.bin"])
        self.server = MediaServer(directory, media)

    def key(self, name):
        return f"/o/media/{name}"


class Trial:
    """A Larder process with its store, and the failures of its reads."""

    def __init__(self, directory, library, settings=()):
        self.library, self.wrong, self.failed = library, 0, Pace.failed
        self.service = Larder(
            LARDER, directory, library.server.port, ["policy.minFreeDisk=0", *settings]
        )
        self.store = directory / "store"

    def start(self):
        try:
            self.service.start()
        except NotStarted as reason:
            self.failed.append(str(reason))
            return False
        return True

    def start_reconciled(self):
        """Starts, and waits until the files that earlier runs left without rows are removed."""
        size, self.service.level = self.service.log.stat().st_size, "info"
        started = self.start()
        self.service.level = "warning"
        if started and not within(60, lambda: b"store reconciled" in self.service.log.read_bytes()[size:]):
            self.failed.append("the store was not reconciled within 60 s")
            return False
        return started

    def stop(self):
        code = self.service.stop()
        if code != 0:
            self.failed.append(f"exit code {code}")

    def read(self, name, first, last, must=True, query=""):
        """Reads and compares one range. A truncated response is no wrong byte, but a failure if `must` is set."""
        content, place = self.library.files[name][first:last], self.library.key(name) + query
        try:
            reply = self.service.send("GET", place, {"Range": f"bytes={first}-{last - 1}"})
        except (OSError, http.client.HTTPException) as error:
            if must and not self.service.dying.is_set():
                self.failed.append(f"{name} {first}-{last - 1}: {type(error).__name__} {error}")
            return
        if reply.status == 206 and reply.body != content and (reply.is_complete or not content.startswith(reply.body)):
            self.wrong += 1
            self.failed.append(f"{name} {first}-{last - 1}: WRONG BYTES")
        elif reply.status != 206 and must:
            self.failed.append(f"{name} {first}-{last - 1}: {reply}")
        elif not reply.is_complete and must and not self.service.dying.is_set():
            self.failed.append(f"{name} {first}-{last - 1}: only {len(reply.body)} bytes")

    def read_some(self, chance, count, must=True):
        for _ in range(count):
            name = chance.choice(list(self.library.files))
            size = len(self.library.files[name])
            first = chance.randrange(size)
            self.read(name, first, min(size, first + chance.randint(1, 900_000)), must)

    def read_all(self):
        for name, content in self.library.files.items():
            self.read(name, 0, len(content))

    def scrub(self):
        place = f"/v1/scrubs/{self.service.call('POST', '/v1/scrubs', {'bytesPerSecond': 1 << 40}).json['scrubId']}"
        within(300, lambda: self.service.get(place)["state"] != "running")
        if self.service.get(place)["state"] != "succeeded":
            self.failed.append("the scrub did not succeed")

    def claims(self):
        """[(path, first, last)] of each extent in the catalog."""
        catalog = sqlite3.connect(f"file:{self.store}/catalog.sqlite?mode=ro", uri=True)
        rows = catalog.execute(
            'SELECT id, generation, file_serial, start, "end" FROM assets JOIN extents ON file = file_serial'
        ).fetchall()
        catalog.close()
        return [
            (self.store / "assets" / id.hex()[:2] / f"{id.hex()}-{generation}-{serial:x}.bytes", first, last)
            for id, generation, serial, first, last in rows
        ]

    def verify(self):
        """Exit code and findings of `larder verify`."""
        outcome = subprocess.run(
            [LARDER, "verify", "--output", "json", "--data-directory", self.store], capture_output=True, text=True
        )
        return outcome.returncode, json.loads(outcome.stdout)["findings"] if outcome.returncode < 2 else []


def flip(path, offset, bit):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def flips(directory, chance):
    """Flips bits of files, zeroes and swaps parts of them, and truncates files after a clean stop: each damage is found,
    and no wrong byte is sent."""
    library = Library(directory, chance, [chance.randint(1, 5 << 20) for _ in range(12)])
    trial, done, found, goal = Trial(directory, library), Pace.start, 0, rounds(1000, 40)
    if not trial.start():
        return trial, 0, "nothing"
    trial.stop()
    number = 0
    while done < goal:
        number += 1
        chance = Pace.at(done)
        # `suspect` trusts the files after a clean stop; then a scrub finds the damage.
        mode = ("first", "always", "first", "suspect")[number % 4]
        trial.service.settings[-1] = f"origins.media.verify={mode}"
        if not trial.start():
            break
        trial.read_some(chance, 30)
        trial.stop()
        damaged = damage(trial, chance, min(25, goal - done))
        code, findings = trial.verify()
        for path, offset in damaged:
            runs = [(f["offset"], f["offset"] + f["length"]) for f in findings if f["file"] == path.name and "offset" in f]
            if any(first <= offset < last for first, last in runs):
                found += 1
            else:
                trial.failed.append(f"{path.name} at {offset}: damage not found (exit code {code})")
        done += len(damaged)
        if not trial.start():
            break
        if mode == "suspect":
            trial.scrub()
        trial.read_all()
        trial.stop()
        if trial.verify() != (0, []):
            trial.failed.append("verify has findings after all files were read")
    return trial, done - Pace.start, f"bit flips, zeroes, swaps and truncations in files, {found} found"


def damage(trial, chance, count):
    """Flips bits in extents, zeroes and swaps parts of them, and truncates some files; returns the damage as
    [(path, offset)]."""
    damaged, cut, replaced = [], set(), set()
    claims = trial.claims()
    for _ in range(count):
        path, first, last = chance.choice(claims)
        offset = chance.randrange(first, last)
        if path in cut or path in replaced:
            continue
        kind = chance.random()
        if kind < 0.3 and path not in {other for other, _ in damaged}:
            source = None if kind < 0.15 else chance.choice(claims)
            damaged.append((path, replace(path, offset, min(last - offset, 4096), source)))
            replaced.add(path)
            continue
        if chance.random() < 0.05:
            os.truncate(path, offset)
            cut.add(path)
            damaged = [(other, place) for other, place in damaged if other != path] + [(path, offset)]
        elif (path, offset) not in damaged:
            flip(path, offset, chance.randrange(8))
            damaged.append((path, offset))
    return damaged


def replace(path, offset, length, source):
    """Overwrites bytes with zeroes, or with those of another extent, and returns the first offset that has changed."""
    with open(path, "r+b") as file:
        file.seek(offset)
        before = file.read(length)
        after = bytes(length)
        if source:
            other, first, last = source
            with open(other, "rb") as stream:
                stream.seek(first)
                after = stream.read(min(length, last - first)).ljust(length, b"\0")
        if after == before:
            after = bytes(byte ^ 1 for byte in before)
        file.seek(offset)
        file.write(after)
    return offset + next(index for index in range(length) if after[index] != before[index])


def catalog(directory, chance):
    """Flips bits of the catalog file: the service starts, and no wrong byte is sent."""
    library = Library(directory, chance, [chance.randint(1, 2 << 20) for _ in range(30)])
    trial = Trial(directory, library, ["origins.media.verify=always"])
    count, lost = rounds(100, 6), 0
    for _, chance in Pace.rounds(count):
        if not trial.start():
            break
        trial.read_some(chance, 20, must=False)
        trial.stop()
        path = trial.store / "catalog.sqlite"
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        for _ in range(chance.randint(1, 4)):
            flip(path, chance.randrange(path.stat().st_size), chance.randrange(8))
        for _ in range(2):
            if not trial.start():
                break
            trial.read_some(chance, 20, must=False)
            trial.stop()
        aside = list(trial.store.glob("catalog.sqlite.damaged-*"))
        lost += len([file for file in aside if not file.name.endswith(("-wal", "-shm"))])
        for file in aside:
            file.unlink()
        if not trial.start():
            break
        trial.read_all()
        trial.stop()
    return trial, count - Pace.start, f"bit flips in the catalog, quarantined {lost} times"


def kill(directory, chance):
    """kill -9 during reads; then all files are read again."""
    library = Library(directory, chance, [chance.randint(1, 8 << 20) for _ in range(6)])
    trial, count, reads = Trial(directory, library, ["policy.capacity=32MiB"]), rounds(500, 5), 0
    for number, chance in Pace.rounds(count):
        if not trial.start():
            break
        killer = threading.Timer(chance.choice([0.02, 0.1, 0.4, 1]) * (0.5 + chance.random()), trial.service.kill)
        seeds = [chance.random() for _ in range(8)]

        def reader(seed):
            own = random.Random(seed)
            while not trial.service.dying.is_set():
                trial.read_some(own, 1)

        threads = [threading.Thread(target=reader, args=(seed,)) for seed in seeds]
        killer.start()
        for thread in threads:
            thread.start()
        for thread in [*threads, killer]:
            thread.join()
        reads += 1
        if number % 5 == 4 and trial.start_reconciled():
            trial.read_all()
            trial.stop()
            found, findings = trial.verify()
            if found != 0:
                trial.failed.append(f"larder verify finds damage in round {number}: {findings[:3] or found}")
    return trial, count - Pace.start, "kill -9 with 8 readers"


def capacity(directory, chance):
    """Reads new content at once after a kill of a full store: its files stay within the capacity."""
    limit, margin, count = 32 << 20, 16 << 20, rounds(20, 3)
    library = Library(directory, chance, [6 << 20] * 16)
    trial, peaks = Trial(directory, library, [f"policy.capacity={limit}"]), []
    for number, chance in Pace.rounds(count):
        if not trial.start():
            break
        names = chance.sample(list(library.files), len(library.files))

        def reader(own):
            for name in own:
                trial.read(name, 0, len(library.files[name]))

        threads = [threading.Thread(target=reader, args=(names[share::4],)) for share in range(4)]
        for thread in threads:
            thread.start()
        peak = 0
        while any(thread.is_alive() for thread in threads):
            peak = max(peak, taken(trial.store / "assets"))
            time.sleep(0.005)
        peaks.append(peak)
        if peak > limit + margin:
            trial.failed.append(f"round {number}: the files take {peak >> 20} MiB, the capacity is {limit >> 20} MiB")
        if not within(60, lambda: taken(trial.store / "assets") <= limit):
            trial.failed.append(f"round {number}: the store is above its capacity a minute after the last read")
        if taken(trial.store / "assets") < limit // 2:
            trial.failed.append(f"round {number}: the store is not full: the check is vain")
        trial.service.kill()
    return trial, count - Pace.start, f"starts of a full store, at most {max(peaks, default=0) >> 20} of {limit >> 20} MiB"


def taken(directory):
    """The disk usage of all files below a directory; files can be removed meanwhile."""
    count = 0
    for place, _, names in os.walk(directory):
        for name in names:
            try:
                count += os.stat(os.path.join(place, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return count


def full(directory, chance):
    """The disk is full for some time: reads continue, and bytes are stored again when space is available."""
    library = Library(directory, chance, [6 << 20 for _ in range(12)] + [16 << 20 if BRIEF else 96 << 20])
    trial = Trial(directory, library, ["policy.capacity=none", "policy.minFreeDisk=0"])
    trial.store.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", trial.store], capture_output=True).returncode:
        return trial, 0, "not run: a small file system needs root"
    seconds, reads = rounds(60, 3), 0
    try:
        ballast = trial.store / "ballast"
        if not trial.start():
            return trial, 0, "nothing"
        trial.read_some(chance, 10)
        crowd_out(ballast)
        end = time.monotonic() + seconds
        reads += crowd_in(trial, 6 if BRIEF else 24)
        while time.monotonic() < end:
            trial.read_some(chance, 10)
            reads += 10
        ballast.unlink()
        began = time.monotonic()
        within(30, lambda: hits(trial, chance))
        recovered = time.monotonic() - began
        if recovered > 5:
            trial.failed.append(f"bytes were stored again only after {recovered:.1f} s")
        trial.stop()
    finally:
        subprocess.run(["umount", "-l", trial.store])
    return trial, reads, f"reads in {seconds} s on a full disk, recovered after {recovered:.1f} s"


def crowd_in(trial, count):
    """`count` concurrent reads of large assets, more than fit in memory; returns their number."""
    name, content = max(trial.library.files.items(), key=lambda item: len(item[1]))
    readers = [
        threading.Thread(target=trial.read, args=(name, 0, len(content), True, f"?copy={number}"))
        for number in range(count)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return len(readers)


def small(directory, chance):
    """File systems hardly larger than the catalog: the required free space stays free, and full disks are tolerated."""
    library = Library(directory, chance, [chance.randint(1 << 20, 6 << 20) for _ in range(20)])
    trial, count, done = Trial(directory, library, ["policy.capacity=none"]), rounds(24, 2), Pace.start
    trial.store.mkdir()
    for number, chance in Pace.rounds(count):
        # The store itself occupies up to 8 MiB: the catalog with its log, directories, the reserve.
        size, kind = chance.choice([16, 20, 24, 40, 64]) << 20, chance.choice(["tmpfs", "ext4"])
        free = chance.choice([size // 16, size // 8, size // 4])
        trial.service.settings[-1] = f"policy.minFreeDisk={free}"
        if not mount(directory, trial.store, kind, size):
            return trial, 0, "not run: a small file system needs root"
        before, label = len(trial.failed), f"{kind}, {size >> 20} MiB, {free >> 10} KiB required free: "
        try:
            fill_up(trial, chance, free)
        finally:
            subprocess.run(["umount", "-l", trial.store])
        trial.failed[before:] = [label + text for text in trial.failed[before:]]
        done = number + 1
    return trial, done - Pace.start, "small file systems, filled by reads and by another program"


def mount(directory, place, kind, size):
    """Mounts a file system of the kind; tmpfs instead if ext4 is not available. Returns whether it is mounted."""
    if kind == "ext4" and shutil.which("mkfs.ext4"):
        image = directory / "image"
        with open(image, "wb") as file:
            file.truncate(size)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        if subprocess.run(["mount", "-o", "loop", image, place], capture_output=True).returncode == 0:
            return True
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True).returncode == 0


def fill_up(trial, chance, free):
    """Reads more than fits; then on a disk filled by another program, also after kill -9; then with space again."""
    if not trial.start():
        return
    trial.read_all()
    trial.read_some(chance, 60)
    if not within(10, lambda: free_bytes(trial.store) >= free):
        trial.failed.append(f"{free_bytes(trial.store)} bytes are free")
    ballast = trial.store / "ballast"
    crowd_out(ballast)
    trial.read_some(chance, 20)
    for _ in range(2):
        trial.service.kill()
        if not trial.start():
            return
        trial.read_some(chance, 20)
    name = chance.choice(list(trial.library.files))
    status, text = trial.service.ask("POST", "/v1/purges", {"prefix": trial.library.key(name)})
    if status != 200:
        trial.failed.append(f"a purge returned status {status}: {text[:200]}")
    ballast.unlink()
    if not within(5, lambda: hits(trial, chance)):
        trial.failed.append("no bytes are stored 5 s after space is available again")
    trial.read_some(chance, 20)
    trial.stop()
    code, findings = trial.verify()
    if code:
        trial.failed.append(f"verify finds {findings[:3]}")


def crowd_out(ballast):
    with open(ballast, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 16, 1 << 12):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


def free_bytes(place):
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def within(seconds, holds):
    return wait_until(holds, seconds)


def hits(trial, chance):
    """Whether a second read of a random range is a hit."""
    name = chance.choice(list(trial.library.files))
    first = chance.randrange(len(trial.library.files[name]) - 1000)
    trial.read(name, first, first + 1000)
    reply = trial.service.send("GET", trial.library.key(name), {"Range": f"bytes={first}-{first + 999}"})
    return ";hit" in reply.fields.get("cache-status", "").replace(" ", "")


def aborts(directory, chance):
    """Clients send requests and disconnect: no fills, readers or descriptors remain."""
    library = Library(directory, chance, [6 << 20 for _ in range(6)])
    trial, count = Trial(directory, library), rounds(100_000, 500)
    if not trial.start():
        return trial, 0, "nothing"
    trial.read_some(chance, 5)
    before = descriptors(trial)

    def client(seed, share):
        own = random.Random(seed)
        for _ in range(share):
            with requests.connection(trial.service.port) as connection:
                try:
                    name, first = own.choice(list(library.files)), own.randrange(5 << 20)
                    connection.request("GET", library.key(name), headers={"Range": f"bytes={first}-"})
                    if own.random() < 0.3:
                        connection.getresponse().read(own.randrange(1, 100_000))
                except (OSError, http.client.HTTPException) as error:
                    trial.failed.append(f"{type(error).__name__} {error}")

    threads = [threading.Thread(target=client, args=(chance.random(), count // 16)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not within(60, lambda: not left(trial)):
        trial.failed.append(f"left behind: {left(trial)}")
    after = descriptors(trial)
    if after > before + 40:
        trial.failed.append(f"{before} descriptors before, {after} after")
    trial.read_all()
    trial.stop()
    return trial, count // 16 * 16, f"aborted requests; descriptors {before} before, {after} after"


def load(directory, chance):
    """Idle, excess and slow clients: the service continues in bounded memory."""
    library, count = Library(directory, chance, [6 << 20 for _ in range(3)]), rounds(10_000, 300)
    limits = [f"limits.maxConnections={count}", f"limits.headerTimeout={crowd.HEADER_SECONDS}s", f"limits.maxConcurrentReads={crowd.READS}"]
    trial = Trial(directory, library, [*limits, "limits.idleTimeout=10m"])
    if not trial.start():
        return trial, 0, "nothing"
    trial.read_all()
    before = descriptors(trial)
    done = asyncio.run(crowd.Crowd(trial, count).run())
    if not within(60, lambda: not left(trial) and descriptors(trial) <= before + 40):
        trial.failed.append(f"left behind: {left(trial)}; {before} descriptors before, {descriptors(trial)} after")
    trial.read_all()
    trial.stop()
    return trial, count, done


def left(trial):
    """Number of fills, and of readers of assets."""
    assets = trial.service.items("/v1/assets")
    return len(trial.service.items("/v1/fills")) + sum(asset["activeReaders"] + asset["activeFills"] for asset in assets)


def descriptors(trial):
    return trial.service.taken()[1]


INJECTED = [
    ("pwrite64", "EIO"), ("pwrite64", "ENOSPC"), ("pwrite64", "EINTR"), ("fdatasync", "EIO"), ("fdatasync", "EDQUOT"),
    ("pread64,preadv2", "EIO"), ("pread64,preadv2", "EINTR"), ("openat,openat2", "EMFILE"), ("openat,openat2", "EACCES"),
    ("fallocate", "EIO"), ("ftruncate", "EIO"), ("unlink,unlinkat", "EIO"), ("sendfile", "EIO"), ("recvfrom", "ECONNRESET"),
    ("socket,accept4", "ENFILE"), ("mmap", "ENOMEM"), ("fstat,newfstatat", "EIO"), ("statfs", "EIO"),
]  # fmt: skip


def threads(process):
    """The threads of a process, except libdispatch's event thread.

    That thread reads /proc occasionally and aborts the process if it cannot open a file. The service does no work on
    it, and reserves descriptors for it.
    """
    tasks = pathlib.Path(f"/proc/{process.pid}/task")
    for task in tasks.iterdir():
        waits = "epoll" in (task / "wchan").read_text().replace("ep_poll", "epoll")
        if not waits or (task / "comm").read_text().startswith("NIO"):
            yield task.name


def inject(directory, chance):
    """Every n-th system call of a kind fails (strace): responses are correct or truncated."""
    subprocess.run([ROOT / "scripts" / "apt", "strace"], check=True)
    library = Library(directory, chance, [6 << 20 for _ in range(6)])
    trial = Trial(directory, library, ["policy.capacity=20MiB"])
    seconds, done = 3 if not BRIEF else 1, 0
    if not trial.start():
        return trial, 0, "nothing"
    for number, own in Pace.rounds(rounds(3 * len(INJECTED), 2)):
        calls, error = INJECTED[number % len(INJECTED)]
        step = own.choice([2, 5, 11])
        tracer = subprocess.Popen(
            ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-p", ",".join(threads(trial.service.process)), "-e",
              f"inject={calls}:error={error}:when={own.randrange(1, 5)}+{step}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + seconds
        while time.monotonic() < end and trial.service.process.poll() is None:
            trial.read_some(own, 5, must=False)
            done += 5
        tracer.terminate()
        tracer.wait()
        if trial.service.process.poll() is not None:
            trial.failed.append(f"{calls} {error} every {step}th: Larder exited with {trial.service.process.returncode}")
            trial.start()
            continue
        before = len(trial.failed)
        trial.read_some(own, 10)
        if len(trial.failed) > before:
            trial.failed[before:] = [f"after {calls} {error}: {text}" for text in trial.failed[before:]]
    trial.read_all()
    trial.stop()
    if trial.verify()[0] > 1:
        trial.failed.append("the store cannot be verified")
    return trial, number + 1, f"kinds of failing calls, {done} reads"


class Sweep:
    """A trial that consists of tests: the same members for the table."""

    def __init__(self):
        self.wrong, self.failed = 0, Pace.failed

    def run(self, tests):
        """Runs the named tests with all cases; returns the number of cases and their description."""
        build = subprocess.run(["scripts/debug", "--build-tests"], cwd=ROOT, capture_output=True, text=True)
        if build.returncode:
            self.failed.append("the tests do not build: " + build.stdout[-500:])
            return 0, "nothing"
        environment = dict(os.environ, FAULTS=Pace.name, SEED=str(SEED), START=str(Pace.start))
        # The same order of sets and dictionaries, so that a seed produces the same operations in each run.
        environment["SWIFT_DETERMINISTIC_HASHING"] = "1"
        place = subprocess.run(["scripts/debug", "--show-bin-path"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        # Without `swift test`, which buffers the output.
        command = [f"{place}/larderPackageTests.xctest", "--no-parallel", "--testing-library", "swift-testing", "--filter", tests]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        done, what, issues = 0, "the tests did not end", []
        try:
            for text in process.stdout:
                words = text.split(maxsplit=3)
                if text.startswith("SWEEP START="):
                    Pace.at(int(text.split("=")[1]))
                elif text.startswith("SWEEP FAILED "):
                    failure = text.removeprefix("SWEEP FAILED ").strip()
                    self.failed += [failure] if failure not in self.failed else []
                elif text.startswith("SWEEP "):
                    done, what, self.wrong = int(words[1]), words[3].strip(), int(words[2])
                elif "recorded an issue" in text or "Fatal error" in text:
                    issues.append(text.strip()[:500])
        finally:
            process.terminate()
        if process.wait() and not self.failed:
            self.failed += issues or ["the tests crashed"]
        return done, what


def power(directory, chance):
    """Simulates a power cut after each disk operation of a store's life and verifies the result."""
    sweep = Sweep()
    return sweep, *sweep.run("PowerCutTests")


def calls(directory, chance):
    """Each disk operation fails once with each error."""
    sweep = Sweep()
    return sweep, *sweep.run("DiskCallFaultTests")


def fuzz(directory, chance):
    """Malformed input: every parser returns, within a time limit."""
    trial, count, slowest = Sweep(), rounds(10_000_000, 20_000), 0.0
    command = [pathlib.Path(LARDER).with_name("LarderFuzz"), str(count - Pace.start), str(SEED), str(Pace.start)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for text in process.stdout:
            if text.startswith("from "):
                Pace.at(int(text.split()[1]))
            elif ": slowest " in text:
                slowest = max(slowest, float(text.split(": slowest ")[1].split()[0]))
            elif not text.startswith("inputs "):
                trial.failed.append(text.strip())
    finally:
        process.terminate()
    if process.wait() and not trial.failed:
        trial.failed.append(f"the parser crashed on an input after number {Pace.reached}")
    return trial, count - Pace.start, f"malformed inputs, slowest {slowest:.1f} ms of processor time"


TRIALS = {
    "kill": kill, "power": power, "calls": calls, "inject": inject, "flips": flips, "catalog": catalog,
    "capacity": capacity, "full": full, "small": small, "aborts": aborts, "load": load, "fuzz": fuzz,
}  # fmt: skip


def main():
    strangers = [name for name in ONLY if name not in TRIALS]
    if strangers:
        raise SystemExit(f"faults: ONLY must be a list of: {', '.join(TRIALS)}")
    print(f"faults: seed {SEED}")
    line([name for name, _ in COLUMNS])
    names, held = [name for name in TRIALS if not ONLY or name in ONLY], True
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for place, name in enumerate(names):
        try:
            held = go(name, START if place == 0 else 0) and held
        except KeyboardInterrupt:
            rest = ",".join(names[place:])
            show(Pace.failed)
            print(f"faults: interrupted; to continue: make faults ONLY={rest} SEED={SEED} START={Pace.reached}")
            return 1
    return 0 if held else 1


def go(name, start):
    """Runs a trial and prints its row; returns whether it passed."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"larder-faults-{name}."))
    Pace.begin(name, start)
    began = time.monotonic()
    trial, done, what = TRIALS[name](directory, random.Random(SEED))
    if isinstance(trial, Trial):
        trial.library.server.stop()
    is_good = not trial.wrong and not trial.failed
    seconds = f"{time.monotonic() - began:.1f}"
    line([name, done, what, trial.wrong, len(trial.failed), seconds, "held" if is_good else "FAILED"])
    show(trial.failed)
    if is_good:
        shutil.rmtree(directory)
    else:
        print(f"      files and logs are in {directory}")
    return is_good


def show(failures):
    for failure in failures[:5]:
        print(f"      {failure}")


if __name__ == "__main__":
    sys.exit(main())
