"""Upstreams that cut transfers or do not support ranges."""

import asyncio
import random

from harness import ranges

from .client import CLOCK, Fault, Reader
from .crowds import random_run, read_through, total
from .figures import Figure
from .scenarios import scenario


@scenario("cuts", "the upstream cuts each transfer after 700 KB; 20 readers of 32 MiB each", brief=True)
async def cuts(stage):
    original = stage.original("dense", stage.size(1 << 30, 64 << 20))
    upstream = stage.scripted(cutAfter=700_000)
    cache = stage.cache(upstream)
    chance, size = random.Random(f"cuts {stage.seed}"), stage.size(32 << 20, 4 << 20)
    runs = [random_run(chance, original.length, size, size) for _ in range(stage.size(20, 4))]
    began = CLOCK()
    await stage.play(read_through(Reader(cache.port, cache.target(original), original, *run)) for run in runs)
    seconds = CLOCK() - began
    stage.settle(upstream.bytes_sent)
    requests = upstream.requests()
    sent = [(request["first"], request["first"] + request["sent"]) for request in requests]
    return [
        Figure("refetched bytes", 100 * (total(sent) - ranges.union(sent)) / max(1, ranges.union(sent)), "%", most=0.1),
        Figure("sent by the upstream ÷ wanted", total(sent) / ranges.union(runs), "ratio"),
        Figure("transfers cut", sum(request["sent"] < request["last"] - request["first"] for request in requests)),
        Figure("time until all readers were complete", seconds, "s"),
    ]


@scenario("rangeless", "an upstream without ranges, 256 MiB, one transfer; a reader at 1 MiB/s pauses for 5 s",
          brief=True)  # fmt: skip
async def rangeless(stage):
    original = stage.original("ranges-none", 256 << 20, 256 << 20)
    other = stage.original("ranges-other", 64 << 10, 64 << 10)
    upstream = stage.scripted(ranges=False)
    settings = ["origins.media.maxTransfers=1", "origins.media.timeouts.idle=2s"]
    cache = stage.cache(upstream, *settings)
    paused = counted = other_seconds = taken = 0
    rest = stage.size(5, 2.5)

    async def reader():
        nonlocal paused, counted, other_seconds, taken
        async with Reader(cache.port, cache.target(original), original, whole=True) as reading:
            await reading.take(pace=1 << 20, until=CLOCK() + stage.size(4, 1))
            began = CLOCK()
            await asyncio.sleep(1)
            fills = await asyncio.to_thread(cache.fills)
            if fills is None:
                raise Fault("GET /v1/fills is not available")
            paused = sum(fill["state"] == "paused" for fill in fills)
            counted = (await asyncio.to_thread(cache.stats))["fills"].get("paused", 0)
            try:
                second = Reader(cache.port, cache.target(other), other, whole=True)
                await asyncio.wait_for(read_through(second), 10)
                other_seconds = CLOCK() - second.asked_at
            except asyncio.TimeoutError:
                other_seconds = 10
            await asyncio.sleep(rest - (CLOCK() - began))
            await reading.take(stage.size(24 << 20, 12 << 20))  # more than all buffers hold: it must resume
            await reading.take(pace=1 << 20, until=CLOCK() + stage.size(4, 0.5))
            taken = reading.taken

    await stage.play([reader()])
    sent = stage.settle(upstream.bytes_sent)
    requests = [request for request in upstream.requests() if request["path"] == original.path]
    return [
        Figure("sent by the upstream, not read", sent - taken, "bytes", most=16 << 20),
        Figure("fills shown as paused", paused, least=1),
        Figure("fills.paused in the statistics", counted, least=1),
        Figure("time of a read of another file", other_seconds * 1000, "ms", most=stage.size(500, 1000)),
        Figure("transfers of the file", len(requests), most=1),
        Figure("read", taken, "bytes"),
    ]


@scenario("closing", "like rangeless, but the upstream closes the connection during the pause")
async def closing(stage):
    original = stage.original("ranges-none", 256 << 20, 256 << 20)
    upstream = stage.scripted(ranges=False, patience=1)
    cache = stage.cache(upstream)
    ending, taken = 0, 0

    async def reader():
        nonlocal ending, taken
        async with Reader(cache.port, cache.target(original), original, whole=True) as reading:
            await reading.take(pace=4 << 20, until=CLOCK() + 2)
            await asyncio.sleep(stage.size(4, 3))
            try:
                await asyncio.wait_for(reading.take(stage.size(128 << 20, 64 << 20)), 30)
                ending = 1
            except Fault as fault:
                if "WRONG BYTES" in str(fault) or "more than" in str(fault):
                    raise
                ending = 2
            except asyncio.TimeoutError:
                raise Fault("the response neither continued nor ended within 30 s") from None
            finally:
                taken = reading.taken

    await stage.play([reader()])
    requests = upstream.requests()
    return [
        Figure("closed by the upstream", sum(r["ended"] is not None and r["sent"] < r["last"] for r in requests)),
        Figure("1: continued, 2: cut", ending, least=1),
        Figure("read", taken, "bytes"),
        Figure("transfers", len(requests)),
    ]
