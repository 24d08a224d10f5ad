"""Assets of unknown length: RFC 9110 §8.6, §14.4 (`/*`), RFC 9112 §6.3, §7.1."""

import re

from suite import Answer, asset, check, table

SECTION = (18, "Length unknown")
SIZE = 300_000
HALF = 150_000
FRAMINGS = ["chunked", "until the end", "HTTP/1.0"]
HEAD = b'HTTP/1.1 200 OK\r\nETag: "v1"\r\nCache-Control: max-age=3600\r\nTransfer-Encoding: chunked\r\n\r\n'
PARTIAL = {"unknownLength": "partial"}


def endless(t, framing="chunked", size=SIZE):
    """An upstream without lengths and ranges."""
    if framing == "HTTP/1.0":
        def handler(request, connection):
            body = t.bytes(0, size) if request.method == "GET" else b""
            connection.send(b'HTTP/1.0 200 OK\r\nETag: "v1"\r\nCache-Control: max-age=3600\r\n\r\n' + body)
            connection.close()

        return handler
    return asset(size, ranges=False, chunked=framing == "chunked", length=framing == "chunked")


class Held:
    """An upstream that sends half of a body of unknown length, and the rest when it is released."""

    def __init__(self, t, size=SIZE, half=HALF):
        self.sent, self.go = t.event(), t.event()
        self.t, self.size, self.half = t, size, half

    def __call__(self, request, connection):
        connection.send(HEAD)
        if request.method == "HEAD":
            return
        connection.send(b"%x\r\n%s\r\n" % (self.half, self.t.bytes(0, self.half)))
        self.sent.set()
        for _ in range(20):  # a byte within each idle timeout
            if self.go.wait(0.3):
                break
            connection.send(b"1\r\n" + self.t.bytes(self.half, self.half + 1) + b"\r\n")
            self.half += 1
        rest = self.t.bytes(self.half, self.size)
        connection.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(rest), rest))


@table("the whole", rfc="9112 §6.3, §7.1", rows=FRAMINGS)
def whole(t, framing):
    t.upstream(endless(t, framing))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table("after the end is known the size is correct everywhere", rfc="9110 §8.6, §14.4", rows=FRAMINGS, larder_only=True)
def size_known(t, framing):
    t.upstream(endless(t, framing))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE), headers={"Content-Length": SIZE})
    t.expect(t.head(), 200, headers={"Content-Length": SIZE})
    expect_known(t)
    document = t.api("GET", f"/v1/assets/{response.get('Larder-Asset-Id')}").document
    if document.get("contentLength") != SIZE or document.get("complete") is not True:
        t.fail(f"the API says {document.get('contentLength')}, complete {document.get('complete')}")
    t.expect_requests(1)


def expect_known(t):
    place = {"Content-Range": f"bytes 100-199/{SIZE}"}
    t.expect(t.get(range="bytes=100-199"), 206, body=t.bytes(100, 200), headers=place)
    t.expect(t.get(range="bytes=-10"), 206, body=t.bytes(SIZE - 10, SIZE))
    t.expect(t.get(range=f"bytes={SIZE - 5}-{SIZE + 100}"), 206, body=t.bytes(SIZE - 5, SIZE))
    for first in (SIZE, SIZE + 1, 10 ** 12):
        t.expect(t.get(range=f"bytes={first}-"), 416, headers={"Content-Range": f"bytes */{SIZE}"})
    t.expect(t.get(range=f"bytes=0-9,{SIZE}-"), 206, body=t.bytes(0, 10))


@table(
    "a range is answered with the whole asset", rfc="9110 §14.2, §14.4", larder_only=True,
    rows=["bytes=0-99", "bytes=100-199", "bytes=0-", "bytes=100-", "bytes=-10", "bytes=0-9,20-29",
          "bytes=299990-400000"],
)  # fmt: skip
def range_by_default(t, value):
    """Players fail on `/*`: 200 while the length is unknown."""
    held = Held(t)
    t.upstream(held)
    with t.connect() as connection:
        connection.request("GET", t.target(), {"Range": value})
        response = connection.read_head(asked=f"GET {value} while the length is not known")
        if response.status != 200:
            t.fail(f"{response}: expected 200")
        held.go.set()
        connection.read_body(response)
    t.expect(response, 200, body=t.bytes(0, SIZE), headers={"Content-Range": None, "Content-Length": None})
    expect_known(t)


@table(
    "a closed range is a 206 with * if the origin enables it", rfc="9110 §14.4", origin=PARTIAL,
    rows=[("bytes=0-99", 0, 100), ("bytes=100-199", 100, 200), ("bytes=149000-149999", 149_000, 150_000)],
)  # fmt: skip
def range_partial(t, value, first, end):
    held = Held(t)
    t.upstream(held)
    response = t.get(range=value)
    held.go.set()
    t.expect(response, 206, body=t.bytes(first, end), headers={"Content-Range": f"bytes {first}-{end - 1}/*"})
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    expect_known(t)


@table(
    "a suffix or an open range is a 200 nevertheless", rfc="9110 §14.1.2, §14.4", origin=PARTIAL,
    rows=["bytes=-10", "bytes=0-", "bytes=100-"],
)  # fmt: skip
def suffix_partial(t, value):
    """No Content-Range exists for a range with an unknown end."""
    held = Held(t)
    t.upstream(held)
    with t.connect() as connection:
        connection.request("GET", t.target(), {"Range": value})
        response = connection.read_head(asked=f"GET {value} while the length is not known")
        held.go.set()
        connection.read_body(response)
    t.expect(response, 200, body=t.bytes(0, SIZE), headers={"Content-Range": None})
    expect_known(t)


@check("a closed range beyond the true end, with *", rfc="9110 §14.4, §15.5.17", origin=PARTIAL)
def partial_beyond(t):
    """It was sent before the end was known: 416, or truncated, never a clean end with other bytes."""
    held = Held(t)
    t.upstream(held)
    with t.connect() as connection:
        connection.request("GET", t.target(), {"Range": "bytes=299000-400000"})
        held.sent.wait(5)
        held.go.set()
        response = connection.response(asked="a range that reaches beyond the end")
    if response.status == 206:
        if response.complete and response.body != t.bytes(299_000, SIZE):
            t.fail(f"{response}: WRONG BYTES or a clean end")
        place = response.get("Content-Range") or ""
        if response.complete and not re.fullmatch(rf"bytes 299000-{SIZE - 1}/({SIZE}|\*)", place):
            t.fail(f"{response}: {place} for a body that ended cleanly")
    elif response.status == 200:
        t.expect(response, body=t.bytes(0, SIZE))
    else:
        t.expect(response, 416)
    expect_known(t)


@check("a range wholly beyond the true end", rfc="9110 §14.2, §15.5.17")
def beyond(t):
    t.upstream(endless(t))
    response = t.get(range=f"bytes={SIZE + 10}-{SIZE + 20}")
    t.expect(response, (200, 416))
    if response.status == 200:
        t.expect(response, body=t.bytes(0, SIZE), headers={"Content-Range": None})
    else:
        t.expect(response, headers={"Content-Range": re.compile(rf"bytes \*/({SIZE}|\*)")})
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table("concurrent readers share one transfer", rfc="9111 §4", larder_only=True, rows=["of one kind", "of all kinds"])
def shared(t, kind):
    held = Held(t)
    t.upstream(held)
    mixed = [None, "bytes=0-99", "bytes=-5", "bytes=200000-", None, "bytes=1-1"]
    values = [None] * 6 if kind == "of one kind" else mixed
    handles = [t.spawn(lambda value=value: t.get(range=value)) for value in values]
    held.sent.wait(5)
    held.go.set()
    for value, handle in zip(values, handles):
        response = handle()
        if response.status == 200:
            t.expect(response, body=t.bytes(0, SIZE))
        else:
            t.expect(response, 206)
    t.expect_requests(1)


@table("a broken transfer is never a clean end", rfc="9112 §7.1, §8", rows=["closed", "reset"])
def broken(t, how):
    def handler(request, connection):
        connection.send(HEAD)
        connection.send(b"%x\r\n%s\r\n" % (HALF, t.bytes(0, HALF)))
        connection.reset() if how == "reset" else connection.close()

    t.upstream(handler)
    for value in (None, "bytes=0-99", "bytes=-10"):
        response = t.get(range=value)
        if response.status == 200 and response.complete:
            t.fail(f"{response}: a CLEAN END on a short body")
        if response.status == 206:
            t.expect(response, body=t.bytes(0, 100), headers={"Content-Range": re.compile(r"bytes 0-99/\*")})
        if response.status == 200 and response.body != t.bytes(0, len(response.body)):
            t.fail(f"{response}: WRONG BYTES")
    t.expect_recovery(SIZE)


@check("a transfer that breaks once is resumed", rfc="9112 §8", larder_only=True)
def broken_once(t):
    def handler(request, connection):
        connection.send(HEAD)
        connection.send(b"%x\r\n%s\r\n" % (HALF, t.bytes(0, HALF)))
        connection.reset()

    t.upstream([handler, asset(SIZE, ranges=False, chunked=True)])
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table("an empty asset", rfc="9110 §8.6, 9112 §7.1", rows=FRAMINGS)
def empty(t, framing):
    t.upstream(endless(t, framing, size=0))
    for _ in range(2):
        t.expect(t.get(), 200, body=b"")
    t.expect(t.get(range="bytes=0-9"), (200, 416))


@check("an upstream with ranges without a size", rfc="9110 §14.4", larder_only=True)
def ranges_without_size(t):
    """`bytes 0-99/*`: each part is correct, the whole is assembled, and then the size is known."""
    def handler(request, connection):
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.range or "")
        if not match:
            return asset(SIZE, ranges=False, chunked=True)(request, connection)
        first, end = int(match.group(1)), min(SIZE, int(match.group(2) or SIZE) + 1)
        if first >= SIZE:
            return connection.answer(Answer(416, [("Content-Range", f"bytes */{SIZE}")]))
        place = ("Content-Range", f"bytes {first}-{end - 1}/*")
        fields = [place, ("ETag", '"v1"'), ("Cache-Control", "max-age=3600")]
        connection.answer(Answer(206, fields, t.bytes(first, end)))

    t.upstream(handler)
    response = t.get(range="bytes=100-199")
    if response.status == 206:
        t.expect(response, body=t.bytes(100, 200))
    else:
        t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    expect_known(t)


@check("a length that becomes known later is no other generation", rfc="9110 §8.6, 9111 §3.4")
def learnt(t):
    t.upstream([asset(SIZE, chunked=True, ranges=False, cache_control="max-age=0"), asset(SIZE)])
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))
