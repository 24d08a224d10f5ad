"""Hostile clients and upstreams for the soak test: each runs until its end time and counts what it did.

    hostile.py PORT SECONDS SEED FOLLOWERS IDLE UPSTREAM

It runs as a process of its own, so that it does not delay the readers that the soak test measures. Prints one JSON
object with the counts.
"""

import asyncio
import collections
import json
import random
import sys
import time

PLAYLIST_SEGMENTS = 2000
JOB_ITEMS = 1000
#: The announced length of truncated responses, and the sent part.
TRUNCATED, SENT = 1 << 20, 300_000


class Hostile:
    """All hostile clients of one service. They expect nothing: any response is counted by its status."""

    def __init__(self, port, seconds, seed):
        self.port, self.end, self.chance = port, time.monotonic() + seconds, random.Random(seed)
        self.counts = collections.Counter()

    @property
    def is_running(self):
        return time.monotonic() < self.end

    async def connect(self):
        return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", self.port, limit=1 << 16), 30)

    async def ask(self, name, method, target, token, body=None, pace=None):
        """Sends a request and discards its response; `pace`: bytes of the body per 0.1 s. Returns the status."""
        reader, writer = await self.connect()
        try:
            head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
            if body is not None:
                head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            writer.write(head.encode() + b"\r\n" + (b"" if pace else body or b""))
            answer = asyncio.ensure_future(self.status(reader))
            for start in range(0, len(body or b"") if pace else 0, pace or 1):
                if answer.done() or not self.is_running:
                    break
                writer.write(body[start:start + pace])
                await writer.drain()
                await asyncio.sleep(0.1)
            status = await asyncio.wait_for(answer, max(1, self.end - time.monotonic()) + 5)
            self.counts[f"{name} {status}"] += 1
            return status
        finally:
            writer.transport.abort()

    async def status(self, reader):
        status = int((await reader.readline()).split()[1])
        while await reader.read(1 << 16):
            pass
        return status

    async def again(self, name, step, pause):
        """Repeats a step until the end, after a random part of the pause. Connections that the service refuses or closes
        are counted."""
        await asyncio.sleep(pause * self.chance.random())
        while self.is_running:
            try:
                await step()
            except (OSError, IndexError, ValueError, asyncio.TimeoutError):
                self.counts[f"{name} closed"] += 1
            await asyncio.sleep(pause * (0.5 + self.chance.random()))

    async def upload(self):
        """A body at the limit of a job, slowly or at once, by a limited token."""
        item = b'{"origin": "media", "path": "none/%d"},'
        body = b'{"items": [' + b"".join(item % number for number in range(200_000))
        pace = self.chance.choice([None, 8 << 10, 64 << 10])
        await self.ask("upload", "POST", "/v1/jobs", "uploads", body[:8 << 20], pace)

    async def follow(self, number):
        """Requests an event stream and never reads it."""
        reader, writer = await self.connect()
        writer.transport.pause_reading()
        topics = self.chance.choice(["", "?topics=jobs,fills", "?topics=fills,stats"])
        writer.write(
            f"GET /v1/events{topics} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer follow{number // 50}\r\n\r\n".encode()
        )
        self.counts["followers"] += 1
        try:
            while self.is_running and not writer.transport.is_closing():
                await asyncio.sleep(1)
        finally:
            writer.transport.abort()

    async def idle(self):
        """Opens a connection and sends nothing, or half a request."""
        reader, writer = await self.connect()
        writer.write(self.chance.choice([b"", b"GET /o/me"]))
        self.counts["idle"] += 1
        try:
            await asyncio.wait_for(reader.read(1 << 16), max(1, self.end - time.monotonic()))
        finally:
            writer.transport.abort()

    async def prefetch(self):
        """A large job, or one that expands a playlist."""
        number = self.chance.randrange(1 << 30)
        items = [{"origin": "media", "path": f"part.bin?job={number}-{item}"} for item in range(JOB_ITEMS)]
        if self.chance.random() < 0.5:
            items = [{"origin": "media", "path": f"list.m3u8?job={number}", "play": {"seconds": 10_000}}]
        await self.ask("job", "POST", "/v1/jobs", "jobs", json.dumps({"items": items}).encode())

    async def list(self):
        target = self.chance.choice(
            ["/v1/assets?limit=1000&sort=key", "/v1/assets?limit=1000&sort=hits&total=true", "/v1/jobs?limit=1000",
             "/v1/events", "/v1/stats/live?windowSeconds=900", "/v1/fills"])  # fmt: skip
        await self.ask("list", "GET", target, "lists")

    async def truncated(self):
        """Reads a file that the upstream never sends completely."""
        await self.ask("truncated", "GET", f"/o/broken/{self.chance.randrange(50)}", "lists")

    async def run(self, followers, idle):
        steps = [(lambda number=number: self.follow(number), "follower", 5) for number in range(followers)]
        steps += [(self.idle, "idle", 5) for _ in range(idle)]
        steps += [(self.upload, "upload", 0.2) for _ in range(8)]
        steps += [(self.prefetch, "job", 4)]
        steps += [(self.list, "list", 0.5) for _ in range(4)]
        steps += [(self.truncated, "truncated", 0.2) for _ in range(8)]
        await asyncio.gather(*(self.again(name, step, pause) for step, name, pause in steps))


async def truncate(reader, writer):
    """An upstream that ends each response too early."""
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: %d\r\n\r\n" % TRUNCATED)
            writer.write(bytes(SENT))
            await writer.drain()
            break
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    port, seconds, seed, followers, idle, upstream = sys.argv[1:]
    server = await asyncio.start_server(truncate, "127.0.0.1", int(upstream), backlog=1024)
    hostile = Hostile(int(port), float(seconds), seed)
    await hostile.run(int(followers), int(idle))
    server.close()
    print(json.dumps(hostile.counts))


if __name__ == "__main__":
    asyncio.run(main())
