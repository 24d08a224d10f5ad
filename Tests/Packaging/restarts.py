"""Restarts of a service with inherited sockets, under readers."""

import json
import pathlib
import random
import signal
import socket
import tempfile
import threading
import time
from http import client

import sockets
from harness import http, process
from harness.upstream import Upstream, asset, pattern

#: The files and their size.
FILES, SIZE = 8, 4 << 20


class Service:
    """A supervisor with one socket, and the processes that serve it one after the other."""

    def __init__(self, stage, *options):
        self.socket = sockets.listener(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.upstream = Upstream()
        self.upstream.serve(asset(SIZE))
        self.directory, self.count = pathlib.Path(tempfile.mkdtemp(dir=stage.directory)), 0
        settings = process.origin("films", self.upstream.url)
        self.words = [
            stage.program, "serve", "--data-directory", self.directory / "store", "--log-format", "json",
            *(f"--set={setting}" for setting in settings), *options,
        ]  # fmt: skip
        self.running = None

    def start(self):
        self.count += 1
        self.log = self.directory / f"{self.count}.log"
        self.running = sockets.start(self.words, self.log, [self.socket])
        return self.running

    def entries(self, log=None):
        lines = (log or self.log).read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def awaits(self, message, log=None):
        """Waits for a message in the log; returns whether it came."""
        return process.wait_until(lambda: any(message in entry["message"] for entry in self.entries(log)))

    def read(self, name, first=0, end=SIZE):
        return http.send(self.port, "GET", f"/o/films/{name}", {"Range": f"bytes={first}-{end - 1}"})

    def fill(self):
        """Reads all files through the cache, and then ends the upstream."""
        for number in range(FILES):
            assert self.read(number).body == pattern(0, SIZE)
        self.upstream.close()


class Readers:
    """Threads that read random ranges of cached files, a quarter of them slowly, each over a connection of its own."""

    def __init__(self, service, count):
        self.service, self.ended, self.lock = service, threading.Event(), threading.Lock()
        self.faults, self.reads, self.longest = [], 0, 0.0
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        chance, is_slow = random.Random(number), number % 4 == 0
        while not self.ended.is_set():
            first = chance.randrange(SIZE)
            end = SIZE if is_slow else min(SIZE, first + chance.randrange(1, 256 << 10))
            try:
                seconds = self.one(chance.randrange(FILES), first, end, is_slow)
            except Exception as error:
                with self.lock:
                    self.faults.append(f"{type(error).__name__}: {error}")
            else:
                with self.lock:
                    self.reads, self.longest = self.reads + 1, max(self.longest, seconds)

    def one(self, name, first, end, is_slow):
        """Returns the time until the first byte in seconds."""
        began = time.monotonic()
        with http.connection(self.service.port) as opened:
            opened.request("GET", f"/o/films/{name}", headers={"Range": f"bytes={first}-{end - 1}"})
            response = opened.getresponse()
            seconds, parts = time.monotonic() - began, []
            while part := response.read(64 << 10):
                parts.append(part)
                if is_slow:
                    self.ended.wait(0.02)
        body = b"".join(parts)
        if response.status != 206 or body != pattern(first, end):
            raise ValueError(f"{response.status}, {len(body)} of {end - first} bytes: {body[:200] if response.status != 206 else ''}")
        return seconds

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(60)


def restarts(stage, rounds=10, readers=100):
    """The next process begins with the stop signal of the former one: no refused connection, no cut hit, no long wait."""
    service = Service(stage)
    service.start()
    service.fill()
    group = Readers(service, readers)
    returned, waits = [], []
    try:
        for _ in range(rounds):
            former, log = service.running, service.log
            reads = group.reads
            process.wait_until(lambda: group.reads >= reads + readers)
            began, clock = time.monotonic(), time.time()
            former.send_signal(signal.SIGTERM)
            service.start()
            stage.check(service.awaits("serving"), "the start of the next process", service.log.read_text()[-2000:])
            waits.append(time.monotonic() - began)
            stage.check(former.wait(60) == 0, "the end of the former process", log.read_text()[-2000:])
            free = [entry["time"] for entry in service.entries(log) if "free for the next process" in entry["message"]]
            stage.check(len(free) == 1, "the former process hands the store over", log.read_text()[-2000:])
            returned += [seconds_of(time_of) - clock for time_of in free]
    finally:
        group.end()
    stage.check(not group.faults, "every read is whole", f"{len(group.faults)} of {group.reads}: {group.faults[:5]}")
    # On a busy machine one of them can take longer.
    stage.check(sorted(returned)[len(returned) // 2] <= 1, "the directory is free within a second", returned)
    stage.check(group.longest <= 3, "the longest wait for a first byte is 3 s", group.longest)
    stage.check(not service.upstream.faults, "the upstream", service.upstream.faults)
    print(
        f"  {rounds} restarts, {group.reads} reads, directory free after {max(returned):.2f} s, next process after "
        f"{max(waits):.2f} s, longest first byte {group.longest:.2f} s"
    )
    service.running.terminate()
    service.running.wait(60)


def seconds_of(text):
    """The seconds since 1970 of a time of the log (RFC 3339, UTC)."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float(f"0.{fraction or 0}")


class SlowReaders:
    """Readers that have begun, with a small receive buffer, and read the rest when they are told to."""

    def __init__(self, service, targets, size):
        self.size, self.opened = size, []
        for target in targets:
            made = socket.socket()
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
            made.settimeout(60)
            made.connect(("127.0.0.1", service.port))
            opened = client.HTTPConnection("127.0.0.1")
            opened.sock = made
            opened.request("GET", target)
            response = opened.getresponse()
            self.opened.append((response, response.read(64 << 10)))

    def finish(self):
        """The number of responses that are whole, and of those with a wrong byte; the others were cut."""
        whole = wrong = 0
        for response, first in self.opened:
            try:
                body = first + response.read()
            except (client.IncompleteRead, ConnectionError) as error:
                body = first + getattr(error, "partial", b"")
            whole += len(body) == self.size
            wrong += body != pattern(0, len(body))
        return whole, wrong


def evictions(stage):
    """The next process must evict while the former one sends stored bytes, plain and encrypted: none of them changes."""
    keys = pathlib.Path(tempfile.mkdtemp(dir=stage.directory))
    (keys / "first").write_bytes(bytes(range(1, 33)))
    (keys / "first").chmod(0o600)
    size, count = 24 << 20, 3
    service = Service(stage, f"--set=encryption.keysDirectory={keys}", "--set=encryption.activeKey=first")
    service.words += [f"--set={each}" for each in process.origin("sealed", service.upstream.url, encrypt="true")]
    service.upstream.serve(asset(size))
    former = service.start()
    targets = [f"/o/{origin}/{number}" for origin in ("films", "sealed") for number in range(count)]
    for target in targets:
        stage.check(http.send(service.port, "GET", target).body == pattern(0, size), f"the first read of {target}")
    readers = SlowReaders(service, targets, size)
    former.send_signal(signal.SIGTERM)
    service.start()
    stage.check(service.awaits("serving"), "the start of the next process", service.log.read_text()[-2000:])
    answer = http.send(service.port, "PATCH", "/v1/policy", {"Content-Type": "application/json"}, http.encoded({"capacityBytes": size}))
    stage.check(answer.status == 200, "the capacity", answer)
    for target in ("/o/films/new", "/o/sealed/new"):
        stage.check(http.send(service.port, "GET", target).body == pattern(0, size), f"a read of {target} during the shutdown")
    refused = http.send(service.port, "POST", "/v1/evictions", {"Content-Type": "application/json"}, http.encoded({"freeBytes": size}))
    stage.check(refused.code == "overloaded", "an eviction during the shutdown", refused)
    stage.check(former.poll() is None, "the former process still sends")
    whole, wrong = readers.finish()
    stage.check((whole, wrong) == (len(targets), 0), "the responses of the former process", f"{whole} whole, {wrong} wrong")
    stage.check(former.wait(60) == 0, "the end of the former process")

    def used():
        return http.send(service.port, "GET", "/v1/stats").json["store"]["diskBytes"]

    stage.check(process.wait_until(lambda: used() <= size), "the eviction after the end of the former process", used())
    for target in targets:
        stage.check(http.send(service.port, "GET", target).body == pattern(0, size), f"a later read of {target}")
    service.running.terminate()
    stage.check(service.running.wait(60) == 0, "the end")
    service.upstream.close()


def signals(stage):
    """The log shows the progress of a shutdown; a second signal cuts the responses in progress."""
    service = Service(stage)
    service.upstream.serve(asset(24 << 20))
    running = service.start()
    readers = SlowReaders(service, ["/o/films/a"], 24 << 20)
    running.send_signal(signal.SIGTERM)
    progress = "finishing the responses in progress"
    stage.check(service.awaits(progress), "the progress in the log", service.log.read_text()[-2000:])
    shown = [entry for entry in service.entries() if entry["message"] == progress]
    stage.check(shown and shown[0].get("connections") in (1, "1"), "the number of connections", shown)
    running.send_signal(signal.SIGTERM)
    stage.check(running.wait(10) == 0, "the end after the second signal", service.log.read_text()[-2000:])
    whole, wrong = readers.finish()
    stage.check((whole, wrong) == (0, 0), "the cut response", f"{whole} whole, {wrong} wrong")
    service.upstream.close()
