"""Upstreams with HTTP/2: many transfers on few connections."""

import asyncio
import random

from harness import ranges

from .client import CLOCK, Reader
from .crowds import random_run, read_through, total
from .figures import Figure
from .scenarios import scenario

WINDOW = 512 << 10


@scenario("http2", "an upstream with HTTP/2: transfers share connections; cut, split and paused transfers keep them "
          "open", limit=180)  # fmt: skip
async def http2(stage):
    parts = [crowd, farewells, hanging_up, splitting, resting, small]
    return [figure for part in parts for figure in await part(stage)]


def connections(answers):
    """The connections of the logged responses."""
    return {answer.connection for answer in answers}


def twice(answers):
    """Bytes that were sent more than once."""
    runs = [answer.run for answer in answers]
    return total(runs) - ranges.union(runs)


def readers_of(stage, cache, original, runs):
    return stage.play(read_through(Reader(cache.port, cache.target(original), original, *run)) for run in runs)


async def crowd(stage):
    """100 readers with overlapping ranges."""
    original = stage.original("dense", 256 << 20)
    server = stage.secure_server()
    cache = stage.larder(server)
    chance = random.Random(f"http2 {stage.seed}")
    runs = [random_run(chance, original.length, 64 << 10, 8 << 20) for _ in range(100)]
    await readers_of(stage, cache, original, runs)
    stage.settle(lambda: len(server.answers(original.length)))
    answers = server.answers(original.length)
    asked = [(answer.first, answer.last) for answer in answers]
    return [
        Figure("requested upstream ÷ wanted", total(asked) / ranges.union(runs), "ratio", most=1.005),
        Figure("requests that were not HTTP/2", sum(answer.protocol != "HTTP/2.0" for answer in answers), most=0),
        Figure("connections of 100 readers", len(connections(answers)), most=4),
        Figure("requests of 100 readers", len(answers)),
    ]


async def farewells(stage):
    """The upstream sends GOAWAY on each connection after 25 requests."""
    original = stage.original("dense", 256 << 20)
    server = stage.secure_server(requests=25)
    cache = stage.larder(server)
    chance = random.Random(f"farewells {stage.seed}")
    runs = [random_run(chance, original.length, 64 << 10, 4 << 20) for _ in range(100)]
    await readers_of(stage, cache, original, runs)
    stage.settle(lambda: len(server.answers(original.length)))
    answers = server.answers(original.length)
    return [
        Figure("sent more than once, GOAWAY after 25 requests", twice(answers), "bytes", most=0),
        Figure("requests per connection", len(answers) / max(1, len(connections(answers))), least=10),
    ]


async def hanging_up(stage):
    """Readers disconnect in the middle of a window that is not worth finishing: many at once, then a single one."""
    original = stage.original("dense", 256 << 20)
    upstream = stage.scripted(bytesPerSecond=400_000)
    server = stage.secure_server(narrow=upstream)
    cache = stage.larder(server, "origins.media.finishIfRemaining=0")
    places = iter(random.Random(f"hanging up {stage.seed}").sample(range(original.length >> 20), 49))

    async def reader():
        first = next(places) << 20
        target = cache.target(original).replace("/o/media/", "/o/media/narrow/")
        async with Reader(cache.port, target, original, first, first + WINDOW) as reading:
            await reading.take(64 << 10)

    async def rounds(count):
        for _ in range(count):
            await stage.play(reader() for _ in range(12))
            stage.settle(lambda: cache.stats()["fills"]["active"], still=0.3)

    await rounds(1)
    before = connections(server.answers(original.length))
    await rounds(3)
    stage.settle(upstream.bytes_sent)
    sent = upstream.bytes_sent()
    await stage.play([reader()])
    stage.settle(upstream.bytes_sent)
    answers = server.answers(original.length)
    return [
        Figure("cut transfers of 49", sum(answer.sent < answer.last - answer.first for answer in answers), least=40),
        Figure("sent of 512 KiB after the only reader disconnected at 64", upstream.bytes_sent() - sent, "bytes",
               most=256 << 10),
        Figure("connections after 12 cut transfers", len(before), most=4),
        Figure("new connections after further ones", len(connections(answers) - before), most=0),
    ]  # fmt: skip


async def splitting(stage):
    """A window at 100 KB/s, and a reader that waits for its tail."""
    original = stage.original("dense", 256 << 20)
    server = stage.secure_server(narrow=stage.scripted(bytesPerSecond=100_000))
    cache = stage.larder(server)
    target = cache.target(original).replace("/o/media/", "/o/media/narrow/")
    tail, waited, protocols = 400_000, float("inf"), []

    async def late():
        nonlocal waited
        await asyncio.sleep(1)
        protocols.extend(fill["protocol"] for fill in await asyncio.to_thread(cache.fills))
        reader = Reader(cache.port, target, original, tail, WINDOW)
        await read_through(reader)
        waited = reader.first_byte_seconds

    await stage.play([read_through(Reader(cache.port, target, original, 0, WINDOW)), late()])
    stage.settle(lambda: len(server.answers(original.length)))
    answers = server.answers(original.length)
    return [
        Figure("fills shown as HTTP/2", sum(protocol == "HTTP/2" for protocol in protocols), least=1),
        Figure("transfers of a slow window", len(answers), most=2, least=2),
        Figure("connections of both transfers", len(connections(answers)), most=1),
        Figure("sent more than once", twice(answers), "bytes", most=64 << 10),
        Figure("wait for the tail ÷ without a split", waited / (tail / 100_000 - 1), "ratio", most=0.7),
    ]


async def resting(stage):
    """A reader of a file without ranges pauses; other readers continue."""
    original, other = stage.original("ranges-none", 256 << 20, 256 << 20), stage.original("dense", 256 << 20)
    server = stage.secure_server()
    cache = stage.larder(server)
    target = cache.target(original).replace("/o/media/", "/o/media/whole/")
    chance = random.Random(f"resting {stage.seed}")
    places = iter(chance.sample(range(other.length >> 22), 32))
    taken, paused, seconds = 0, [], []

    async def others():
        began = CLOCK()
        runs = [(place << 22, (place + 1) << 22) for place, _ in zip(places, range(16))]
        await readers_of(stage, cache, other, runs)
        seconds.append(CLOCK() - began)

    async def slow():
        nonlocal taken
        async with Reader(cache.port, target, original, whole=True) as reading:
            await reading.take(1 << 20)
            paused.extend(await until_paused(cache))
            await others()
            await reading.take(48 << 20)
            taken = reading.taken

    await others()
    await stage.play([slow()])
    cache.process.note_peak(cache.process.process)
    path = original.path.replace("/", "/whole/")
    stage.settle(lambda: len(server.answers(original.length, path)))
    answers, beside = server.answers(original.length, path), server.answers(other.length, other.path)
    return [
        Figure("transfers of a body without ranges", len(answers)),
        Figure("sent, not read", sum(answer.sent for answer in answers) - taken, "bytes",
               most=48 << 20),
        Figure("paused fills", len(paused), least=1),
        Figure("connections of the other readers", len(connections(beside)), most=4),
        Figure("other requests that were not HTTP/2", sum(answer.protocol != "HTTP/2.0" for answer in beside), most=0),
        Figure("other reads in the pause ÷ without", seconds[0] / seconds[-1], "ratio", least=0.5, by_median=True),
        Figure("peak memory", cache.process.peak, "bytes", most=150 << 20),
    ]  # fmt: skip


async def until_paused(cache):
    """Waits up to 5 s for paused fills; returns them."""
    for _ in range(50):
        fills = await asyncio.to_thread(cache.fills)
        if paused := [fill for fill in fills if fill["state"] == "paused"]:
            return paused
        await asyncio.sleep(0.1)
    return []


async def small(stage):
    """Many small cold files, over HTTP/2 and over HTTP/1.1."""
    originals = [stage.original(f"small-{number}", 4096, 4096) for number in range(1000)]
    seconds = {}
    for with_http2 in (True, False) if stage.round % 2 else (False, True):
        server = stage.secure_server(http2=with_http2)
        cache = stage.larder(server)
        waiting = iter(originals)

        async def reader():
            for original in waiting:
                await read_through(Reader(cache.port, cache.target(original), original, whole=True))

        began = CLOCK()
        await stage.play(reader() for _ in range(32))
        seconds[with_http2] = CLOCK() - began
        stage.end(cache.process)
    return [Figure("small files per second ÷ over HTTP/1.1", seconds[False] / seconds[True], "ratio")]
