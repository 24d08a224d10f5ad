"""A store of a million extents: start time, memory, list latency, and evictions during reads."""

import http.client
import itertools
import json
import random
import sys
import threading
import time

from .processes import peak_bytes, processor_seconds, resident_bytes
from .stage import Server, fetch
from .stock import EXTENT, Stock

SORTS = ("lastAccess", "cachedBytes", "hits", "createdAt")
#: Segments evicted in each round, and the number of repeatedly read assets.
EVICTED, OFTEN_READ = 10_000, 200


def catalog(table, stage, rounds):
    assets, evicted = (1000, 500) if stage.is_brief else (100_000, EVICTED)
    extents = 10
    for _ in range(rounds):
        with stage.apart() as here:
            stock, upstream, place = make(here, assets, extents, evicted)
            title = f"{assets * extents:,} extents"
            larder = started(table, here, stock, upstream, place, title)
            rested(table, larder, title)
            lists(table, larder, assets, stage.is_brief)
            evictions(table, larder, stock, evicted, 1 if stage.is_brief else 5)


def make(stage, assets, extents, solid):
    """The store, the port of its upstream, and its directory."""
    stage.original("small", 1 << 10)
    upstream, place = stage.upstream(), stage.place("catalog")
    larder = stage.larder(upstream, place=place, core=None)
    fetch(larder.url("/many/pattern"))
    larder.process.stop()
    return Stock(place, assets, extents, solid), upstream, place


def started(table, stage, stock, upstream, place, title):
    """From the start of the process to the first response, and until it reports ready."""
    larder = stage.larder_process(upstream, place=place, core=None)
    began = time.monotonic()
    larder.launch()
    stage.callback(larder.stop)
    seconds = {}
    waits = {"answer": ask_extent(stock, stock.oldest[-1], 0), "ready": ("/health/ready", {}, 200)}
    for name, (target, fields, expected) in waits.items():
        while not answers(larder.port, target, fields, expected):
            if larder.process.poll() is not None or time.monotonic() - began > 60:
                raise RuntimeError(f"no {name} within 60 s from a store of {title}")
            time.sleep(0.002)
        seconds[name] = time.monotonic() - began
    table.add(f"start to the first response, s, {title}", seconds["answer"], most=1)
    table.add(f"start to ready, s, {title}", seconds["ready"], most=5)
    return Server("larder", larder)


def ask_extent(stock, number, extent):
    first = stock.first(extent)
    return stock.target(number), {"Range": f"bytes={first}-{first + EXTENT - 1}"}, 206


def answers(port, target, fields, expected):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", target, headers=fields)
        answer = connection.getresponse()
        return bool(answer.read()) and answer.status == expected
    except OSError:
        return False
    finally:
        connection.close()


def rested(table, larder, title):
    """Resident memory when the process is idle: after a second with almost no processor time."""
    began, spent = time.monotonic(), 0.0
    while (now := processor_seconds(larder.number)) - spent > 0.02:
        spent = now
        time.sleep(1)
    behind = {
        "peak": peak_bytes(larder.number) / 1e6, "seconds busy": time.monotonic() - began - 1,
        "processor s": now,
    }  # fmt: skip
    table.add(f"resident MB, {title}", resident_bytes(larder.number) / 1e6, behind, most=250)


def lists(table, larder, assets, is_brief):
    """A page of 100 at the beginning, in the middle and at the end of each list; the whole list is read in between."""
    connection = http.client.HTTPConnection("127.0.0.1", larder.port)

    def page(query):
        began = time.perf_counter()
        connection.request("GET", f"/v1/assets?{query}")
        answer = connection.getresponse()
        body = answer.read()
        late = (time.perf_counter() - began) * 1000
        if answer.status != 200:
            raise RuntimeError(f"{query}: {answer.status} {body[:200]}")
        return late, json.loads(body)

    for sort in SORTS:
        slowest = {}
        for order in ("desc", "asc"):
            cursors, seen = [""], set()
            while cursors[-1] is not None:
                _, whole = page(f"sort={sort}&order={order}&limit=1000{cursors[-1]}")
                seen.update(item["assetId"] for item in whole["items"])
                cursors.append(whole["nextCursor"] and f"&cursor={whole['nextCursor']}")
            if len(seen) != assets:
                raise RuntimeError(f"{len(seen)} of {assets} assets are in the list by {sort}, {order}")
            for name, cursor in (("first", ""), ("middle", cursors[len(cursors) // 2]), ("last", cursors[-2])):
                late = sorted(page(f"sort={sort}&order={order}&limit=100{cursor or ''}")[0] for _ in range(9))
                slowest[name] = max(slowest.get(name, 0), late[len(late) // 2])
            if is_brief:
                break
        table.add(f"100 of the assets by {sort}, ms", max(slowest.values()), slowest, most=20)
    connection.close()


class Reader(threading.Thread):
    """Reads extents one after the other on one connection; records the latency of each in milliseconds."""

    def __init__(self, larder, stock, numbers):
        super().__init__(daemon=True)
        self.larder, self.stock, self.numbers = larder, stock, numbers
        self.taken, self.failure, self.isOver = [], None, threading.Event()

    def run(self):
        try:
            self.read()
        except Exception as failure:  # raised by `stop`
            self.failure = failure

    def read(self):
        chance, connection = random.Random(1), http.client.HTTPConnection("127.0.0.1", self.larder.port)
        for number in self.numbers:
            target, fields, expected = ask_extent(self.stock, number, chance.randrange(self.stock.extents))
            began = time.perf_counter()
            connection.request("GET", target, headers=fields)
            answer = connection.getresponse()
            if len(answer.read()) != EXTENT or answer.status != expected:
                raise RuntimeError(f"{target}: {answer.status}")
            self.taken.append((time.perf_counter() - began) * 1000)
            if self.isOver.wait(0.001):
                break
        connection.close()

    def so_far(self):
        """The latencies since the last call, sorted."""
        taken, self.taken = self.taken, []
        return sorted(taken)

    def stop(self):
        self.isOver.set()
        self.join()
        if self.failure:
            raise self.failure


def evictions(table, larder, stock, count, seconds):
    """During an eviction one reader rereads a few assets, and another opens assets without other readers."""
    chance = random.Random(2)
    stay = stock.oldest[count // stock.extents :]
    others = itertools.cycle(chance.sample(stay[:-OFTEN_READ], len(stay) - OFTEN_READ))
    readers = {
        "open": Reader(larder, stock, (chance.choice(stay[-OFTEN_READ:]) for _ in itertools.count())),
        "opened": Reader(larder, stock, others),
    }
    patience = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    for reader in readers.values():
        reader.start()
    time.sleep(seconds / 2)
    for reader in readers.values():
        reader.so_far()
    time.sleep(seconds)
    before = {name: reader.so_far() for name, reader in readers.items()}
    began = time.monotonic()
    status, body = larder.process.ask("POST", "/v1/evictions", {"freeBytes": count * EXTENT})
    took = time.monotonic() - began
    beside = {name: reader.so_far() for name, reader in readers.items()}
    for reader in readers.values():
        reader.stop()
    sys.setswitchinterval(patience)
    report = json.loads(body)
    if status != 200 or report["freedBytes"] != count * EXTENT:
        raise RuntimeError(f"evictions: {status} {body[:300]}")
    for name in readers:
        behind = {
            "p99": percentile(beside[name]), "max without": before[name][-1],
            "p99 without": percentile(before[name]), "eviction s": took,
        }  # fmt: skip
        table.add(
            f"longest read of an {'open' if name == 'open' else 'unopened'} asset, ms, {count:,} evictions",
            beside[name][-1], behind, most=50,
        )  # fmt: skip


def percentile(values):
    return values[len(values) * 99 // 100]
