"""A strict HTTP/1.1 client: wrong or ambiguous framing is a failure (RFC 9112 §6)."""

import re
import select
import socket
import ssl
import struct
import time
from dataclasses import dataclass, field

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
STATUS_LINE = re.compile(r"HTTP/1\.[01] ([1-5][0-9][0-9]) ([\t \x21-\x7e\x80-\xff]*)")
HEAD_LIMIT = 4 << 20
#: The response fields that a failure message includes.
TOLD = {
    "age", "allow", "cache-control", "cache-status", "content-length", "content-range", "content-type", "etag",
    "last-modified", "location", "retry-after", "warning",
}  # fmt: skip


class Failure(Exception):
    """An expectation that was not met."""


@dataclass
class Part:
    """A part of a multipart/byteranges body."""

    headers: list
    body: bytes

    def get(self, name):
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None


@dataclass
class Response:
    """A received response."""

    status: int
    reason: str
    headers: list
    body: bytes = b""
    #: How the end of the body is marked: "length", "chunked", "close" (end of connection) or "none" (no body).
    framing: str = "none"
    #: Whether all bytes of the framing arrived; always True with "close" unless the connection was reset.
    complete: bool = False
    #: Whether the connection ended early.
    cut: bool = False
    #: From the first byte of the request to the last byte of the body.
    seconds: float = 0
    #: From the first byte of the request to the end of the head.
    head_seconds: float = 0
    #: Earlier 1xx responses: (status, headers).
    interim: list = field(default_factory=list)
    #: The request, for messages.
    asked: str = ""
    #: Whether the connection was closed after a complete response.
    closed: bool = False

    def all(self, name):
        """Each line of this field."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name):
        """The field's lines joined by commas, or None."""
        values = self.all(name)
        return ", ".join(values) if values else None

    def cache_status(self):
        """The members of Cache-Status: (name, parameters), the nearest to the origin first (RFC 9211 §2)."""
        return parse_list(self.get("Cache-Status") or "")

    def parts(self):
        """The parts of a multipart/byteranges body (RFC 9110 §14.6, RFC 2046 §5.1.1)."""
        return parse_multipart(self.get("Content-Type") or "", self.body)

    def __str__(self):
        shown = [f"{name}: {value}" for name, value in self.headers if name.lower() in TOLD]
        return f"{self.asked} → {self.status} {self.reason} [{'; '.join(shown)}] {len(self.body)} bytes"


class Connection:
    """A connection to the cache under test."""

    def __init__(self, address, timeout=10, tls=None):
        """`tls`: the client's `SSLContext`; None without TLS."""
        self.timeout, self.tls = timeout, tls
        self.host = "{}:{}".format(*address)
        self.socket = socket.create_connection(address, timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=address[0])
        self.buffer = b""
        self.ended = False
        self.was_reset = False
        self.began = time.monotonic()
        self.deadline = self.began + timeout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        """Sends bytes unchanged; the timeout of the next response starts."""
        self.began = time.monotonic()
        self.deadline = self.began + self.timeout
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            pass  # the response sent before the close can still be read

    def request(self, method, target, headers=(), http="1.1"):
        """Sends a request without a body."""
        fields = list(headers.items()) if isinstance(headers, dict) else list(headers)
        if not any(name.lower() == "host" for name, _ in fields):
            fields.insert(0, ("Host", self.host))
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        self.send(f"{method} {target} HTTP/{http}\r\n{lines}\r\n".encode("latin-1"))

    def response(self, method="GET", asked=""):
        """The next final response, with its body."""
        response = self.read_head(method, asked)
        self.read_body(response)
        return response

    def read_head(self, method="GET", asked=""):
        """The next final response without its body."""
        interim = []
        while True:
            response = self.one_head(method, asked)
            if response.status >= 200 or response.status == 101:
                response.interim = interim
                response.head_seconds = response.seconds = time.monotonic() - self.began
                return response
            interim.append((response.status, response.headers))

    def read_body(self, response):
        """Reads the body of a response to the end that its framing defines."""
        try:
            if response.framing == "length":
                response.body = self.up_to(int(response.get("Content-Length")))
                response.complete = len(response.body) == int(response.get("Content-Length"))
            elif response.framing == "chunked":
                self.read_chunks(response)
            elif response.framing == "close":
                while self.fill():
                    pass
                response.body, self.buffer = self.buffer, b""
                response.complete = not self.was_reset
            else:
                response.complete = True
        except TimeoutError:
            text = f"{response.asked}: the body did not end within {self.timeout} s ({response.status})"
            raise Failure(text) from None
        response.cut = not response.complete
        response.seconds = time.monotonic() - self.began

    def read(self, count):
        """Reads this many raw bytes, without framing; fewer at the end of the connection."""
        return self.up_to(count)

    def finish(self, response):
        """Half-closes the connection and checks that no bytes follow the response."""
        if not response.complete or response.framing == "close" or self.tls is not None:
            return  # TLS has no half-closed connections
        try:
            self.socket.shutdown(socket.SHUT_WR)
            self.deadline = time.monotonic() + 0.1
            while self.fill():
                pass
            response.closed = True
        except (TimeoutError, OSError):
            pass
        if self.buffer:
            raise Failure(f"{response.asked}: {len(self.buffer)} bytes after the response: {self.buffer[:60]!r}")

    def close(self):
        self.socket.close()

    def reset(self):
        """Resets the connection (RST)."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # Reading

    def fill(self):
        """Reads the next bytes into the buffer; False at the end of the connection."""
        if self.ended:
            return False
        left = self.deadline - time.monotonic()
        has_bytes = self.tls is not None and self.socket.pending() > 0
        if left <= 0 or not has_bytes and not select.select([self.socket], [], [], left)[0]:
            raise TimeoutError
        try:
            data = self.socket.recv(1 << 20)
        except (ConnectionResetError, ssl.SSLEOFError):
            self.was_reset = True
            data = b""
        self.ended = not data
        self.buffer += data
        return bool(data)

    def up_to(self, count):
        pieces, have = [self.buffer], len(self.buffer)
        self.buffer = b""
        while have < count and self.fill():
            pieces.append(self.buffer)
            have += len(self.buffer)
            self.buffer = b""
        data = b"".join(pieces)
        self.buffer = data[count:]
        return data[:count]

    def line(self):
        """A line without its CR LF; None at the end of the connection."""
        while b"\r\n" not in self.buffer:
            if len(self.buffer) > HEAD_LIMIT:
                raise Failure("an endless line")
            if not self.fill():
                return None
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def one_head(self, method, asked):
        try:
            first = self.line()
            lines = []
            while first is not None and (line := self.line()) != b"":
                if line is None:
                    raise Failure(f"{asked}: the connection ended inside the head")
                lines.append(line.decode("latin-1"))
        except TimeoutError:
            raise Failure(f"{asked}: no response within {self.timeout} s") from None
        if first is None:
            raise Failure(f"{asked}: the connection ended without a response")
        match = STATUS_LINE.fullmatch(first.decode("latin-1"))
        if not match:
            raise Failure(f"{asked}: not a status line: {first[:80]!r}")
        response = Response(int(match.group(1)), match.group(2), [parse_field(line) for line in lines], asked=asked)
        response.framing = framing(response, method)
        return response

    def read_chunks(self, response):
        pieces = []
        while True:
            size = self.line()
            if size is None:
                break
            match = re.fullmatch(rb"([0-9A-Fa-f]+)(;[^\x00-\x08\x0a-\x1f]*)?", size)
            if not match:
                raise Failure(f"{response.asked}: not a chunk size: {size[:40]!r}")
            count = int(match.group(1), 16)
            if count == 0:
                while (line := self.line()) not in (b"", None):
                    parse_field(line.decode("latin-1"))
                response.complete = line == b""
                break
            piece = self.up_to(count)
            pieces.append(piece)
            if len(piece) < count:
                break
            if (end := self.up_to(2)) != b"\r\n":
                if len(end) == 2:
                    raise Failure(f"{response.asked}: {end!r} after a chunk")
                break
        response.body = b"".join(pieces)


def parse_field(line):
    name, colon, value = line.partition(":")
    if not colon or not TOKEN.fullmatch(name) or any(c in value for c in "\r\n\0"):
        raise Failure(f"not a header field: {line[:80]!r}")
    return name, value.strip(" \t")


def framing(response, method):
    """The framing of the body (RFC 9112 §6.3); conflicting or invalid framing is a failure."""
    lengths, codings = response.all("Content-Length"), response.all("Transfer-Encoding")
    where = f"{response.asked} ({response.status})"
    if len(lengths) > 1 or any(not re.fullmatch(r"[0-9]+", length) for length in lengths):
        raise Failure(f"{where}: Content-Length: {', '.join(lengths)}")
    if lengths and codings:
        raise Failure(f"{where}: Content-Length and Transfer-Encoding")
    if response.status < 200 or response.status == 204:
        if lengths or codings:
            raise Failure(f"{where}: framing fields in a {response.status} (RFC 9110 §8.6)")
        return "none"
    if method == "HEAD" or response.status == 304:
        return "none"
    if codings:
        if codings != ["chunked"]:
            raise Failure(f"{where}: Transfer-Encoding: {', '.join(codings)}")
        return "chunked"
    return "length" if lengths else "close"


def parse_multipart(content_type, body):
    match = re.fullmatch(r'multipart/byteranges\s*;\s*boundary=("?)([^"]{1,70})\1', content_type, re.IGNORECASE)
    if not match:
        raise Failure(f"not a multipart/byteranges type with a boundary: {content_type!r}")
    delimiter = b"\r\n--" + match.group(2).encode("latin-1")
    sections = (b"\r\n" + body).split(delimiter)
    if len(sections) < 2 or not re.match(rb"--[ \t]*(\r\n|$)", sections[-1]):
        raise Failure("the multipart body has no closing delimiter")
    parts = []
    for section in sections[1:-1]:
        head, blank, data = re.sub(rb"^[ \t]*\r\n", b"", section, count=1).partition(b"\r\n\r\n")
        if not blank:
            raise Failure("a part without an empty line after its header")
        fields = [parse_field(line) for line in head.decode("latin-1").split("\r\n") if line]
        parts.append(Part(fields, data))
    return parts


# Structured fields (RFC 8941), the subset for Cache-Status

ITEM = re.compile(
    r'\s*(?:"((?:[^"\\]|\\["\\])*)"'
    r"|([A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*)"
    r"|(-?[0-9]+(?:\.[0-9]+)?)|\?([01]))"
)
KEY = re.compile(r"\s*;\s*([a-z*][a-z0-9_.*-]*)(=)?")


def parse_list(text):
    """A list of (item, {parameter: value}); flags are True. An invalid list is a failure."""
    members, at = [], 0
    while at < len(text):
        value, at = parse_item(text, at)
        parameters = {}
        while match := KEY.match(text, at):
            at = match.end()
            parameters[match.group(1)] = True
            if match.group(2):
                parameters[match.group(1)], at = parse_item(text, at)
        members.append((value, parameters))
        rest = re.compile(r"\s*(,\s*(?=\S)|$)").match(text, at)
        if not rest:
            raise Failure(f"not a structured list: {text!r}")
        at = rest.end()
    return members


def parse_item(text, at):
    match = ITEM.match(text, at)
    if not match:
        raise Failure(f"not a structured item at {at}: {text!r}")
    string, token, number, flag = match.groups()
    if string is not None:
        return re.sub(r"\\(.)", r"\1", string), match.end()
    if token is not None:
        return token, match.end()
    if number is not None:
        return (float(number) if "." in number else int(number)), match.end()
    return flag == "1", match.end()
