"""Abusive clients: idle, too many, slow to send requests, slow to read responses."""

import asyncio
import json
import time

HEADER_SECONDS = 2
READS = 64
#: Memory limits in bytes for an idle connection and for one that does not read.
IDLE_BYTES, SLOW_BYTES = 32 << 10, 256 << 10


class Silent:
    """An upstream that accepts requests and never responds."""

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.swallow, "127.0.0.1", 0, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def swallow(self, reader, writer):
        await reader.read()
        writer.close()

    async def __aexit__(self, *_):
        self.server.close()


class Crowd:
    """The clients of one trial; `count` is the connection limit of the service."""

    def __init__(self, trial, count):
        self.trial, self.count, self.port = trial, count, trial.service.port

    async def run(self):
        """Runs all steps; returns their descriptions. Failures are recorded in the trial."""
        done = []
        for step in (self.idle, self.trickle, self.refuse_to_read, self.wait_for_nothing):
            done.append(await step())
            await self.settle()
        return "; ".join(done)

    def fail(self, text):
        self.trial.failed.append(text)

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)

    async def ask(self, stream, target, fields=""):
        """Sends a request; returns status, head and body of the response."""
        reader, writer = stream
        writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)  # problem documents are chunked
        return int(head.split()[1]), head, await asyncio.wait_for(reader.readexactly(length), 60)

    async def read_right(self, stream, name, first):
        status, _, body = await self.ask(stream, f"/o/media/{name}", f"Range: bytes={first}-{first + 1023}\r\n")
        if status != 206 or body != self.trial.library.files[name][first:first + 1024]:
            self.trial.wrong += status == 206
            self.fail(f"{name} {first}: {status}")

    async def idle(self):
        """Opens the maximum of idle connections: reads continue, and the oldest ones give way to further connections."""
        before, streams = self.trial.service.taken()[0], []
        for number in range(self.count):
            streams.append(await self.connect())
            await self.read_right(streams[-1], "0.bin", number)
        each = (self.trial.service.taken()[0] - before) // self.count
        if each > IDLE_BYTES:
            self.fail(f"{each} bytes per idle connection")
        slowest = 0.0
        for number in range(200):
            began = time.monotonic()
            await self.read_right(streams[number * 7 % self.count], "1.bin", number)
            slowest = max(slowest, time.monotonic() - began)
        extra = []
        for number in range(40):
            extra.append(await self.connect())
            await self.read_right(extra[-1], "1.bin", number)
        # The end of a connection can arrive after the response on its successor.
        open_ones = {asyncio.ensure_future(reader.read(1)) for reader, _ in streams}
        closed = 0
        while closed < 40:
            done, open_ones = await asyncio.wait(open_ones, timeout=30, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            closed += len(done)
        for wait in open_ones:
            wait.cancel()
        if closed != 40:
            self.fail(f"{closed} idle connections were closed for 40 further connections")
        await self.leave(streams + extra)
        return f"{self.count} idle, {each >> 10} KiB each, other reads within {slowest * 1000:.0f} ms, 40 gave way"

    async def trickle(self):
        """Sends request heads and bodies byte by byte: the service times them out."""
        heads, bodies = [b"GET /o/media/0.bin HTTP/1.1\r\nX: "] * 200, [
            b"POST /v1/probe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
        ] * 100  # fmt: skip

        async def one(beginning):
            reader, writer = await self.connect()
            began = time.monotonic()
            writer.write(beginning)
            answer = asyncio.ensure_future(reader.readuntil(b"\r\n"))
            while not answer.done() and time.monotonic() - began < 30:
                writer.write(b"x")
                await asyncio.wait([answer], timeout=0.2)
            if not answer.done():
                self.fail("a slow request is not timed out")
            elif not answer.exception() and b" 408 " not in answer.result():
                self.fail(f"a slow request received {answer.result()}")
            await self.leave([(reader, writer)])
            return time.monotonic() - began, answer.done() and not answer.exception()

        ends = await asyncio.gather(*map(one, heads + bodies))
        longest, told = max(seconds for seconds, _ in ends), sum(is_told for _, is_told in ends)
        if longest > HEADER_SECONDS + 8 or not told:
            self.fail(f"slow requests were timed out after {longest:.1f} s, {told} of 300 with a response")
        return f"300 slow requests timed out within {longest:.1f} s"

    async def refuse_to_read(self):
        """Clients that request whole files and read nothing: they occupy little memory."""
        before, count, streams = self.trial.service.taken()[0], min(500, self.count - 100), []
        for number in range(count):
            reader, writer = await self.connect()
            writer.transport.pause_reading()
            name = f"{number % len(self.trial.library.files)}.bin"
            writer.write(f"GET /o/media/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            streams.append((reader, writer))
        for number in range(50):
            await self.other_read(number)
        each = max(0, self.trial.service.taken()[0] - before) // count
        if each > SLOW_BYTES:
            self.fail(f"{each} bytes per client that does not read")
        await self.leave(streams)
        return f"{count} do not read, {each >> 10} KiB each"

    async def other_read(self, number):
        stream = await self.connect()
        await self.read_right(stream, "1.bin", number * 1000)
        await self.leave([stream])

    async def wait_for_nothing(self):
        """Reads from a silent upstream: accepted up to the limit, then rejected with a short response."""
        async with Silent() as silent:
            origin = {"baseURL": f"http://127.0.0.1:{silent.port}", "allowPrivateAddresses": True}
            status, body = await asyncio.to_thread(self.trial.service.ask, "PUT", "/v1/origins/silent", origin)
            if status != 201:
                self.fail(f"the origin was not created: {status} {body[:100]}")
            streams = [await self.connect() for _ in range(4 * READS)]
            tasks = [
                asyncio.ensure_future(self.ask(stream, f"/o/silent/{number}"))
                for number, stream in enumerate(streams)
            ]
            await asyncio.wait(tasks, timeout=5)
            refused = [task.result() for task in tasks if task.done() and not task.exception()]
            if len(refused) != 3 * READS or any(answer[0] != 503 for answer in refused):
                self.fail(f"{len(refused)} of {4 * READS} reads were rejected")
            await self.other_read(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.leave(streams)
            await self.settle()
        return f"{len(refused)} of {4 * READS} reads of a silent upstream rejected"

    async def settle(self):
        """Waits until the service has noticed all disconnects: no read, and only the connection of this request."""
        end = time.monotonic() + 60
        while (left := await asyncio.to_thread(self.active)) != (0, 1):
            if time.monotonic() > end:
                return self.fail(f"reads and connections left behind: {left}")
            await asyncio.sleep(0.1)

    def active(self):
        """The current numbers of reads and connections; False if the request itself is rejected."""
        status, body = self.trial.service.ask("GET", "/v1/stats")
        return status == 200 and tuple(json.loads(body)["load"][kind]["active"] for kind in ("reads", "connections"))

    async def leave(self, streams):
        for _, writer in streams:
            writer.transport.abort()
        await asyncio.sleep(0)
