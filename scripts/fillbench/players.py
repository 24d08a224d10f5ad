"""Media players: they read at the bit rate of the film, disconnect and seek."""

import asyncio
import random

from harness import ranges

from .client import CLOCK, Reader
from .figures import Figure
from .scenarios import scenario

FIRST_WINDOW = 512 << 10


@scenario("hangup", "200 players of different files read for 10 s at 4 Mbit/s and disconnect", True, True)
async def hangup(stage):
    length, dense = stage.size((64 << 20, 8 << 20), (16 << 20, 4 << 20))
    originals = [stage.original(f"film-{n}", length, dense) for n in range(stage.size(200, 10))]
    upstream = stage.scripted()
    cache = stage.cache(upstream)
    chance = random.Random(f"hangup {stage.seed}")
    taken, pace, seconds = [], 500_000, stage.size(10, 3)

    async def player(original):
        await asyncio.sleep(chance.random() * seconds / 10)
        async with Reader(cache.port, cache.target(original), original) as reader:
            await reader.take(pace=pace, until=CLOCK() + seconds)
            taken.append(reader.taken)

    await stage.play(player(original) for original in originals)
    stage.settle(upstream.bytes_sent)
    received, read = upstream.bytes_received(), max(1, sum(taken))
    return [
        Figure("received ÷ read", received / read, "ratio", most=1 + 1_250_000 / (pace * seconds)),
        Figure("written by the upstream ÷ read", upstream.bytes_sent() / read, "ratio"),
        Figure("read per player", sum(taken) / len(originals), "bytes"),
        Figure("requests upstream", len(upstream.requests())),
    ]


@scenario("seeks", "50 players at 8 Mbit/s seek every 200 ms for 10 s; upstream with 20 ms round trip", True, True)
async def seeks(stage):
    originals = [stage.original(f"seek-{n}", stage.size(256 << 20, 64 << 20)) for n in range(stage.size(10, 2))]
    upstream = stage.scripted(roundTrip=0.02)
    cache = stage.cache(upstream)
    chance = random.Random(f"seeks {stage.seed}")
    runs, stalls = {original.path: [] for original in originals}, []

    async def player(number):
        original = originals[number % len(originals)]
        await asyncio.sleep(chance.random() * 0.2)
        for _ in range(stage.size(50, 10)):
            until = CLOCK() + 0.2
            first = chance.randrange(original.length - (4 << 20))
            async with Reader(cache.port, cache.target(original), original, first) as reader:
                await reader.take(1)
                stalls.append(reader.first_byte_seconds * 1000)
                await reader.take(pace=1_000_000, until=until)
                runs[original.path].append((first, reader.position + reader.waiting_bytes()))

    await stage.play(player(number) for number in range(stage.size(50, 8)))
    written = stage.settle(upstream.bytes_sent)
    log = upstream.log()
    sent = log["acked"]
    wanted = sum(ranges.union(of_one) for of_one in runs.values())
    stalls.sort()
    return [
        Figure(
            "received ÷ (sent to players + 512 KiB per seek)", sent / (wanted + FIRST_WINDOW * max(1, len(stalls))),
            "ratio", most=1,
        ),
        Figure("received", sent, "bytes"),
        Figure("written by the upstream", written, "bytes"),
        Figure("stall, median", stalls[len(stalls) // 2], "ms"),
        Figure("stall, 99th percentile", stalls[int(len(stalls) * 0.99)], "ms", most=120),
        Figure("connections reused", 100 - 100 * log["connections"] / len(log["requests"]), "%"),
        Figure("requests upstream", len(log["requests"])),
    ]  # fmt: skip


@scenario("slow", "a reader reads a file of 4 GiB at 1 MiB/s for 10 s and disconnects", brief=True)
async def slow(stage):
    original = stage.original("huge", 4 << 30, 64 << 20, 4 << 20)
    upstream = stage.scripted()
    cache = stage.cache(upstream)
    taken = 0

    async def reader():
        nonlocal taken
        async with Reader(cache.port, cache.target(original), original) as reading:
            await reading.take(pace=1 << 20, until=CLOCK() + stage.size(10, 2))
            taken = reading.taken

    await stage.play([reader()])
    written = stage.settle(upstream.bytes_sent)
    received = upstream.bytes_received()
    return [
        Figure("received, not read", received - taken, "bytes", most=1 << 20),
        Figure("written by the upstream, not read", written - taken, "bytes"),
        Figure("read", taken, "bytes"),
    ]
