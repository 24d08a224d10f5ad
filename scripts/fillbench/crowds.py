"""Many concurrent readers of cold files."""

import asyncio
import os
import random

from harness import ranges

from .client import CLOCK, Reader
from .figures import Figure
from .scenarios import scenario


async def read_through(reader):
    """Reads a range completely and closes the connection."""
    async with reader:
        await reader.take()


def random_run(chance, length, least, most):
    """A random half-open range of `least` to `most` bytes."""
    size = min(length, chance.randint(least, most))
    first = chance.randint(0, length - size)
    return first, first + size


def total(runs):
    """Sum of the lengths; bytes in several ranges count several times."""
    return sum(last - first for first, last in runs)


@scenario("overlap", "500 readers of random overlapping ranges of 64 KiB to 8 MiB, one cold file of 1 GiB", True, True)
async def overlap(stage):
    original = stage.original("dense", stage.size(1 << 30, 64 << 20))
    server = stage.media_server()
    cache = stage.cache(server)
    chance = random.Random(f"overlap {stage.seed}")
    most = stage.size(8 << 20, 2 << 20)
    runs = [random_run(chance, original.length, 64 << 10, most) for _ in range(stage.size(500, 100))]
    began = CLOCK()
    await stage.play(read_through(Reader(cache.port, cache.target(original), original, *run)) for run in runs)
    seconds = CLOCK() - began
    stage.settle(lambda: len(server.answers()))
    asked, wanted = server.requested(original.length), ranges.union(runs)
    figures = [
        Figure("requested upstream ÷ wanted", total(asked) / wanted, "ratio", most=1.005),
        Figure("requested more than once", total(asked) - ranges.union(asked), "bytes"),
        Figure("requested, not wanted", ranges.union(asked + runs) - wanted, "bytes"),
        Figure("requests upstream", len(asked)),
    ]
    if cache.name == "larder":
        cache.process.note_peak(cache.process.process)
        figures.append(Figure("peak memory", cache.process.peak, "bytes", most=150 << 20))
    return [*figures, Figure("read per second", total(runs) / seconds, "bytes")]


@scenario("herd", "100 readers request bytes=0- of one cold file of 64 MiB within 50 ms", True, True)
async def herd(stage):
    original = stage.original("dense", stage.size(64 << 20, 8 << 20))
    server = stage.media_server()
    cache = stage.cache(server)
    chance = random.Random(f"herd {stage.seed}")

    async def reader():
        await asyncio.sleep(chance.random() * 0.05)
        await read_through(Reader(cache.port, cache.target(original), original))

    began = CLOCK()
    await stage.play([reader() for _ in range(stage.size(100, 20))])
    seconds = CLOCK() - began
    stage.settle(lambda: len(server.answers()))
    asked = server.requested(original.length)
    return [
        Figure("requested more than once", total(asked) - ranges.union(asked), "bytes", most=0),
        Figure("requested upstream ÷ wanted", total(asked) / original.length, "ratio", most=1),
        Figure("requests upstream", len(asked)),
        Figure("time until all readers were complete", seconds, "s"),
    ]


@scenario("files", "5,000 cold files, one reader each, 1,250 concurrently, at most 4,096 descriptors", limit=180)
async def files(stage):
    count, crowd = stage.size(5000, 200), stage.size(1250, 50)
    originals = [stage.original(f"many-{number}", 256 << 10, dense=256 << 10) for number in range(count)]
    server = stage.media_server()
    cache = stage.cache(server, descriptors=4096)
    peak = 0
    for first in range(0, count, crowd):
        crowded = Crowd(originals[first : first + crowd])
        watch = asyncio.create_task(most_descriptors(cache.process.process.pid, crowded.all_there))
        await stage.play(crowded.reader(cache, original) for original in crowded.originals)
        peak = max(peak, await watch)
    stage.settle(lambda: len(server.answers()))
    asked = [size for _, _, size in server.answers()]
    fills = cache.stats()["fills"]
    return [
        Figure("peak of descriptors", peak, most=4095),
        Figure("descriptors at the end", descriptors(cache.process.process.pid), most=4095),
        Figure("sent by the upstream ÷ wanted", sum(asked) / (count * (256 << 10)), "ratio", most=1.005),
        Figure("fills active or queued at the end", fills["active"] + fills["queued"], most=0),
    ]


class Crowd:
    """Readers that stop in the middle of their file until all readers have arrived there or failed."""

    def __init__(self, originals):
        self.originals, self.coming, self.all_there = originals, len(originals), asyncio.Event()

    async def reader(self, cache, original):
        reading = Reader(cache.port, cache.target(original), original)
        try:
            try:
                await reading.begin()
                await reading.take(original.length // 2)
            finally:
                self.coming -= 1
                if self.coming == 0:
                    self.all_there.set()
            await self.all_there.wait()
            await reading.take()
        finally:
            reading.close()


def descriptors(process):
    """Number of open descriptors of a process."""
    return len(os.listdir(f"/proc/{process}/fd"))


async def most_descriptors(process, ended):
    """Peak number of open descriptors, sampled until the event `ended`."""
    most = 0
    while not ended.is_set():
        most = max(most, descriptors(process))
        await asyncio.sleep(0.02)
    return most
