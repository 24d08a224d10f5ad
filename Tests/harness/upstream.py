"""The upstream of the test programs: a threaded TCP server with correct or faulty HTTP, as a check requires.

A handler is called as `handler(request, connection)` for every request and writes any bytes to the connection:
`asset(…)` is correct, an `Answer` is one fixed response, a list is one handler after the other (the last repeats). A
subclass of `Upstream` with a method `answer(request)` returns the `Answer` or the handler of each request instead.
"""

import functools
import os
import random
import socket
import struct
import threading
import time
import traceback
import urllib.parse
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime

from . import ranges

#: Old enough for any heuristic freshness, and for a strong date validator (RFC 9110 §8.8.2.2).
LAST_MODIFIED = "Wed, 01 Jan 2020 10:00:00 GMT"
PERIOD = 1_000_003  # a prime: no two aligned blocks are equal
PATTERNS = {}
#: Bytes of a body that are written at once, so that a closed connection ends a transfer early.
PIECE = 256 << 10
NO_BODY = (204, 304)
#: Seconds from a request to its answer: reveals checks that take a request for an answer.
DELAY = float(os.environ.get("ANSWER_DELAY", "0"))
REASONS = {
    200: "OK", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found",
    304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 410: "Gone", 412: "Precondition Failed", 416: "Range Not Satisfiable", 429: "Too Many Requests",
    500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip


def pattern(first, end, seed=0):
    """The bytes `first ..< end` of the endless asset of this seed; other seeds are other generations."""
    block = PATTERNS.get(seed)
    if block is None:
        block = PATTERNS[seed] = random.Random(seed).randbytes(PERIOD)
    parts = []
    while first < end:
        offset = first % PERIOD
        run = min(end - first, PERIOD - offset)
        parts.append(block[offset : offset + run])
        first += run
    return b"".join(parts)


@functools.lru_cache(maxsize=64)
def content(name, size):
    """The bytes of the file `name`, without a period."""
    return random.Random(name).randbytes(size)


def http_date(offset_seconds=0):
    """An IMF-fixdate at this offset in seconds from now (RFC 9110 §5.6.7)."""
    return formatdate(time.time() + offset_seconds, usegmt=True)


def field_list(headers):
    return list(headers.items()) if isinstance(headers, dict) else list(headers)


@dataclass
class Request:
    """A request that the upstream received."""

    method: str
    #: As received, without the prefix of the check's own path.
    target: str
    #: As received.
    raw_target: str
    version: str
    headers: list
    body: bytes
    time: float
    #: The number of the connection, counted from 1.
    connection: int
    #: The number of the request at this upstream, counted from 1.
    number: int
    #: The status of the response, and the number of body bytes that were written.
    status: int = 0
    sent: int = 0
    #: A remark of the upstream, such as the user or the access key.
    account: str = ""

    def __post_init__(self):
        #: The header fields by their lower-case names.
        self.fields = {name.lower(): value for name, value in self.headers}

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name):
        """The field's lines joined by commas, or None."""
        values = self.all(name)
        return ", ".join(values) if values else None

    @property
    def range(self):
        return self.get("Range")

    @property
    def path(self):
        """The path as it was sent."""
        return self.target.partition("?")[0]

    @property
    def query(self):
        """The query as it was sent."""
        return self.target.partition("?")[2]

    @property
    def name(self):
        """The decoded path."""
        return urllib.parse.unquote(self.path)

    @property
    def parameters(self):
        return dict(urllib.parse.parse_qsl(self.query, keep_blank_values=True))

    @property
    def form(self):
        """The members of a body in the form encoding."""
        return dict(urllib.parse.parse_qsl(self.body.decode(), keep_blank_values=True))


@dataclass
class Answer:
    """One response. Content-Length and Date are added unless they are given or disabled."""

    status: int = 200
    headers: list = ()
    body: bytes = b""
    reason: str = None
    http: str = "1.1"
    date: bool = True
    #: False: the end of the connection is the end of the body.
    length: bool = True
    chunked: bool = False
    #: Fields after the last chunk.
    trailers: list = ()
    #: 1xx responses before this one: (status, headers).
    interim: list = ()
    #: Closes the connection after the response.
    close: bool = False
    #: Closes the connection after this many bytes of the body.
    cut: int = None
    #: An event for which the second half of the body waits.
    hold: object = None

    def fields(self, offset=0):
        fields = field_list(self.headers)
        given = {name.lower() for name, _ in fields}
        if self.date and "date" not in given:
            fields.insert(0, ("Date", http_date(offset)))
        if self.chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        elif self.length and self.status not in NO_BODY and not given & {"content-length", "transfer-encoding"}:
            fields.append(("Content-Length", str(len(self.body))))
        return fields

    def head(self, offset=0):
        """The head; `offset` is the difference of the server's clock in seconds."""
        text = "".join(f"HTTP/1.1 {status} Interim\r\n{lines(field_list(more))}\r\n" for status, more in self.interim)
        reason = REASONS.get(self.status, "Other") if self.reason is None else self.reason
        text += f"HTTP/{self.http} {self.status} {reason}\r\n{lines(self.fields(offset))}\r\n"
        return text.encode("latin-1")

    def encoded_body(self):
        if not self.chunked:
            return self.body
        pieces = [self.body[at : at + 10_000] for at in range(0, len(self.body), 10_000)]
        data = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        return data + b"0\r\n" + lines(field_list(self.trailers)).encode("latin-1") + b"\r\n"

    def __call__(self, request, connection):
        connection.answer(self)


def lines(fields):
    return "".join(f"{name}: {value}\r\n" for name, value in fields)


class Asset:
    """A correct server of one asset (RFC 9110 §13, §14); changing an attribute changes the asset."""

    def __init__(
        self, size, etag, last_modified, cache_control, content_type, ranges, chunked, length, headers, seed, data,
    ):  # fmt: skip
        self.size, self.etag, self.last_modified = size, etag, last_modified
        self.cache_control, self.content_type, self.ranges = cache_control, content_type, ranges
        self.chunked, self.length, self.headers, self.seed = chunked, length, field_list(headers), seed
        self.data = data

    def __call__(self, request, connection):
        connection.answer(self.answer(request))

    def answer(self, request):
        """The correct response; a handler may change it before it is sent."""
        if request.method not in ("GET", "HEAD"):
            return Answer(405, [("Allow", "GET, HEAD")])
        if self.precondition_fails(request):
            return Answer(412, self.validators())
        if self.is_known(request):
            return Answer(304, self.validators() + self.lifetime() + self.headers)
        run = self.run(request)
        if run == "unsatisfiable":
            return Answer(416, [("Content-Range", f"bytes */{self.size}")] + self.validators())
        if run:
            place = ("Content-Range", f"bytes {run[0]}-{run[1] - 1}/{self.size}")
            return self.with_body(206, [place], *run)
        return self.with_body(200, [], 0, self.size)

    def with_body(self, status, fields, first, end):
        ranges = [("Accept-Ranges", "bytes" if self.ranges else "none")]
        kind = [("Content-Type", self.content_type)] if self.content_type else []
        fields = fields + kind + ranges + self.validators() + self.lifetime() + self.headers
        body = pattern(first, end, self.seed) if self.data is None else self.data[first:end]
        return Answer(status, fields, body, chunked=self.chunked, length=self.length, close=not self.length)

    def validators(self):
        fields = [("ETag", self.etag), ("Last-Modified", self.last_modified)]
        return [(name, value) for name, value in fields if value]

    def lifetime(self):
        return [("Cache-Control", self.cache_control)] if self.cache_control else []

    def precondition_fails(self, request):
        wanted = request.get("If-Match")
        if wanted is not None:
            tags = [tag.strip() for tag in wanted.split(",")]
            return "*" not in tags and (self.etag is None or self.etag.startswith("W/") or self.etag not in tags)
        before = request.get("If-Unmodified-Since")
        return bool(before and self.last_modified and instant(self.last_modified) > instant(before))

    def is_known(self, request):
        known = request.get("If-None-Match")
        if known is not None:
            tags = [tag.strip().removeprefix("W/") for tag in known.split(",")]
            return "*" in tags or (self.etag is not None and self.etag.removeprefix("W/") in tags)
        since = request.get("If-Modified-Since")
        return bool(since and self.last_modified and instant(self.last_modified) <= instant(since))

    def run(self, request):
        """The run of bytes to send, None for the whole, or "unsatisfiable"."""
        condition = request.get("If-Range")
        strong = [value for value in (self.etag, self.last_modified) if value and not value.startswith("W/")]
        if not self.ranges or request.method != "GET" or (condition is not None and condition not in strong):
            return None
        run = ranges.requested(request.range, self.size)
        return run if run is None or run[0] < run[1] else "unsatisfiable"


def asset(
    size=None, etag='"v1"', last_modified=LAST_MODIFIED, cache_control="max-age=3600", content_type="video/mp4",
    ranges=True, chunked=False, length=True, headers=(), seed=0, data=None,
):  # fmt: skip
    """A correct handler for `pattern(0, size, seed)`, or `data`; None omits a field."""
    size = size if data is None else len(data)
    return Asset(size, etag, last_modified, cache_control, content_type, ranges, chunked, length, headers, seed, data)


def confirming(whole, *fields):
    """Sends a 304 with these fields for every condition, true or not; serves `whole` to other requests."""

    def handler(request, connection):
        if request.get("If-None-Match") or request.get("If-Modified-Since"):
            connection.answer(Answer(304, whole.validators()[:1] + list(fields)))
        else:
            whole(request, connection)

    return handler


def instant(text):
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return 0


class Connection:
    """One connection of the cache to the upstream, for a handler to write to."""

    def __init__(self, upstream, peer, number):
        self.upstream, self.socket, self.number = upstream, peer, number
        self.is_open = True
        #: Whether a request is being answered.
        self.is_busy = False
        self.buffer = b""
        self.request = None

    def send(self, data):
        """Sends bytes unchanged."""
        self.socket.sendall(data)

    def answer(self, answer):
        """Sends a whole `Answer` to the current request; without its body for a HEAD."""
        self.request.status = answer.status
        self.send(answer.head(self.upstream.offset))
        body = answer.encoded_body() if answer.status not in NO_BODY and self.request.method != "HEAD" else b""
        view = memoryview(body if answer.cut is None else body[: answer.cut])
        half = len(view) // 2 if answer.hold else 0
        self.send_body(view[:half])
        if answer.hold and body:
            self.wait(answer.hold, 60)
        self.send_body(view[half:])
        if answer.close or not answer.length or answer.cut is not None:
            self.close()

    def send_body(self, view):
        for start in range(0, len(view), PIECE):
            piece = view[start : start + PIECE]
            self.send(piece)
            self.request.sent += len(piece)

    def close(self):
        """Closes the connection (FIN)."""
        if self.is_open:
            self.is_open = False
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self.socket.close()

    def reset(self):
        """Resets the connection (RST)."""
        if self.is_open:
            self.is_open = False
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.socket.close()

    def stall(self):
        """Sends nothing more until the check ends."""
        self.upstream.ended.wait()
        self.close()

    def drip(self, data, seconds):
        """Sends single bytes with this delay in seconds, until the check ends: a slow upstream."""
        for at in range(len(data)):
            self.send(data[at : at + 1])
            if self.upstream.ended.wait(seconds):
                raise OSError("the check ended")

    def wait(self, event, limit=15):
        """Waits until the check sets the event; otherwise ends the connection."""
        deadline = time.monotonic() + limit
        while not event.wait(0.05):
            if self.upstream.ended.is_set() or time.monotonic() > deadline:
                raise OSError("the check did not go on")

    def next_request(self):
        """The next request's head and body; None at the end of the connection."""
        while b"\r\n\r\n" not in self.buffer:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.buffer += data
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        first, *rest = head.decode("latin-1").split("\r\n")
        method, target, version = first.split(" ")
        headers = [(name, value.strip(" \t")) for name, value in (line.split(":", 1) for line in rest)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        while len(self.buffer) < length:
            data = self.socket.recv(65536)
            if not data:
                return None
            self.buffer += data
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return method, target, version, headers, body


@dataclass
class Upstream:
    """A listener and its received requests."""

    host: str = "127.0.0.1"
    port: int = 0
    #: The path prefix of the check.
    prefix: str = ""
    #: An `ssl.SSLContext` of a server, for TLS.
    tls: object = None
    handler: object = None
    requests: list = field(default_factory=list)
    #: Faults that fail the check: malformed requests, errors of handlers.
    faults: list = field(default_factory=list)
    #: The number of accepted connections.
    connections: int = 0
    #: The difference between the clock of the server and the real one, in seconds.
    offset: int = 0

    def __post_init__(self):
        self.ended = threading.Event()
        #: Cleared, it holds all answers back.
        self.gate = threading.Event()
        self.gate.set()
        self.lock = threading.Condition()
        self.open = set()
        self.taken = 0
        self.listener = self.listen()
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def listen(self):
        listener = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.host, self.port))
        listener.listen(1024)
        return listener

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def serve(self, handler):
        """Sets the handler from now on."""
        with self.lock:
            self.handler, self.taken = handler, 0

    def close(self):
        """Stops listening and ends every connection. The port stays bound, so that no other test server gets it."""
        self.ended.set()
        self.gate.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.listener.bind((self.host, self.port))
        except OSError:
            pass
        self.cut(also_idle=True)

    def cut(self, also_idle=False):
        """Closes the connections of all transfers in progress."""
        with self.lock:
            connections = [connection for connection in self.open if also_idle or connection.is_busy]
        for connection in connections:
            try:
                connection.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                number = self.connections
            threading.Thread(target=self.talk, args=(peer, number), daemon=True).start()

    def talk(self, peer, number):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            try:
                peer = self.tls.wrap_socket(peer, server_side=True)
            except OSError:
                peer.close()
                return
        connection = Connection(self, peer, number)
        with self.lock:
            self.open.add(connection)
        try:
            while connection.is_open and self.turn(connection):
                pass
        except OSError:
            pass  # the cache closed the connection, or the check ended
        finally:
            connection.close()
            with self.lock:
                self.open.discard(connection)

    def turn(self, connection):
        """Serves one request; whether another may follow."""
        try:
            parts = connection.next_request()
        except (ValueError, IndexError):
            self.fault(f"the cache sent a malformed request: {connection.buffer[:80]!r}")
            return False
        if parts is None:
            return False
        connection.request = request = self.note(connection, *parts)
        connection.is_busy = True
        self.gate.wait(60)
        self.ended.wait(DELAY)
        try:
            self.next_handler()(request, connection)
        except OSError:
            raise
        except Exception:
            self.fault("the upstream failed: " + traceback.format_exc(limit=-2).replace("\n", " "))
            return False
        finally:
            connection.is_busy = False
            with self.lock:
                self.lock.notify_all()
        return request.version == "HTTP/1.1" and (request.get("Connection") or "").lower() != "close"

    def note(self, connection, method, target, version, headers, body):
        own = target.removeprefix(self.prefix) if self.prefix else target
        with self.lock:
            number = len(self.requests) + 1
            request = Request(method, own, target, version, headers, body, time.time(), connection.number, number)
            self.requests.append(request)
            self.lock.notify_all()
        return request

    def next_handler(self):
        with self.lock:
            handler = self.handler
            if isinstance(handler, (list, tuple)):
                handler = handler[min(self.taken, len(handler) - 1)]
                self.taken += 1
        return handler if handler is not None else lambda request, connection: self.answer(request)(request, connection)

    def answer(self, request):
        """The response to a request, or its handler, without `handler`."""
        return Answer(599)

    def fault(self, sentence):
        self.faults.append(f"{type(self).__name__}: {sentence}")

    def of(self, text="", method=None, status=None):
        """The recorded requests with this text in their target."""
        return [
            request for request in list(self.requests)
            if text in request.target and method in (None, request.method) and status in (None, request.status)
        ]  # fmt: skip

    def wait(self, condition, seconds=20):
        """Waits until `condition()` holds; it is evaluated with each request and each response. Returns whether it holds."""
        with self.lock:
            return self.lock.wait_for(condition, seconds)

    def await_requests(self, count, limit):
        """Whether this many requests arrived within the limit."""
        return self.wait(lambda: len(self.requests) >= count, limit)

    def forget(self):
        with self.lock:
            self.requests.clear()
