"""Scripted upstream: serves the files of a directory with a configured behaviour, and logs requests and bytes.

    python3 -m fillbench.upstream '{"root": "/…", "roundTrip": 0.02}'

Prints its port, and exits at the end of its standard input. `GET /-/log` returns the requests and the sent bytes; a
request's `sent` grows during its response.

- roundTrip: delay of each response in seconds; the first response of a connection is delayed twice, like a handshake.
- answerDelay: delay of each response in seconds, without an addition for a new connection.
- bytesPerSecond, totalBytesPerSecond: rate limit per connection, and of all connections in order of arrival.
- closes: true closes each connection after its first response.
- cutAfter: closes the connection after this number of body bytes.
- ranges: false responds to every request with 200 and the whole file.
- patience: closes the connection if the peer accepts no bytes for this number of seconds.
"""

import asyncio
import hashlib
import json
import os
import pathlib
import socket
import struct
import sys
import time

from harness import ranges

PIECE = 2 << 20
LAST_MODIFIED = "Wed, 01 Jan 2020 10:00:00 GMT"


class Pacer:
    """Rate limiter in bytes per second that serves callers in order; None: unlimited."""

    def __init__(self, bytes_per_second):
        self.rate = bytes_per_second
        self.free_at = 0.0

    @property
    def piece(self):
        """Number of bytes that pass in about 5 ms."""
        return PIECE if self.rate is None else max(2048, min(PIECE, int(self.rate / 200)))

    async def carry(self, count):
        if self.rate is None:
            return
        self.free_at = max(self.free_at, time.monotonic()) + count / self.rate
        await asyncio.sleep(self.free_at - time.monotonic())


class Upstream:
    """The server; its behaviour is described above."""

    def __init__(self, behaviour):
        self.root = pathlib.Path(behaviour["root"])
        self.round_trip = behaviour.get("roundTrip", 0)
        self.answer_delay = behaviour.get("answerDelay", 0)
        self.per_connection = behaviour.get("bytesPerSecond")
        self.closes = behaviour.get("closes", False)
        self.cut_after = behaviour.get("cutAfter")
        self.knows_ranges = behaviour.get("ranges", True)
        self.patience = behaviour.get("patience")
        self.all = Pacer(behaviour.get("totalBytesPerSecond"))
        self.files = {}
        #: Bytes acknowledged on closed connections; the open connections.
        self.acked, self.open = 0, set()
        self.connections = 0
        self.requests = []
        self.began = time.monotonic()

    def now(self):
        return round(time.monotonic() - self.began, 4)

    def file(self, path):
        """Descriptor, length and entity tag; None if the file does not exist."""
        if path not in self.files:
            try:
                descriptor = os.open(self.root / path.lstrip("/"), os.O_RDONLY)
            except OSError:
                return None
            tag = '"' + hashlib.sha256(path.encode()).hexdigest()[:16] + '"'
            self.files[path] = (descriptor, os.fstat(descriptor).st_size, tag)
        return self.files[path]

    async def listen(self):
        loop = asyncio.get_running_loop()
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        listener.setblocking(False)
        print(listener.getsockname()[1], flush=True)
        loop.add_reader(sys.stdin, lambda: os._exit(0))  # the parent process has ended
        tasks = set()
        while True:
            peer, _ = await loop.sock_accept(listener)
            task = asyncio.create_task(self.serve(peer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def serve(self, peer):
        loop = asyncio.get_running_loop()
        peer.setblocking(False)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open.add(peer)
        number, wire, received, is_first = None, Pacer(self.per_connection), b"", True
        try:
            while True:
                while b"\r\n\r\n" not in received:
                    part = await loop.sock_recv(peer, 16 << 10)
                    if not part:
                        return
                    received += part
                head, _, received = received.partition(b"\r\n\r\n")
                method, target, fields = parse(head)
                if target == "/-/log":
                    await self.show_log(peer)
                    continue
                if number is None:
                    self.connections += 1
                    number = self.connections
                await asyncio.sleep(self.answer_delay + self.round_trip * (2 if is_first else 1))
                is_first = False
                if not await self.answer(peer, wire, number, method, target, fields) or self.closes:
                    return
        except OSError:
            pass
        finally:
            self.acked += acked(peer)
            self.open.discard(peer)
            peer.close()

    async def show_log(self, peer):
        total = self.acked + sum(acked(other) for other in self.open if other is not peer)
        text = json.dumps({"connections": self.connections, "acked": total, "requests": self.requests}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode()
        await asyncio.get_running_loop().sock_sendall(peer, head + text)

    async def answer(self, peer, wire, number, method, target, fields):
        """Sends one response; returns whether the connection stays open."""
        loop = asyncio.get_running_loop()
        path, _, query = target.partition("?")
        found = self.file(path)
        if found is None:
            await loop.sock_sendall(peer, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return True
        descriptor, length, tag = found
        run = range_of(fields, length, tag) if self.knows_ranges else None
        first, last = run or (0, length)
        head = ["HTTP/1.1 206 Partial Content" if run else "HTTP/1.1 200 OK", f"Content-Length: {last - first}"]
        head += [f"ETag: {tag}", f"Last-Modified: {LAST_MODIFIED}", "Content-Type: video/mp4"]
        head += ["Cache-Control: max-age=86400"]
        head += ["Connection: close"] if self.closes else []
        head += ["Accept-Ranges: bytes"] if self.knows_ranges else []
        head += [f"Content-Range: bytes {first}-{last - 1}/{length}"] if run else []
        record = {
            "method": method, "path": path, "query": query, "range": fields.get("range"), "first": first, "last": last, "sent": 0,
            "connection": number, "began": self.now(), "ended": None,
        }  # fmt: skip
        self.requests.append(record)
        try:
            await loop.sock_sendall(peer, ("\r\n".join(head) + "\r\n\r\n").encode())
            return method == "HEAD" or await self.send(peer, wire, descriptor, record)
        finally:
            record["ended"] = self.now()

    async def send(self, peer, wire, descriptor, record):
        """Sends the requested bytes; returns whether the connection stays open."""
        loop = asyncio.get_running_loop()
        offset, last = record["first"], record["last"]
        end = last if self.cut_after is None else min(last, offset + self.cut_after)
        piece = min(wire.piece, self.all.piece)
        while offset < end:
            count = min(piece, end - offset)
            await wire.carry(count)
            await self.all.carry(count)
            while count:
                try:
                    sent = os.sendfile(peer.fileno(), descriptor, offset, count)
                except BlockingIOError:
                    try:
                        await asyncio.wait_for(writable(loop, peer), self.patience)
                    except asyncio.TimeoutError:
                        return False
                    continue
                offset, count = offset + sent, count - sent
                record["sent"] += sent
        return end == last


def acked(peer):
    """Bytes that the peer's kernel has received and acknowledged: tcpi_bytes_acked of TCP_INFO."""
    try:
        return struct.unpack_from("Q", peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232), 120)[0]
    except (OSError, struct.error):
        return 0


async def writable(loop, peer):
    drained = loop.create_future()
    loop.add_writer(peer.fileno(), lambda: drained.done() or drained.set_result(None))
    try:
        await drained
    finally:
        loop.remove_writer(peer.fileno())


def parse(head):
    line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    return method, target, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def range_of(fields, length, tag):
    """The requested half-open range; None: the whole file."""
    if fields.get("if-range", tag) not in (tag, LAST_MODIFIED):
        return None
    run = ranges.requested(fields.get("range"), length)
    return run if run and run[0] < length else None


if __name__ == "__main__":
    try:
        asyncio.run(Upstream(json.loads(sys.argv[1])).listen())
    except KeyboardInterrupt:
        pass
