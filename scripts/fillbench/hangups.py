"""Readers that disconnect early: the bytes that the upstream sends in vain."""

import asyncio
import itertools
import random

from .client import CLOCK, Reader
from .figures import Figure
from .scenarios import scenario

MEBI = 1 << 20
TAKEN = 2 * MEBI
PACE = 2 * MEBI
#: Concurrent connections of clients that abort.
ABORTING = 16


@scenario("leave", "200 players read 2 MiB of files of 1 GiB and disconnect; 20,000 clients abort", brief=True,
          limit=300)  # fmt: skip
async def leave(stage):
    film = stage.original("film", 1 << 30, 64 * MEBI, 4 * MEBI)
    figures = []
    for text, safari, pace in [
        ("at full speed", False, None), ("at 2 MiB/s", False, PACE), ("Safari's ranges at full speed", True, None),
        ("Safari's ranges at 2 MiB/s", True, PACE),
    ]:  # fmt: skip
        count = stage.size(200, 20)
        upstream = stage.scripted()
        cache = stage.cache(upstream)
        names = itertools.count()

        async def player(pace=pace, safari=safari, cache=cache, names=names):
            target = cache.target(film, f"?player={next(names)}")
            if safari:
                async with Reader(cache.port, target, film, 0, 2) as probe:
                    await probe.take()
            last = film.length if safari else None
            async with Reader(cache.port, target, film, 0, last, whole=not safari) as reader:
                await reader.take(TAKEN, pace)

        batch = count if pace else 10
        for _ in range(0, count, batch):
            await stage.play(player() for _ in range(batch))
        stage.settle(upstream.bytes_sent)
        received, written = upstream.bytes_received(), upstream.bytes_sent()
        most = 1.25 * TAKEN + (0 if pace else MEBI)
        figures += [
            Figure(f"{text}: received by the cache's kernel per reader", received / count, "bytes", most=most),
            Figure(f"{text}: written by the upstream per reader", written / count, "bytes"),
        ]
    return figures + await aborts(stage, film)


async def aborts(stage, film):
    """Clients that close the connection immediately after the request, or after a part of the response."""
    count = stage.size(20_000, 500)
    upstream = stage.scripted()
    cache = stage.cache(upstream)
    names, chance = itertools.count(), random.Random(f"abort {stage.seed}")

    async def client():
        while (name := next(names)) < count:
            reader, writer = await asyncio.open_connection("127.0.0.1", cache.port)
            writer.write(f"GET {cache.target(film, f'?abort={name}')} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            await writer.drain()
            if chance.random() < 0.3:
                await reader.read(chance.randrange(1, 100_000))
            writer.close()

    began = CLOCK()
    await stage.play(client() for _ in range(ABORTING))
    seconds = CLOCK() - began
    stage.settle(upstream.bytes_sent)
    return [
        Figure("immediate abort: received by the cache's kernel per client", upstream.bytes_received() / count, "bytes",
               most=256 << 10),
        Figure("immediate abort: written by the upstream per client", upstream.bytes_sent() / count, "bytes"),
        Figure("immediate abort: clients per second", count / seconds),
    ]  # fmt: skip
