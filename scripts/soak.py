"""Soak test: 200 readers of one cold file, rounds of kill -9 during reads, 50 readers of five times the capacity, hostile
clients and upstreams, and the memory after peaks.

Every byte is compared with the original.

    soak.py LARDER

Environment: ROUNDS (50) of kill; SECONDS (600) of eviction and hostile; READERS (50) and PIECE (32 KiB) of eviction;
ONLY (kill, readers, eviction, hostile, memory), SEED, MEGABYTES (256), BRIEF (fewer hostile clients), TMPDIR. Exits 0 if
every scenario passed.
"""

import asyncio
import hashlib
import http.client
import json
import mmap
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tests"))

import hostile  # noqa: E402
import s3fifo  # noqa: E402
from harness import ranges  # noqa: E402
from harness.process import Larder, MediaServer, NotStarted, free_port, origin  # noqa: E402

LARDER = sys.argv[1]
ROUNDS = int(os.environ.get("ROUNDS", "50"))
SECONDS = int(os.environ.get("SECONDS", "600"))
ONLY = os.environ.get("ONLY", "")
SEED = int(os.environ.get("SEED", str(int(time.time()))))
PIECE = int(os.environ.get("PIECE", "32")) << 10
READERS = int(os.environ.get("READERS", "50"))
LENGTH = int(os.environ.get("MEGABYTES", "256")) << 20
CHUNK = 256 << 10
RESIDENT_LIMIT = 150 << 20
RATIO_LIMIT = 1.01
HIT_TOLERANCE = 0.01
#: Permitted growth of memory and descriptors from 20 % of the run to its end, for runs of 5 minutes or more.
MORE_RESIDENT, MORE_DESCRIPTORS = 16 << 20, 32


BRIEF = bool(os.environ.get("BRIEF"))
#: Hostile clients: silent followers of events, connections, and idle connections, which are more than the connections.
FOLLOWERS, CONNECTIONS, IDLE = (100, 300, 360) if BRIEF else (500, 1000, 1200)
HOSTILE_RESIDENT, HOSTILE_SECONDS, HOSTILE_SHARE, HOSTILE_READERS = 400 << 20, 1.0, 0.99, 40 if BRIEF else 100
#: Memory after a peak: the growth above the memory before it, after a time of rest.
MORE_AFTER_PEAK, REST_SECONDS = 0.30, 60


class Original:
    """A file of seeded random bytes, and nginx in front of it."""

    def __init__(self, directory, chance):
        self.directory = media = directory / "media"
        media.mkdir()
        with open(media / "big.bin", "wb") as file:
            for _ in range(LENGTH >> 20):
                file.write(chance.randbytes(1 << 20))
        with open(media / "big.bin", "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.server = MediaServer(directory, media)


def service_of(directory, original, capacity):
    return Larder(LARDER, directory, original.server.port, [f"policy.capacity={capacity}"])


class Tally:
    """Thread-safe totals and faults of all readers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reads = self.bytes = 0
        self.runs = []
        self.faults = []

    def add(self, run, count, fault):
        with self.lock:
            self.reads += 1
            self.bytes += count
            self.runs.append((run[0], run[0] + count))
            if fault:
                self.faults.append(fault)


def read(service, original, target, run, tally, may_be_gone=False):
    """Reads and compares one range. A connection that breaks because the service was killed is not a fault."""
    first, last = run
    offset, fault = first, None
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    try:
        connection.request("GET", target, headers={"Range": f"bytes={first}-{last - 1}"})
        response = connection.getresponse()
        if may_be_gone and response.status == 404:
            return
        if (response.status, response.getheader("Content-Range")) != (206, f"bytes {first}-{last - 1}/{LENGTH}"):
            fault = f"{target} {first}-{last - 1}: {response.status} {response.getheader('Content-Range')}"
        while not fault and offset < last:
            chunk = response.read1(CHUNK)
            if not chunk:
                raise http.client.IncompleteRead(b"", last - offset)
            if original.bytes[offset : offset + len(chunk)] != chunk:
                fault = f"{target}: WRONG BYTES in {offset}-{offset + len(chunk) - 1}"
            offset += len(chunk)
    except (OSError, http.client.HTTPException) as error:
        if not service.dying.is_set():
            fault = f"{target} {first}-{last - 1} at {offset}: {type(error).__name__} {error}"
    finally:
        connection.close()
    tally.add(run, offset - first, fault)


def random_run(chance, longest):
    length = min(LENGTH, chance.randint(1, longest))
    first = chance.randint(0, LENGTH - length)
    return first, first + length


def together(tasks):
    """Runs the tasks in threads and waits for their end."""
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def show_faults(faults):
    for fault in faults[:10]:
        print(f"    fault: {fault}")
    if len(faults) > 10:
        print(f"    … and {len(faults) - 10} more")


def readers_scenario(directory, original, chance):
    """200 concurrent readers at random offsets of one cold file."""
    original.server.forget_requests()
    service = service_of(directory, original, "none")
    service.start()
    tally, gate = Tally(), threading.Barrier(200)
    runs = [random_run(chance, 8 << 20) for _ in range(200)]

    def reader(run):
        gate.wait()
        read(service, original, "/o/media/big.bin", run, tally)

    began = time.monotonic()
    together([lambda run=run: reader(run) for run in runs])
    seconds = time.monotonic() - began
    code = service.stop()
    asked = sum(last - first for first, last in original.server.requested(LENGTH))
    wanted = ranges.union(tally.runs)
    ratio = asked / max(1, wanted)
    table(
        ["readers", "read", "distinct", "requested", "ratio", "peak memory", "seconds", "faults", "exit"],
        [[200, mebi(tally.bytes), mebi(wanted), mebi(asked), f"{ratio:.4f}", mebi(service.peak), f"{seconds:.1f}",
          len(tally.faults), code]],
    )  # fmt: skip
    show_faults(tally.faults)
    held = not tally.faults and code == 0 and ratio <= RATIO_LIMIT and service.peak < RESIDENT_LIMIT
    print(f"readers: {'held' if held else 'FAILED'} (ratio ≤ {RATIO_LIMIT}, memory < {mebi(RESIDENT_LIMIT)})\n")
    return held


def kill_scenario(directory, original, chance):
    """Rounds of kill -9 at random times with 32 readers; all cached bytes are compared after each start."""
    service = service_of(directory, original, "1GiB")
    print(row(KILL_COLUMNS))
    faults, held = [], True
    for number in range(1, ROUNDS + 1):
        began = time.monotonic()
        service.start()
        ready = time.monotonic() - began
        checked, verified = verify_extents(service, original)
        tally = under_fire(service, original, number, chance)
        faults += verified + tally.faults
        print(row([number, f"{ready:.2f} s", mebi(checked), f"{tally.lived:.2f} s", tally.reads, mebi(tally.bytes),
                   len(verified) + len(tally.faults)]), flush=True)  # fmt: skip
        show_faults(verified + tally.faults)
    held = verify_at_last(service, original) and not faults
    print(f"kill: {'held' if held else 'FAILED'} ({ROUNDS} rounds, peak memory {mebi(service.peak)})\n")
    return held


def eviction_scenario(directory, original, chance):
    """Readers of five times the capacity: each piece is an asset, and low piece numbers are read more often."""
    capacity, marks, piece = LENGTH // 5, (0.9, 0.95), PIECE
    service = Larder(
        LARDER, directory, original.server.port,
        [f"policy.capacity={capacity}", f"policy.lowWatermark={marks[0]}", f"policy.highWatermark={marks[1]}"],
    )  # fmt: skip
    service.start()
    tally, reads, lock, disk, taken = Tally(), [], threading.Lock(), [0], []
    end = time.monotonic() + SECONDS

    def reader(own):
        while time.monotonic() < end:
            number = int(own.random() ** 3 * (LENGTH // piece))
            with lock:
                reads.append((time.monotonic(), number))
            run = (number * piece, (number + 1) * piece)
            read(service, original, f"/o/media/big.bin?piece={number}", run, tally)

    def watch():
        while time.monotonic() < end:
            store = service.get("/v1/stats")["store"]
            disk[0] = max(disk[0], store["diskBytes"])
            taken.append(service.taken())
            time.sleep(0.2)

    readers = [lambda own=random.Random(chance.random()): reader(own) for _ in range(READERS)]
    together([*readers, watch])
    figures = service.get("/v1/stats")
    # A read that joins a fill costs no upstream bytes and counts as a hit, as in the simulation.
    found = 1 - figures["bytes"]["upstream"] / max(1, figures["bytes"]["served"])
    # The number of cached bytes is between the low watermark and the capacity, because evictions take time.
    least, most = (s3fifo.hit_ratio(reads, mark * capacity / piece) for mark in (marks[0], 1))
    code = service.stop()
    early, late = (taken_within(taken, share, share + 0.1) for share in (0.2, 0.9))
    table(
        ["reads", "read", "hit ratio", "simulated", "peak on disk", "capacity", "evicted", "faults", "exit"],
        [[tally.reads, mebi(tally.bytes), f"{found:.4f}", f"{least:.4f}–{most:.4f}", mebi(disk[0]), mebi(capacity),
          mebi(figures["evictions"]["bytes"]), len(tally.faults), code]],
    )  # fmt: skip
    table(["resident", "at the end", "descriptors", "at the end"], [[mebi(early[0]), mebi(late[0]), early[1], late[1]]])
    show_faults(tally.faults)
    is_near = least - HIT_TOLERANCE <= found <= most + HIT_TOLERANCE
    is_flat = late[0] <= early[0] + MORE_RESIDENT and late[1] <= early[1] + MORE_DESCRIPTORS or SECONDS < 300
    held = not tally.faults and code == 0 and disk[0] <= capacity + READERS * piece and is_near and is_flat
    print(f"eviction: {'held' if held else 'FAILED'} (hit ratio within 0.01 of the simulation; no growth)\n")
    return held


def taken_within(taken, first, last):
    """The medians of memory and descriptors between two fractions of the run."""
    part = taken[int(len(taken) * first):int(len(taken) * last)] or taken
    return [sorted(column)[len(part) // 2] for column in zip(*part)]


def target_of(number):
    """The file under a name that changes every three rounds, so that cold bytes remain."""
    return f"/o/media/big.bin?round={(number - 1) // 3}"


def under_fire(service, original, number, chance):
    """Reads with 32 threads until the service is killed at a random time."""
    tally = Tally()
    seeds = [chance.random() for _ in range(32)]
    life = chance.choice([0.05, 0.3, 1, 3]) * (0.5 + chance.random())

    def reader(seed):
        own = random.Random(seed)
        while not service.dying.is_set():
            older = own.randint(1, number) if own.random() < 0.2 else number
            read(service, original, target_of(older), random_run(own, 4 << 20), tally)

    killer = threading.Timer(life, service.kill)
    killer.start()
    together([lambda seed=seed: reader(seed) for seed in seeds])
    killer.join()
    tally.lived = life
    return tally


def verify_extents(service, original):
    """Reads and compares all extents of all assets, except assets evicted meanwhile. Returns bytes and faults."""
    tally = Tally()
    for asset in service.items("/v1/assets"):
        extents = service.get(f"/v1/assets/{asset['assetId']}/extents")
        for extent in extents.get("items", []):
            run = (extent["offset"], extent["offset"] + extent["length"])
            read(service, original, f"/v1/assets/{asset['assetId']}/content", run, tally, may_be_gone=True)
    return tally.bytes, tally.faults


def verify_at_last(service, original):
    """Reads the whole file under each recent name, then stops the service cleanly."""
    service.start()
    tally = Tally()
    for number in range(max(1, ROUNDS - 2), ROUNDS + 1):
        read(service, original, target_of(number), (0, LENGTH), tally)
    show_faults(tally.faults)
    code = service.stop()
    print(f"kill: the whole file read {tally.reads} times, {len(tally.faults)} faults, exit code {code}")
    return not tally.faults and code == 0


class Probe:
    """Requests of one kind in a thread until `stop`: the times of the responses; a failed one counts as infinite.

    The thread gets the processor before the hostile clients of this machine, if it may: the times are those of the
    service.
    """

    def __init__(self, port, ask, pause):
        self.port, self.ask, self.pause, self.times, self.faults = port, ask, pause, [], []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            os.setpriority(os.PRIO_PROCESS, 0, -10)  # on Linux, of the calling thread
        except PermissionError:
            pass
        connection = None
        while not self.is_over.wait(self.pause()):
            began = time.monotonic()
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                fault = self.ask(connection)
            except (OSError, http.client.HTTPException) as error:
                # A connection that has been idle may be closed at any time: the request is repeated once.
                connection.close()
                try:
                    fault = self.ask(connection)
                except (OSError, http.client.HTTPException):
                    fault = f"{type(error).__name__} {error}"
            if fault:
                connection.close()
                connection = None
                self.faults.append(fault)
            self.times.append(float("inf") if fault else time.monotonic() - began)

    def stop(self):
        self.is_over.set()
        self.thread.join()


def health(connection):
    connection.request("GET", "/health/live", headers={"Connection": "close"})
    response = connection.getresponse()
    response.read()
    return None if response.status == 200 else f"/health/live: {response.status}"


def reader_of(original, own):
    """Reads 64 KiB: mostly of the first 16 MiB, sometimes of the whole file."""

    def ask(connection):
        first = own.randrange((16 << 20 if own.random() < 0.9 else LENGTH) - (64 << 10))
        fields = {"Range": f"bytes={first}-{first + (64 << 10) - 1}"}
        connection.request("GET", "/o/media/big.bin", headers=fields)
        response = connection.getresponse()
        body = response.read()
        if response.status != 206:
            return f"a read: {response.status} {body[:200]}"
        return None if body == original.bytes[first:first + (64 << 10)] else f"WRONG BYTES from {first}"

    return ask


def tokens_file(directory):
    """The tokens of the hostile clients: those of uploads and jobs are limited to the origin `media`."""
    names = [(f"follow{number}", "read", None) for number in range(FOLLOWERS // 50)]
    names += [("uploads", "write", ["media"]), ("jobs", "write", ["media"]), ("lists", "read", None)]
    tokens = []
    for name, scope, origins in names:
        entry = {"id": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "scope": scope}
        tokens.append(entry | ({"origins": origins} if origins else {}))
    path = directory / "tokens.json"
    path.write_text(json.dumps({"tokens": tokens}))
    return path


def hostile_scenario(directory, original, chance):
    """100 readers beside uploads, silent followers, playlists, lists, idle connections and truncated responses."""
    media = original.directory
    (media / "part.bin").write_bytes(chance.randbytes(16 << 10))
    lines = "".join(f"#EXTINF:4,\npart.bin?segment={number}\n" for number in range(hostile.PLAYLIST_SEGMENTS))
    (media / "list.m3u8").write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:4\n{lines}#EXT-X-ENDLIST\n")
    upstream = free_port()
    service = Larder(
        LARDER, directory, original.server.port,
        [f"policy.capacity={max(LENGTH // 5, 64 << 20)}", f"limits.maxConnections={CONNECTIONS}", "origins.media.access=public",
         *origin("broken", f"http://127.0.0.1:{upstream}"),
         f"access.tokensFile={tokens_file(directory)}"],
    )  # fmt: skip
    service.start()
    pauses = random.Random(chance.random())
    readers = [
        Probe(service.port, reader_of(original, random.Random(chance.random())), lambda: pauses.uniform(0.5, 1.5))
        for _ in range(HOSTILE_READERS)
    ]
    checks = Probe(service.port, health, lambda: 0.1)
    clients = subprocess.Popen(
        [sys.executable, "-B", hostile.__file__, str(service.port), str(SECONDS), str(SEED), str(FOLLOWERS), str(IDLE),
         str(upstream)],
        stdout=subprocess.PIPE, text=True, preexec_fn=raise_descriptors,
    )  # fmt: skip
    try:
        counts, _ = clients.communicate(timeout=SECONDS + 60)
    except subprocess.TimeoutExpired:
        clients.kill()
        counts = ""
    for probe in [*readers, checks]:
        probe.stop()
    code = service.stop()
    times = sorted(time for probe in readers for time in probe.times)
    share = sum(time < HOSTILE_SECONDS for time in times) / max(1, len(times))
    slowest = max(checks.times, default=float("inf"))
    table(
        ["reads", f"below {HOSTILE_SECONDS:.0f} s", "99 % within", "health checks", "slowest", "peak memory", "exit"],
        [[len(times), f"{share * 100:.2f} %", f"{times[int(len(times) * 0.99)]:.3f} s" if times else "-", len(checks.times),
          f"{slowest:.3f} s", mebi(service.peak), code]],
    )  # fmt: skip
    print(f"  clients: {counts.strip()}")
    faults = [fault for probe in [*readers, checks] for fault in probe.faults]
    wrong = [fault for fault in faults if "WRONG" in fault]
    show_faults(faults)
    held = (counts and not wrong and code == 0 and share >= HOSTILE_SHARE and slowest < HOSTILE_SECONDS
            and service.peak <= HOSTILE_RESIDENT)  # fmt: skip
    print(f"hostile: {'held' if held else 'FAILED'} (99 % of reads and all health checks below {HOSTILE_SECONDS:.0f} s, "
          f"memory ≤ {mebi(HOSTILE_RESIDENT)})\n")  # fmt: skip
    return bool(held)


def raise_descriptors():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def slow_readers(port):
    """2,000 clients that read 8 MiB with a rate of 40 KiB/s, for 20 seconds."""

    async def one(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 14)
        first = number * 50_000 % (LENGTH - (8 << 20))
        writer.write(
            f"GET /o/media/big.bin HTTP/1.1\r\nHost: localhost\r\nRange: bytes={first}-{first + (8 << 20) - 1}\r\n\r\n".encode()
        )
        for _ in range(100):
            if not await reader.read(8 << 10):
                break
            await asyncio.sleep(0.2)
        writer.transport.abort()

    await asyncio.gather(*(one(number) for number in range(2000)), return_exceptions=True)


async def aborts(port):
    """5,000 clients that leave after the first bytes of a response, 100 at a time."""
    places = asyncio.Semaphore(100)

    async def one(number):
        async with places:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
            first = number * 47_777 % (LENGTH - (8 << 20))
            writer.write(f"GET /o/media/big.bin HTTP/1.1\r\nHost: localhost\r\nRange: bytes={first}-\r\n\r\n".encode())
            await reader.read(1 + number % 65536)
            writer.transport.abort()

    await asyncio.gather(*(one(number) for number in range(5000)), return_exceptions=True)


async def uploads(port):
    """1,000 jobs of 1 MiB that are refused after their body was read, 20 at a time."""
    places, body = asyncio.Semaphore(20), json.dumps({"items": [{"origin": "none", "path": "x" * 1000}] * 1000}).encode()

    async def one():
        async with places:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
            writer.write(
                b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body
            )
            while await reader.read(1 << 16):
                pass
            writer.close()

    await asyncio.gather(*(one() for _ in range(1000)), return_exceptions=True)


def memory_scenario(directory, original, chance):
    """Resident memory one minute after 2,000 slow readers, 5,000 aborted reads and 1,000 uploads."""
    raise_descriptors()
    service = service_of(directory, original, "none")
    service.start()
    tally, rows, held = Tally(), [], True
    for _ in range(50):
        read(service, original, "/o/media/big.bin", random_run(chance, 1 << 20), tally)
    time.sleep(REST_SECONDS / 2)
    base = service.taken()[0]
    for name, peak in [("slow readers", slow_readers), ("aborts", aborts), ("uploads", uploads)]:
        sample, is_over = [], threading.Event()

        def watch(sample=sample, is_over=is_over):
            while not is_over.wait(0.2):
                sample.append(service.taken()[0])

        watcher = threading.Thread(target=watch)
        watcher.start()
        asyncio.run(peak(service.port))
        is_over.set()
        watcher.join()
        time.sleep(REST_SECONDS)
        after = service.taken()[0]
        is_back = after <= base * (1 + MORE_AFTER_PEAK)
        held = held and is_back
        rows.append([name, mebi(base), mebi(max(sample, default=0)), mebi(after), "back" if is_back else "KEPT"])
    code = service.stop()
    table(["after", "before", "peak", f"{REST_SECONDS} s later", ""], rows)
    show_faults(tally.faults)
    held = held and not tally.faults and code == 0
    print(f"memory: {'held' if held else 'FAILED'} (at most {MORE_AFTER_PEAK * 100:.0f} % more than before)\n")
    return held


KILL_COLUMNS = ["round", "ready", "verified", "lived", "reads", "read", "faults"]


def mebi(count):
    return f"{count / (1 << 20):.1f} MiB"


def row(cells):
    return "  " + "".join(f"{str(cell):>16}" for cell in cells)


def table(columns, rows):
    print(row(columns))
    for cells in rows:
        print(row(cells))


def main():
    scenarios = {
        "readers": readers_scenario, "kill": kill_scenario, "eviction": eviction_scenario, "hostile": hostile_scenario,
        "memory": memory_scenario,
    }  # fmt: skip
    if ONLY not in ("", *scenarios):
        raise SystemExit(f"soak: ONLY must be one of: {', '.join(scenarios)}")
    print(f"soak: seed {SEED}, a file of {mebi(LENGTH)}")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="larder-soak."))
    chance = random.Random(SEED)
    original = Original(directory, chance)
    held = True
    try:
        for name, scenario in scenarios.items():
            if ONLY in ("", name):
                place = directory / name
                place.mkdir()
                try:
                    held = scenario(place, original, chance) and held
                except NotStarted as reason:
                    print(f"{name}: {reason}")
                    held = False
    finally:
        original.server.stop()
    if held:
        shutil.rmtree(directory)
        print("soak: passed")
        return 0
    print(f"soak: FAILED (files and logs are in {directory})")
    return 1


if __name__ == "__main__":
    sys.exit(main())
