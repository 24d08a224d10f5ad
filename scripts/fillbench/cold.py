"""Reads of unknown assets, compared with direct reads of the same bytes from the upstream."""

import asyncio
import itertools
import shutil

from .client import CLOCK, Fault, Reader
from .figures import Figure
from .scenarios import scenario

KIBI, MEBI = 1 << 10, 1 << 20
DELAYS = (0.02, 0.1, 0.2)
LINK = 100_000_000 // 8  # bytes per second
RANGES = [("600 KiB", 600 * KIBI), ("2 MiB", 2 * MEBI), ("8 MiB", 8 * MEBI), ("16 MiB", 16 * MEBI)]
#: Name, bytes, and the required ratio to a direct read.
WHOLES = [
    ("1.6 MB", 1_600_000, 1.25), ("6 MiB", 6 * MEBI, 1.25), ("8 MiB", 8 * MEBI, 1.25), ("24 MiB", 24 * MEBI, 1.6),
    ("256 MiB", 256 * MEBI, 1.15),
]  # fmt: skip
SEGMENT, SEGMENTS = 1_600_000, 200
#: Connections of `curl --parallel`: the share that prefetch may use of an origin's 16 transfers.
PARALLEL = 12


class Cold:
    """Pairs of reads: one through the measured cache, one direct. Each read uses a new asset."""

    def __init__(self, stage, upstream, cache):
        self.stage, self.upstream, self.cache = stage, upstream, cache
        self.names = itertools.count()

    async def pair(self, original, first=0, size=None):
        """Returns the time through the cache ÷ the direct time, and the number of upstream requests of the cache."""
        seconds = {}
        for way in ("direct", "cache") if self.stage.round % 2 else ("cache", "direct"):
            query = f"?{way}={next(self.names)}"
            last = None if size is None else first + size
            port, target = (self.upstream.port, original.path + query) if way == "direct" else (
                self.cache.port, self.cache.target(original, query))
            began = CLOCK()
            async with Reader(port, target, original, first, last, whole=size is None, receive_buffer=None) as reader:
                await reader.take()
            seconds[way] = CLOCK() - began
            if way == "cache":
                asked = await asyncio.to_thread(self.upstream.requests)
                requests = sum(request["query"] == query[1:] for request in asked)
        return seconds["cache"] / seconds["direct"], requests


async def play(stage, name, **behaviour):
    """Measures ranges, whole files and jobs with one behaviour of the upstream."""
    upstream = stage.scripted(**behaviour)
    cache = stage.cache(upstream)
    cold = Cold(stage, upstream, cache)
    film = stage.original("film", 64 * MEBI)
    await cold.pair(film, 0, 1000)  # opens a connection for both
    figures = []
    for text, size in RANGES:
        ratio, requests = await cold.pair(film, 5 * MEBI, size)
        figures += [
            Figure(f"{name}, range of {text}: time ÷ direct", ratio, "ratio", most=1.15, by_median=True),
            Figure(f"{name}, range of {text}: requests", requests, most=1),
        ]
    for text, size, most in WHOLES:
        if stage.brief and size > 8 * MEBI:
            continue
        ratio, requests = await cold.pair(stage.original("whole", size))
        # Without a rate limit, the disk limits the transfer of a large file.
        most = most if size < 100 * MEBI or "totalBytesPerSecond" in behaviour else None
        figures += [
            Figure(f"{name}, whole {text}: time ÷ direct", ratio, "ratio", most=most, by_median=True),
            Figure(f"{name}, whole {text}: requests", requests, most=1),
        ]
    if cache.name == "larder":
        figures += await jobs(stage, name, upstream, cache)
    return figures


async def jobs(stage, name, upstream, cache):
    """Compares prefetch jobs with `curl --parallel` that stores the same files on the same disk."""
    whole = stage.original("whole", 24 * MEBI)
    segment = stage.original("segment", SEGMENT)
    count = stage.size(SEGMENTS, 10)
    figures = []
    for text, original, number in [("of 24 MiB", whole, 1), (f"of {count} segments of 1.6 MB", segment, count)]:
        paths = [f"{original.path.lstrip('/')}?job={text.split()[1]}.{turn}" for turn in range(number)]
        urls = [f"http://127.0.0.1:{upstream.port}/{path}" for path in paths]
        seconds = await curl_seconds(urls, stage.place("curl"))
        order = {"items": [{"origin": "media", "path": path} for path in paths]}
        began = CLOCK()
        job = await asyncio.to_thread(cache.ask, "/v1/jobs", "POST", order)
        state = job
        while state["state"] not in ("succeeded", "failed", "cancelled"):
            await asyncio.sleep(0.005)
            state = await asyncio.to_thread(cache.ask, f"/v1/jobs/{job['jobId']}")
        if state["state"] != "succeeded":
            raise Fault(f"the job ended in the state {state['state']}")
        taken = CLOCK() - began
        figures.append(Figure(f"{name}, job {text}: time ÷ curl", taken / seconds, "ratio", most=1.3, by_median=True))
    return figures


async def curl_seconds(urls, directory):
    """Time in seconds of a parallel download of the URLs into the directory."""
    config = "".join(f'url = "{url}"\noutput = "{directory}/{n}"\n' for n, url in enumerate(urls))
    began = CLOCK()
    process = await asyncio.create_subprocess_exec(
        "curl", "--silent", "--fail", "--parallel", "--no-progress-meter", "--parallel-max", str(PARALLEL), "--config", "-",
        stdin=asyncio.subprocess.PIPE,
    )  # fmt: skip
    await process.communicate(config.encode())
    if process.returncode:
        raise Fault(f"curl exited with {process.returncode}")
    seconds = CLOCK() - began
    shutil.rmtree(directory)
    return seconds


@scenario("far", "cold reads and jobs compared with direct ones; response delays of 20, 100, 200 ms; a 100 Mbit/s link",
          beside_nginx=True, limit=300)  # fmt: skip
async def far(stage):
    figures = []
    for delay in DELAYS:
        figures += await play(stage, f"{delay * 1000:.0f} ms", answerDelay=delay)
    return figures + await play(stage, "100 Mbit/s, 20 ms", answerDelay=0.02, totalBytesPerSecond=LINK)
