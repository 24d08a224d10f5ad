"""Broken, stalled and invalid transfers: RFC 9112 §2.2, §4–§8 (messages, framing, incomplete messages) and §9.

For any upstream behaviour: never a wrong byte, never a clean end on a short body, never a poisoned entry.
"""

import socket

from suite import LAST_MODIFIED, asset, check, table

SECTION = (12, "Broken and stalled transfers, invalid heads and framing")
SIZE = 3000
BIG = 300_000
FIELDS = f'ETag: "v1"\r\nLast-Modified: {LAST_MODIFIED}\r\nCache-Control: max-age=3600\r\nContent-Type: video/mp4\r\n'


def always(data):
    """An upstream that sends these bytes for every request and closes."""

    def handler(request, connection):
        connection.send(data)
        connection.close()

    return handler


def reads(t, size=SIZE):
    """Reads a range and the whole; neither may be wrong; both responses."""
    ranged = t.attempt_get(range="bytes=100-199")
    t.expect_honest(ranged, size, run=(100, 200))
    whole = t.attempt_get()
    t.expect_honest(whole, size)
    return ranged, whole


def expect_outcome(t, outcome, responses, size=SIZE):
    """`accepted`: all is correct; `refused`, `an error`: 502; `either`: see expect_honest."""
    ranged, whole = responses
    if outcome == "accepted":
        t.expect(whole, 200, body=t.bytes(0, size))
        if ranged.status == 206:
            t.expect(ranged, 206, body=t.bytes(100, 200))
        else:
            t.expect(ranged, 200, body=t.bytes(0, size))
    elif outcome in ("refused", "an error"):
        for response in responses:
            t.expect(response, 502)
            if outcome == "refused":
                t.expect_problem(response, "upstreamProtocol", 502)


# Broken transfers

FRAMINGS = {"with length": {}, "chunked": {"chunked": True}}
PLACES = {
    "in the status line": lambda head, body: 8,
    "in the head": lambda head, body: head - 20,
    "behind the head": lambda head, body: head,
    "after 1 byte": lambda head, body: head + 8,
    "in the middle": lambda head, body: head + body // 2,
    "in the last byte": lambda head, body: head + body - 1,
}
BREAKS = [
    (f"{framing}, {place}, {how}", FRAMINGS[framing], PLACES[place], how)
    for framing in FRAMINGS for place in PLACES for how in ("closed", "reset")
]  # fmt: skip


def broken(good, place, how):
    """An upstream that responds correctly and ends the connection at this byte."""

    def handler(request, connection):
        answer = good.answer(request)
        head, body = answer.head(), answer.encoded_body() if request.method == "GET" else b""
        connection.send((head + body)[: place(len(head), len(body))])
        connection.reset() if how == "reset" else connection.close()

    return handler


@table("a transfer that always breaks", rfc="9112 §8", rows=BREAKS)
def breaks_always(t, _, framing, place, how):
    t.upstream(broken(asset(BIG, **framing), place, how))
    reads(t, BIG)
    t.expect_recovery(BIG, **framing)


@table("a transfer that breaks once is resumed", rfc="9112 §8, 9110 §15.3.7", rows=BREAKS)
def breaks_once(t, _, framing, place, how):
    good = asset(BIG, **framing)
    t.upstream([broken(good, place, how), good])
    response = t.attempt_get()
    t.expect_honest(response, BIG)
    if t.is_larder:
        t.expect(response, 200, body=t.bytes(0, BIG))
    t.expect_recovery(BIG, **framing)


@table("a range transfer that breaks", rfc="9112 §8", rows=BREAKS)
def breaks_in_range(t, _, framing, place, how):
    good = asset(BIG, **framing)
    t.upstream([broken(good, place, how), good])
    response = t.attempt_get(range="bytes=50000-249999")
    t.expect_honest(response, BIG, run=(50_000, 250_000))
    if t.is_larder:
        t.expect(response, 206, body=t.bytes(50_000, 250_000))
    t.expect_recovery(BIG, **framing)


@check("bytes received before a break are not requested again", rfc="9110 §14.2, §13.1.5", larder_only=True)
def resumed(t):
    good = asset(BIG)
    t.upstream([broken(good, lambda head, body: head + 100_000, "closed"), good])
    t.expect(t.get(), 200, body=t.bytes(0, BIG))
    again = t.requests[1]
    if not (again.range or "").startswith("bytes=100000-") or again.get("If-Range") not in (None, '"v1"'):
        t.fail(f"the second request was for {again.range} if {again.get('If-Range')}")


@check("a broken transfer without ranges and validators", rfc="9112 §8")
def broken_without_ranges(t):
    good = asset(BIG, ranges=False, etag=None, last_modified=None)
    t.upstream([broken(good, lambda head, body: head + body // 2, "reset"), good])
    t.expect_honest(t.get(), BIG)
    t.expect_recovery(BIG)


@table("a body delimited by the end of the connection", rfc="9112 §6.3, §8", rows=["closed", "reset"])
def close_delimited(t, how):
    """A reset shows an incomplete body; an orderly end does not."""

    def handler(request, connection):
        connection.send(f"HTTP/1.1 200 OK\r\n{FIELDS}\r\n".encode() + t.bytes(0, SIZE if how == "closed" else 2000))
        connection.close() if how == "closed" else connection.reset()

    t.upstream(handler)
    responses = reads(t)
    if how == "closed":
        expect_outcome(t, "accepted", responses)
    t.expect_recovery(SIZE)


# Extra bytes

@table(
    "more bytes than the Content-Length", rfc="9112 §6.3, §9.2",
    rows=["at once, closed", "at once, kept open", "later, kept open"],
)  # fmt: skip
def too_many(t, how):
    extra = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil" * 20

    def handler(request, connection):
        answer = asset(SIZE).answer(request)
        if how.startswith("at once"):
            connection.send(answer.head() + answer.body + extra)
        else:
            connection.send(answer.head() + answer.body)
            connection.send(extra)
        if how.endswith("closed"):
            connection.close()

    t.upstream(handler)
    responses = [(first, first + 10, t.get(range=f"bytes={first}-{first + 9}")) for first in range(0, 2000, 200)]
    responses.append((0, SIZE, t.get()))
    for first, end, response in responses:
        # Extra bytes that arrive after the next request was sent look like its response (§9.2): that read may fail.
        if how == "later, kept open" and not (response.complete and response.status in (200, 206)):
            t.expect_honest(response, SIZE, (first, end))
            continue
        t.expect(response, 206 if end < SIZE else 200, body=t.bytes(first, end))
    t.expect_recovery(SIZE)


@check("an unrequested response on an idle connection answers no later request", rfc="9112 §9.2")
def unasked_answer(t):
    evil = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=60\r\n\r\nevil"
    handed, sent = t.event(), t.event()

    def handler(request, connection):
        connection.answer(asset(SIZE).answer(request))
        if request.number == 1:
            connection.wait(handed)
            connection.send(evil)
            sent.set()

    t.upstream(handler)
    t.expect(t.get(range="bytes=0-9"), 206, body=t.bytes(0, 10))
    handed.set()
    sent.wait(5)
    t.expect(t.get(range="bytes=20-29"), 206, body=t.bytes(20, 30))
    t.expect(t.get(path="/second.mp4"), 200, body=t.bytes(0, SIZE))
    t.expect_recovery(SIZE)


@table(
    "a 206 with a byte count other than its Content-Range", rfc="9110 §15.3.7, 9112 §8",
    rows=["chunked, too many", "chunked, too few", "closed, too many", "closed, too few"],
)  # fmt: skip
def wrong_number(t, kind):
    def handler(request, connection):
        answer = asset(SIZE).answer(request)
        answer.body = answer.body + b"evil" * 50 if kind.endswith("many") else answer.body[: len(answer.body) // 2]
        answer.chunked, answer.length = kind.startswith("chunked"), kind.startswith("chunked")
        connection.answer(answer)

    t.upstream(handler)
    reads(t)
    t.expect_recovery(SIZE)


@table(
    "after the last chunk", rfc="9112 §7.1, §7.1.2",
    rows=[
        ("garbage", b"0\r\n\r\n\x00\xff\x00evil evil evil"),
        ("a second answer", b"0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
        ("trailer fields", b"0\r\nX-Sum: 1\r\n\r\n"),
        ("trailers that are framing", b"0\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n"),
        (
            "trailers that are metadata",
            b'0\r\nETag: "v2"\r\nContent-Range: bytes 0-4/5\r\nCache-Control: no-store\r\n\r\n',
        ),
        ("no empty line", b"0\r\n"),
        ("garbage for trailers", b"0\r\n\x00\xff garbage\r\n\r\n"),
    ],
)  # fmt: skip
def behind_the_last_chunk(t, name, end):
    def handler(request, connection):
        body = b"%x\r\n%s\r\n" % (SIZE, t.bytes(0, SIZE))
        connection.send(f"HTTP/1.1 200 OK\r\n{FIELDS}Transfer-Encoding: chunked\r\n\r\n".encode() + body + end)
        if name in ("no empty line", "garbage for trailers"):
            connection.close()

    t.upstream(handler)
    responses = reads(t)
    if name.startswith(("trailer fields", "trailers that are")):
        expect_outcome(t, "accepted", responses)
    for response in responses:
        if response.status == 200 and response.get("ETag") not in ('"v1"', None):
            t.fail(f"{response}: a trailer became the ETag")
    t.expect_recovery(SIZE)


@table(
    "invalid chunks", rfc="9112 §7.1",
    rows=[
        ("no number", b"zz", b"\r\n", "refused"),
        ("negative", b"-bb8", b"\r\n", "refused"),
        ("0x", b"0xbb8", b"\r\n", "refused"),
        ("more than fits", b"fffffffffffffffff", b"\r\n", "refused"),
        ("the largest that fits", b"7fffffffffffffff", None, "refused"),
        ("empty", b"", b"\r\n", "either"),
        ("no end of line behind the data", b"bb8", b"", "either"),
        ("garbage behind the data", b"bb8", b"evil\r\n", "either"),
        ("too short a size", b"bb0", b"\r\n", "either"),
        ("too long a size", b"bff", None, "refused"),
        ("upper-case digits", b"BB8", b"\r\n", "accepted"),
        ("leading zeros", b"00000bb8", b"\r\n", "accepted"),
        ("an extension", b'bb8;name="value"', b"\r\n", "accepted"),
        ("an extension of 100 KB", b"bb8;" + b"x" * 100_000, b"\r\n", "either"),
    ],
)  # fmt: skip
def wrong_chunks(t, _, size, end, outcome):
    head = f"HTTP/1.1 200 OK\r\n{FIELDS}Transfer-Encoding: chunked\r\n\r\n".encode()
    t.upstream(always(head + size + b"\r\n" + t.bytes(0, SIZE) + (b"" if end is None else end + b"0\r\n\r\n")))
    responses = reads(t)
    if outcome == "refused":
        for response in responses:
            if response.status < 500 and response.complete:
                t.fail(f"{response}: expected an error")
    else:
        expect_outcome(t, outcome, responses)
    t.expect_recovery(SIZE)


# Heads

OK = f"HTTP/1.1 200 OK\r\n{FIELDS}"
SWITCHING = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
LENGTH = f"Content-Length: {SIZE}\r\n"


@table(
    "heads and framing", rfc="9112 §2.2, §4, §5, §6.3; 9110 §8.6",
    rows=[
        ("no fields at all", "HTTP/1.1 200 OK\r\n\r\n", "accepted"),
        ("HTTP/1.0 without length", f"HTTP/1.0 200 OK\r\n{FIELDS}\r\n", "accepted"),
        ("HTTP/1.0 with length", f"HTTP/1.0 200 OK\r\n{FIELDS}{LENGTH}\r\n", "accepted"),
        ("no reason phrase", f"HTTP/1.1 200 \r\n{FIELDS}{LENGTH}\r\n", "accepted"),
        ("no reason phrase and no space", f"HTTP/1.1 200\r\n{FIELDS}{LENGTH}\r\n", "either"),
        ("the same Content-Length twice", f"{OK}{LENGTH}{LENGTH}\r\n", "either"),
        ("a Content-Length that is a list", f"{OK}Content-Length: {SIZE}, {SIZE}\r\n\r\n", "either"),
        ("two Content-Lengths, the first too short", f"{OK}Content-Length: 2000\r\n{LENGTH}\r\n", "refused"),
        ("two Content-Lengths, the second too short", f"{OK}{LENGTH}Content-Length: 2000\r\n\r\n", "refused"),
        ("a list of different lengths", f"{OK}Content-Length: 2000, {SIZE}\r\n\r\n", "refused"),
        ("a negative Content-Length", f"{OK}Content-Length: -{SIZE}\r\n\r\n", "refused"),
        ("a Content-Length with a sign", f"{OK}Content-Length: +{SIZE}\r\n\r\n", "refused"),
        ("a Content-Length that is no number", f"{OK}Content-Length: many\r\n\r\n", "refused"),
        ("a Content-Length with a rest", f"{OK}Content-Length: {SIZE}x\r\n\r\n", "refused"),
        ("a Content-Length with a fraction", f"{OK}Content-Length: {SIZE}.0\r\n\r\n", "refused"),
        ("an empty Content-Length", f"{OK}Content-Length: \r\n\r\n", "refused"),
        ("a Content-Length of 30 digits", f"{OK}Content-Length: {'9' * 30}\r\n\r\n", "refused"),
        ("a Content-Length of 2^63", f"{OK}Content-Length: {2 ** 63}\r\n\r\n", "refused"),
        ("an unknown Transfer-Encoding", f"{OK}Transfer-Encoding: rot13\r\n\r\n", "refused"),
        ("an unknown Transfer-Encoding and a length", f"{OK}{LENGTH}Transfer-Encoding: rot13\r\n\r\n", "refused"),
        ("Transfer-Encoding: identity and a length", f"{OK}{LENGTH}Transfer-Encoding: identity\r\n\r\n", "either"),
        ("chunked said, not chunked", f"{OK}Transfer-Encoding: chunked\r\n\r\n", "refused"),
        ("white space before the colon", f"{OK}Content-Length : {SIZE}\r\n\r\n", "either"),
        ("a folded field", f"{OK}X-Long: one\r\n two\r\n{LENGTH}\r\n", "either"),
        ("a first field that is folded", f"HTTP/1.1 200 OK\r\n X: y\r\n{FIELDS}{LENGTH}\r\n", "either"),
        ("a field without a colon", f"{OK}no colon here\r\n{LENGTH}\r\n", "either"),
        ("a field without a name", f"{OK}: value\r\n{LENGTH}\r\n", "either"),
        ("a space in a name", f"{OK}X Y: value\r\n{LENGTH}\r\n", "either"),
        ("a control character in a name", f"{OK}X\x01Y: value\r\n{LENGTH}\r\n", "either"),
        ("NUL in a value", f"{OK}X-Nul: a\0b\r\n{LENGTH}\r\n", "either"),
        ("CR in a value", f"{OK}X-Return: a\rEvil: b\r\n{LENGTH}\r\n", "either"),
        ("bytes beyond ASCII in a value", f"{OK}X-Bytes: \xe9\xff\xfe\r\n{LENGTH}\r\n", "accepted"),
        ("ends of line without CR", f"HTTP/1.1 200 OK\n{FIELDS}{LENGTH}\n".replace("\r", ""), "either"),
        ("a value of 100 KB", f"{OK}X-Long: {'x' * 100_000}\r\n{LENGTH}\r\n", "either"),
        ("a head of 100 KB", OK + "".join(f"X-{at}: {'x' * 90}\r\n" for at in range(1000)) + f"{LENGTH}\r\n", "either"),
        ("10,000 fields", OK + "".join(f"X-{at}: y\r\n" for at in range(10_000)) + f"{LENGTH}\r\n", "either"),
        ("a head without end", OK + "X: y\r\n" * 100_000, "refused"),
        ("a name of 100 KB", f"{OK}{'X' * 100_000}: y\r\n{LENGTH}\r\n", "either"),
        ("a 1xx without end", "HTTP/1.1 100 Continue\r\n\r\n" * 5000, "refused"),
        ("only a 1xx", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", "refused"),
        ("101 unasked", f"{SWITCHING}{OK}{LENGTH}\r\n", "either"),
        ("status 099", f"HTTP/1.1 099 Low\r\n{FIELDS}{LENGTH}\r\n", "refused"),
        ("status 600", f"HTTP/1.1 600 High\r\n{FIELDS}{LENGTH}\r\n", "an error"),
        ("status 1000", f"HTTP/1.1 1000 Long\r\n{FIELDS}{LENGTH}\r\n", "refused"),
        ("status 20", f"HTTP/1.1 20 Short\r\n{FIELDS}{LENGTH}\r\n", "refused"),
        ("a status of letters", f"HTTP/1.1 abc OK\r\n{FIELDS}{LENGTH}\r\n", "refused"),
        ("HTTP/3.0", f"HTTP/3.0 200 OK\r\n{FIELDS}{LENGTH}\r\n", "refused"),
        ("HTTP/1.9", f"HTTP/1.9 200 OK\r\n{FIELDS}{LENGTH}\r\n", "either"),
        ("http/1.1 in lower case", f"http/1.1 200 OK\r\n{FIELDS}{LENGTH}\r\n", "refused"),
    ],
)  # fmt: skip
def heads(t, _, head, outcome):
    t.upstream(always(head.encode("latin-1") + t.bytes(0, SIZE)))
    responses = reads(t)
    if outcome in ("refused", "an error") and not t.is_larder:
        for response in responses:
            if response.status < 400 and response.complete:
                t.fail(f"{response}: expected an error")
    else:
        expect_outcome(t, outcome, responses)
    t.expect_recovery(SIZE)


@table(
    "both Content-Length and Transfer-Encoding", rfc="9112 §6.1, §6.3",
    rows=["the length too short", "the length too long", "the length of the chunks", "the length first"],
)  # fmt: skip
def both_framings(t, kind):
    """Transfer-Encoding overrides, or the response is rejected: Content-Length is never used."""
    coded = b"%x\r\n%s\r\n0\r\n\r\n" % (SIZE, t.bytes(0, SIZE))
    length = {"the length too short": 100, "the length too long": 9000}.get(kind, len(coded))
    lines = ["Transfer-Encoding: chunked\r\n", f"Content-Length: {length}\r\n"]
    if kind.endswith("first"):
        lines.reverse()

    def handler(request, connection):
        connection.send(f"{OK}{''.join(lines)}\r\n".encode() + coded)

    t.upstream(handler)
    for response in reads(t):
        if response.framing == "length" and response.status == 200:
            t.expect(response, headers={"Content-Length": SIZE})
    t.expect_recovery(SIZE)


@table(
    "Transfer-Encoding in a response of HTTP/1.0", rfc="9112 §6.1", rows=["chunked", "chunked with a length"],
)  # fmt: skip
def chunked_1_0(t, kind):
    length = LENGTH if kind.endswith("length") else ""
    coded = b"%x\r\n%s\r\n0\r\n\r\n" % (SIZE, t.bytes(0, SIZE))
    t.upstream(always(f"HTTP/1.0 200 OK\r\n{FIELDS}{length}Transfer-Encoding: chunked\r\n\r\n".encode() + coded))
    reads(t)
    t.expect_recovery(SIZE)


@check("the body of a HEAD response is not parsed as the next response", rfc="9110 §9.3.2, 9112 §9.2")
def body_for_head(t):
    def handler(request, connection):
        answer = asset(SIZE).answer(request)
        connection.send(answer.head() + answer.body)

    t.upstream(handler)
    t.expect(t.head(), 200, body=b"")
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect_recovery(SIZE)


@table(
    "not HTTP", rfc="9112 §2.2, §4",
    rows=[
        ("nothing", b""),
        ("line ends", b"\r\n" * 20),
        ("zeros", b"\0" * 4000),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n"),
        ("SMTP", b"220 mail.example ESMTP\r\n"),
        ("a TLS alert", b"\x15\x03\x01\x00\x02\x02\x28"),
        ("HTML alone (HTTP/0.9)", b"<html>" + b"x" * 4000),
        ("the asset alone (HTTP/0.9)", None),
        ("Shoutcast", b"ICY 200 OK\r\nicy-name: radio\r\n\r\n" + b"x" * 4000),
        ("HTTP/2 frames", b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\0" * 18),
        ("a request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("a line of 1 MB", b"x" * 1_000_000),
    ],
)  # fmt: skip
def noise(t, _, data):
    t.upstream(always(t.bytes(0, SIZE) if data is None else data))
    for response in reads(t):
        t.expect(response, 502 if t.is_larder else None)
        t.expect_problem(response, "upstreamProtocol", 502)
    t.expect_recovery(SIZE)


@check("an idle connection closed by the upstream is no failure", rfc="9112 §9.3.1, §9.5")
def closed_while_idle(t):
    def handler(request, connection):
        connection.answer(asset(SIZE).answer(request))
        connection.close()

    t.upstream(handler)
    for first in range(0, 1000, 100):
        t.expect(t.get(range=f"bytes={first}-{first + 9}"), 206, body=t.bytes(first, first + 10))


@check("an idle connection reset at the next request is no failure", rfc="9112 §9.3.1")
def reset_while_idle(t):
    seen = set()

    def handler(request, connection):
        if connection.number in seen:
            return connection.reset()
        seen.add(connection.number)
        connection.answer(asset(SIZE).answer(request))

    t.upstream(handler)
    for first in range(0, 1000, 100):
        t.expect(t.get(range=f"bytes={first}-{first + 9}"), 206, body=t.bytes(first, first + 10))


# Stalls

STALLS = {
    "before the answer": (lambda head, body: 0, "firstByte"),
    "in the status line": (lambda head, body: 8, None),
    "in the head": (lambda head, body: head - 20, None),
    "behind the head": (lambda head, body: head, "idle"),
    "in the middle": (lambda head, body: head + body // 2, "idle"),
    "before the last byte": (lambda head, body: head + body - 1, "idle"),
}


def stalling(good, place):
    def handler(request, connection):
        answer = good.answer(request)
        head, body = answer.head(), answer.encoded_body() if request.method == "GET" else b""
        connection.send((head + body)[: place(len(head), len(body))])
        connection.stall()

    return handler


@table(
    "a stall", rfc="9110 §15.6.5, 9112 §8",
    rows=[(f"{stage}, {framing}", stage, FRAMINGS[framing]) for stage in STALLS for framing in FRAMINGS],
)  # fmt: skip
def stalls(t, _, stage, framing):
    """Before our head it is a 504 that names the timeout; after the head the body is truncated."""
    place, wait = STALLS[stage]
    t.upstream(stalling(asset(BIG, **framing), place))
    response = t.attempt_get(range="bytes=100-1099", timeout=20)
    t.expect_honest(response, BIG, run=(100, 1100))
    if response.status not in (200, 206):
        t.expect_problem(response, "upstreamTimedOut", 504, **({"timeout": wait} if wait else {}))
    elif stage in ("before the answer", "in the status line", "in the head"):
        t.fail(f"{response}: a success without an upstream response")
    t.expect_recovery(BIG, **framing)


@table("a stall that ends at the second attempt", rfc="9110 §15.6.5", rows=[(stage, stage) for stage in STALLS])
def stalls_once(t, _, stage):
    good = asset(BIG)
    t.upstream([stalling(good, STALLS[stage][0]), good])
    response = t.attempt_get(timeout=20)
    t.expect_honest(response, BIG)
    if t.is_larder:
        t.expect(response, 200, body=t.bytes(0, BIG))
    t.expect_recovery(BIG)


@check("a connect timeout is a 504 that names it", rfc="9110 §15.6.5", larder_only=True)
def connect_stall(t):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        try:
            for _ in range(4):  # more than the backlog holds: the next SYN is dropped
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
                waiting.append(filler)
            t.upstream(asset(SIZE))
            t.origin(
                baseURL=f"http://127.0.0.1:{listener.getsockname()[1]}/base", retries=0,
                timeouts={"connectSeconds": 1, "totalSeconds": 8, "readSeconds": 6},
            )  # fmt: skip
            response = t.get()
        finally:
            for filler in waiting:
                filler.close()
    t.expect_problem(response, "upstreamTimedOut", 504, timeout="connect")
    t.origin(baseURL="http://127.0.0.1:{port}/base")
    t.expect_recovery(SIZE)


@check("a head sent byte by byte is ended by the total timeout", rfc="9110 §15.6.5", origin={
    "retries": 0, "timeouts": {"firstByteSeconds": 1, "idleSeconds": 1, "totalSeconds": 2, "readSeconds": 6},
})  # fmt: skip
def head_drips(t):
    t.upstream(lambda request, connection: connection.drip(f"{OK}{LENGTH}\r\n".encode(), 0.1))
    t.expect_problem(t.get(), "upstreamTimedOut", 504)
    t.expect_recovery(SIZE)


@check("a body sent byte by byte is ended by the total timeout", rfc="9112 §8", origin={
    "retries": 0, "timeouts": {"firstByteSeconds": 1, "idleSeconds": 1, "totalSeconds": 2, "readSeconds": 6},
})  # fmt: skip
def body_drips(t):
    def handler(request, connection):
        answer = asset(SIZE).answer(request)
        connection.send(answer.head())
        connection.drip(answer.body, 0.1)

    t.upstream(handler)
    response = t.attempt_get()
    t.expect_honest(response, SIZE)
    if response.complete and response.status < 400:
        t.fail(f"{response}: ended as if it were complete")
    t.expect_recovery(SIZE)


@check("a slow upstream of one byte per second is streamed", rfc="9112 §8")
def slow_but_sure(t):
    """Each byte arrives within the idle timeout, all bytes within the total timeout."""
    def handler(request, connection):
        answer = asset(5).answer(request)
        connection.send(answer.head())
        connection.drip(answer.body, 0.8)

    t.upstream(handler)
    with t.connect() as connection:
        connection.request("GET", t.target())
        response = connection.read_head(asked="GET of a slow asset")
        connection.read_body(response)
    t.expect(response, 200, body=t.bytes(0, 5))
    t.expect_recovery(5)


@check("the first-byte timeout of a reader is a limit of its own", rfc="9110 §15.6.5", origin={
    "retries": 0, "timeouts": {"firstByteSeconds": 5, "idleSeconds": 5, "totalSeconds": 8, "readSeconds": 6},
})  # fmt: skip
def read_limit(t):
    t.upstream(lambda request, connection: connection.stall())
    response = t.get(headers={"Larder-Timeout": "1"})
    t.expect_problem(response, "upstreamTimedOut", 504, timeout="read")
    if response.seconds > 3:
        t.fail(f"{response}: after {response.seconds:.1f} s")
    t.expect_recovery(SIZE)


@check("readers of one broken transfer all get an error or a truncated body", rfc="9112 §8", states=("cold",))
def many_readers(t):
    t.upstream(broken(asset(BIG), lambda head, body: head + body // 2, "reset"))
    for response in t.together(*[lambda: t.get()] * 8, *[lambda: t.get(range="bytes=200000-")] * 8):
        t.expect_honest(response, BIG, run=(200_000, BIG))
    t.expect_recovery(BIG)
