"""Upstreams with a long round trip or a slow link."""

import asyncio
import random
import statistics

from .client import CLOCK, Fault, Reader
from .figures import Figure
from .scenarios import scenario

LIVE_READERS = 20
LIVE_BYTES = 256 << 10


@scenario("link", "an upstream with 100 ms round trip and 10 Mbit/s; 25 MB cold, compared with curl", limit=120)
async def link(stage):
    original = stage.original("far", 25_000_000)
    upstream = stage.scripted(roundTrip=0.1, totalBytesPerSecond=1_250_000)
    cache = stage.cache(upstream)
    closing = stage.scripted(roundTrip=0.1, totalBytesPerSecond=1_250_000, closes=True)
    ratio = 0

    async def pairs(upstream, cache, beyond):
        for turn in range(stage.size(9, 3)):
            first, last = turn << 20, (turn << 20) + (16 << 10)
            if turn == 0 or upstream is closing:
                direct = Reader(upstream.port, original.path, original, first, last)
                await direct.begin()
            else:
                await direct.again(first, last)
            await direct.take()
            query = f"?turn={turn}" if turn % 2 == 0 else "?turn=0"  # a new asset, or another part of the first one
            beside = Reader(cache.port, cache.target(original, query), original, first, last)
            async with beside:
                await beside.take()
            beyond.append((beside.first_byte_seconds - direct.first_byte_seconds) * 1000)

    async def whole():
        nonlocal ratio
        seconds = {}
        for way in ("curl", "larder") if stage.round % 2 else ("larder", "curl"):
            if way == "curl":
                seconds[way] = await curl_seconds(f"http://127.0.0.1:{upstream.port}{original.path}")
            else:
                began = CLOCK()
                async with Reader(cache.port, cache.target(original), original) as reader:
                    await reader.take()
                seconds[way] = CLOCK() - began
        ratio = seconds["curl"] / seconds["larder"]

    new, kept = [], []
    await stage.play([pairs(closing, stage.cache(closing), new)])
    await stage.play([pairs(upstream, cache, kept)])
    await stage.play([whole()])
    return [
        Figure("first byte after the direct one, new connections", statistics.median(new), "ms", 5, by_median=True),
        Figure("first byte after the direct one, kept connections", statistics.median(kept), "ms", 5, by_median=True),
        Figure("throughput ÷ throughput of curl", ratio, "ratio", least=0.97, by_median=True),
    ]


async def curl_seconds(url):
    """Time in seconds of a download with curl."""
    process = await asyncio.create_subprocess_exec(
        "curl", "--silent", "--fail", "--output", "/dev/null", "--write-out", "%{time_total}", url,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode:
        raise Fault(f"curl exited with {process.returncode}")
    return float(output)


@scenario("prefetch", "32 prefetch jobs of 100 MB beside 20 readers of cold 256 KiB; 20 ms, 4 MB/s per connection",
          limit=150)  # fmt: skip
async def prefetch(stage):
    figures = []
    for name, rest in [("", 0), (", 100 ms between reads", 0.1)]:
        found = {0: Live(), 32: Live()}
        for jobs in (0, 32, 32, 0) if stage.round % 2 else (32, 0, 0, 32):
            await live_beside(stage, jobs, rest, found[jobs])
        alone, beside = found[0], found[32]
        figures += [
            Figure(f"live first byte without jobs{name}", alone.median, "ms"),
            Figure(f"live first byte beside jobs{name}", beside.median, "ms"),
            Figure(f"beside ÷ without{name}", beside.median / alone.median, "ratio", most=1.1, by_median=True),
            Figure(f"99th percentile beside ÷ without{name}", beside.late / alone.late, "ratio"),
            Figure(f"prefetch windows started while a live one was queued{name}", beside.overtaken, most=0),
            Figure(f"prefetched per second{name}", beside.prefetched, "bytes"),
        ]
    return figures


class Live:
    """Measurements of the live readers."""

    def __init__(self):
        self.milliseconds, self.seconds, self.overtaken, self.sent = [], 0, 0, 0

    @property
    def median(self):
        return statistics.median(self.milliseconds or [float("inf")])

    @property
    def late(self):
        """99th percentile of the time to the first byte, in milliseconds."""
        return sorted(self.milliseconds or [float("inf")])[int(len(self.milliseconds) * 0.99)]

    @property
    def prefetched(self):
        """Bytes per second that the upstream sent for jobs."""
        return self.sent / self.seconds


async def live_beside(stage, jobs, rest, found):
    """Measures live readers while `jobs` prefetch jobs run; `rest`: seconds between two reads of a reader."""
    huge = stage.original("huge", 4 << 30, 64 << 20, 4 << 20)
    ahead = [stage.original(f"ahead-{n}", 100_000_000, 0, 4 << 20) for n in range(jobs)]
    upstream = stage.scripted(roundTrip=0.02, bytesPerSecond=4_000_000)
    cache = stage.cache(upstream, "jobs.concurrency=32")
    slots = list(range(huge.length // LIVE_BYTES))
    random.Random(f"prefetch {stage.seed} {rest}").shuffle(slots)
    seconds = stage.size(6, 2)
    until, watch = CLOCK() + seconds, Watch(cache)

    async def live():
        while CLOCK() < until:
            first = slots.pop() * LIVE_BYTES
            async with Reader(cache.port, cache.target(huge), huge, first, first + LIVE_BYTES) as reader:
                await reader.take()
                found.milliseconds.append(reader.first_byte_seconds * 1000)
            await asyncio.sleep(rest)

    for original in ahead:
        order = {"items": [{"origin": "media", "path": original.path.lstrip("/")}]}
        await asyncio.to_thread(cache.ask, "/v1/jobs", "POST", order)
    watching = asyncio.create_task(watch.until(until)) if jobs else None
    await stage.play([live() for _ in range(LIVE_READERS)])
    if watching:
        await stage.play([watching])
    paths = {original.path for original in ahead}
    found.sent += sum(request["sent"] for request in upstream.requests() if request["path"] in paths)
    found.seconds += seconds
    found.overtaken += watch.overtaken
    await asyncio.to_thread(stage.end, cache.process)


class Watch:
    """Polls the fills ten times per second and counts prefetch windows that start while a live one is queued."""

    def __init__(self, cache):
        self.cache = cache
        self.overtaken = 0

    async def until(self, instant):
        before = {}
        while CLOCK() < instant:
            fills = await asyncio.to_thread(self.cache.fills)
            if fills is None:
                raise Fault("GET /v1/fills is not available")
            now = {fill["fillId"]: (fill["priority"], fill["state"]) for fill in fills}
            stood = [fill for fill, seen in before.items() if seen == ("live", "queued") == now.get(fill)]
            begun = [
                fill for fill, seen in now.items()
                if seen == ("prefetch", "running") and before.get(fill) in (None, ("prefetch", "queued"))
            ]  # fmt: skip
            if stood and before:
                self.overtaken += len(begun)
            before = now
            await asyncio.sleep(0.1)
