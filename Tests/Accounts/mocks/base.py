"""The base of all servers: it records requests, serves ranges of deterministic files, and can delay answers."""

import functools
import hashlib
import http.server
import random
import re
import socket
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from email.utils import formatdate

MODIFIED = "Wed, 04 Nov 2026 10:00:00 GMT"
#: Bytes that are written at once, so that a closed connection ends a transfer early.
PIECE = 256 << 10


@functools.lru_cache(maxsize=64)
def content(name, size):
    """The bytes of the file `name`: the same for each run."""
    return random.Random(name).randbytes(size)


@dataclass
class Request:
    """A received request; names of header fields are lower-case."""

    method: str
    target: str
    fields: dict
    body: bytes
    client: tuple
    status: int = 0
    #: The number of body bytes that were written.
    sent: int = 0
    #: Free remarks of a server, such as the user or the access key.
    account: str = ""
    at: float = field(default_factory=time.time)

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
    """A response; the length is added."""

    status: int = 200
    fields: dict = field(default_factory=dict)
    body: bytes = b""


class Mock(http.server.ThreadingHTTPServer):
    """A server on a free port. Subclasses implement `answer`; `faults` lists violations by the client."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.requests, self.faults = [], []
        self.changed = threading.Condition()
        #: Cleared, it holds all answers back.
        self.open = threading.Event()
        self.open.set()
        #: The difference between the clock of the server and the real one, in seconds.
        self.offset = 0
        #: Grows with each call of `cut`.
        self.cuts = 0
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, request):
        raise NotImplementedError

    def date(self):
        return formatdate(time.time() + self.offset, usegmt=True)

    def of(self, text="", method=None, status=None):
        """The recorded requests with this text in their target."""
        return [
            request for request in list(self.requests)
            if text in request.target and method in (None, request.method) and status in (None, request.status)
        ]  # fmt: skip

    def wait(self, condition, seconds=20):
        """Waits until `condition()` holds; it is evaluated after each request. Returns whether it holds."""
        with self.changed:
            return self.changed.wait_for(condition, seconds)

    def forget(self):
        with self.changed:
            self.requests.clear()

    def cut(self):
        """Closes the connections of all transfers in progress."""
        self.cuts += 1

    def fault(self, sentence):
        self.faults.append(f"{type(self).__name__}: {sentence}")

    def handle_error(self, request, client_address):
        """A client may close its connection at any time."""

    def stop(self):
        self.open.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120
    wbufsize = 0

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *arguments):
        pass

    def date_time_string(self, timestamp=None):
        return self.server.date()

    def handle_any(self):
        size = int(self.headers.get("Content-Length") or 0)
        fields = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, fields, self.rfile.read(size), self.client_address)
        server = self.server
        with server.changed:
            server.requests.append(request)
            server.changed.notify_all()
        server.open.wait(60)
        self.cuts = server.cuts
        try:
            answer = server.answer(request)
        except Exception as error:
            server.fault(f"{request.method} {request.target}: {error!r}")
            answer = Answer(500)
        request.status = answer.status
        self.respond(request, answer)
        with server.changed:
            server.changed.notify_all()

    do_GET = do_HEAD = do_POST = do_PUT = handle_any

    def respond(self, request, answer):
        self.send_response(answer.status)
        for name, value in answer.fields.items():
            self.send_header(name, value)
        if answer.status not in (204, 304) and "Content-Length" not in answer.fields:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if request.method == "HEAD" or answer.status in (204, 304):
            return
        view = memoryview(answer.body)
        for start in range(0, len(view), PIECE):
            if self.server.cuts != self.cuts:
                self.close_connection = True
                return
            self.wfile.write(view[start : start + PIECE])
            request.sent += len(view[start : start + PIECE])


def tag_of(data):
    """The entity tag of a file: the digest of its first bytes and its length."""
    return f'"{hashlib.sha256(data[:4096]).hexdigest()[:24]}-{len(data)}"'


def serve(request, data, tag=None, fields=None):
    """The answer to GET and HEAD for a file: conditions, one range, otherwise the whole (RFC 9110)."""
    tag = tag or tag_of(data)
    common = {"ETag": tag, "Last-Modified": MODIFIED, "Accept-Ranges": "bytes", **(fields or {})}
    asked = request.fields
    if "if-match" in asked and tag not in asked["if-match"] and asked["if-match"] != "*":
        return Answer(412, common)
    if tag in asked.get("if-none-match", ""):
        return Answer(304, common)
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", asked.get("range", ""))
    if match and match[0] != "bytes=-" and asked.get("if-range", tag) in (tag, MODIFIED):
        size = len(data)
        first = int(match[1]) if match[1] else max(0, size - int(match[2]))
        last = min(int(match[2]), size - 1) if match[1] and match[2] else size - 1
        if first >= size or first > last:
            return Answer(416, {**common, "Content-Range": f"bytes */{size}"})
        part = {**common, "Content-Range": f"bytes {first}-{last}/{size}"}
        return whole(request, 206, part, memoryview(data)[first : last + 1])
    return whole(request, 200, common, data)


def whole(request, status, fields, data):
    if request.method == "HEAD":
        return Answer(status, {**fields, "Content-Length": str(len(data))})
    return Answer(status, fields, data)
