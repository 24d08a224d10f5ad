"""A reader: GET requests on its own connection; every received byte is compared with the original."""

import array
import asyncio
import ctypes
import fcntl
import socket
import termios
import time

CHUNK = 256 << 10
ORDINARY_BUFFER = 128 << 10
CLOCK = time.perf_counter


class Fault(Exception):
    """A failed read: wrong bytes, a wrong response, or a closed connection."""


class Buffers:
    """The receive buffer that all readers of an event loop share; it is used during one receive call only."""

    def __init__(self):
        self.bytes = bytearray(CHUNK)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))


SHARED = Buffers()


class Reader:
    """Call `await begin()` once, then `take` any number of times. `position` is the offset of the next byte."""

    def __init__(self, port, target, original, first=0, last=None, whole=False, receive_buffer=ORDINARY_BUFFER):
        self.port, self.target, self.original = port, target, original
        self.first, self.last, self.whole = first, last, whole
        self.end = original.length if last is None else min(last, original.length)
        self.position = first
        self.asked_at = self.first_byte_at = None
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)

    @property
    def taken(self):
        return self.position - self.first

    @property
    def first_byte_seconds(self):
        return self.first_byte_at - self.asked_at

    def fault(self, text):
        return Fault(f"{self.target} {self.first}-{self.end - 1} at {self.position}: {text}")

    async def begin(self):
        """Connects, sends the request, and reads the response head with the body bytes received along with it."""
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(self.socket, ("127.0.0.1", self.port))
            await self.ask()
        except OSError as error:
            raise self.fault(f"{type(error).__name__} {error}") from error

    async def ask(self):
        loop = asyncio.get_running_loop()
        last = "" if self.last is None else self.last - 1
        line = "" if self.whole else f"Range: bytes={self.first}-{last}\r\n"
        self.asked_at = CLOCK()
        self.first_byte_at = None
        await loop.sock_sendall(
            self.socket, f"GET {self.target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{line}\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            part = await loop.sock_recv(self.socket, 16 << 10)
            if not part:
                raise self.fault(f"the connection was closed before the end of the response head: {head!r}")
            head += part
        head, _, body = head.partition(b"\r\n\r\n")
        self.judge(head.decode("latin-1"))
        if body:
            SHARED.bytes[: len(body)] = body
            self.compare(SHARED.address, len(body))

    async def again(self, first, last):
        """Requests another range on the same connection. The previous response must have been read completely."""
        self.first, self.last, self.position, self.end = first, last, first, min(last, self.original.length)
        await self.ask()

    def judge(self, head):
        """Raises a fault unless status and Content-Range are the expected ones."""
        status, *lines = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if self.whole:
            expected, got = ("200", ""), (status.split()[1], fields.get("content-range", ""))
        else:
            expected = ("206", f"bytes {self.first}-{self.end - 1}/{self.original.length}")
            got = (status.split()[1], fields.get("content-range", ""))
        if got != expected:
            raise self.fault(f"{got} instead of {expected}")

    def compare(self, address, count):
        """Compares `count` received bytes with the original and advances `position`."""
        if self.first_byte_at is None:
            self.first_byte_at = CLOCK()
        if self.position + count > self.end:
            raise self.fault("more than the requested bytes")
        if not self.original.matches(self.position, address, count):
            raise self.fault(f"WRONG BYTES in {self.position}-{self.position + count - 1}")
        self.position += count

    async def receive(self, most=CHUNK, until=None):
        """Receives up to `most` bytes; waits for the first one until the CLOCK time `until`.

        Returns the count; 0: the connection was closed; None: timeout."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                count = self.socket.recv_into(SHARED.bytes, min(most, CHUNK))
            except BlockingIOError:
                if not await readable(loop, self.socket, until):
                    return None
                continue
            except OSError as error:
                raise self.fault(f"{type(error).__name__} {error}") from error
            if count:
                self.compare(SHARED.address, count)
            return count

    async def take(self, count=None, pace=None, until=None):
        """Reads `count` bytes (None: to the end) at `pace` bytes per second, until the CLOCK time `until` at most."""
        goal = self.end if count is None else min(self.end, self.position + count)
        began, begun_at = CLOCK(), self.position
        step = CHUNK if pace is None else max(4 << 10, min(32 << 10, int(pace / 20)))
        while self.position < goal:
            due = began if pace is None else began + (self.position - begun_at) / pace
            await asyncio.sleep(max(0, (due if until is None else min(due, until)) - CLOCK()))
            if until is not None and CLOCK() >= until:
                return
            taken = await self.receive(min(step, goal - self.position), until)
            if taken == 0:
                raise self.fault("the connection was closed before the end")

    def waiting_bytes(self):
        """Number of unread bytes in the kernel's receive buffer."""
        count = array.array("i", [0])
        fcntl.ioctl(self.socket.fileno(), termios.FIONREAD, count)
        return count[0]

    def close(self):
        self.socket.close()

    async def __aenter__(self):
        await self.begin()
        return self

    async def __aexit__(self, *_):
        self.close()


async def readable(loop, peer, until=None):
    """Waits until bytes are readable, or until the CLOCK time `until`; returns whether they are."""
    arrived = loop.create_future()

    def settle(whether):
        if not arrived.done():
            arrived.set_result(whether)

    timer = None if until is None else loop.call_later(max(0, until - CLOCK()), settle, False)
    loop.add_reader(peer.fileno(), settle, True)
    try:
        return await arrived
    finally:
        loop.remove_reader(peer.fileno())
        if timer:
            timer.cancel()
