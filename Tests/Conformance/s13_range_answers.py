"""Responses that do not fit the requested range: RFC 9110 §14.4, §15.3.7 (206), §15.5.17 (416)."""

import re

from suite import LAST_MODIFIED, Answer, asset, check, table

SECTION = (13, "Range ignored, wrong 206, unsolicited statuses")
SIZE = 3000
FIELDS = [
    ("ETag", '"v1"'), ("Last-Modified", LAST_MODIFIED), ("Cache-Control", "max-age=3600"),
    ("Content-Type", "video/mp4"),
]  # fmt: skip
READS = [(None, None), ("bytes=100-199", (100, 200)), ("bytes=-50", (2950, 3000)), ("bytes=2000-", (2000, 3000))]


def asked(request, size=SIZE):
    """The range that the cache requested, clamped; the whole asset if it requested no range."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.range or "bytes=0-")
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size


def read_all(t, size=SIZE):
    """A few reads, none of which may be wrong; the responses."""
    responses = []
    for value, run in READS:
        response = t.attempt_get(range=value)
        t.expect_honest(response, size, run=run)
        responses.append(response)
    return responses


def expect_refused(t, responses):
    for response in responses:
        if response.status < 400 and response.complete:
            t.fail(f"{response}: expected an error")
        t.expect_problem(response, "upstreamProtocol", 502)


# Range ignored

@table("an upstream that ignores ranges", rfc="9110 §14.2", rows=["with length", "chunked", "until the end"])
def ignored(t, framing):
    t.upstream(asset(SIZE, ranges=False, chunked=framing == "chunked", length=framing != "until the end"))
    if framing == "with length" or not t.is_larder:
        for value, run in READS:
            response = t.get(range=value)
            t.expect_honest(response, SIZE, run=run)
            if t.is_larder and run:
                place = f"bytes {run[0]}-{run[1] - 1}/{SIZE}"
                t.expect(response, 206, body=t.bytes(*run), headers={"Content-Range": place})
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect_recovery(SIZE)


@check("a 200 to a range request is used from byte 0 and stored", rfc="9110 §14.2, 9111 §3", larder_only=True)
def ignored_once(t):
    t.upstream(asset(SIZE, ranges=False))
    t.expect(t.get(range="bytes=100-199"), 206, body=t.bytes(100, 200))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(range="bytes=-10"), 206, body=t.bytes(2990, 3000))
    if len(t.requests) > 2:
        t.fail(f"{len(t.requests)} upstream requests for an upstream that always sends the whole asset")


@check("an upstream that sometimes ignores ranges", rfc="9110 §14.2")
def ignored_sometimes(t):
    good, whole = asset(1_500_000), asset(1_500_000, ranges=False)
    t.upstream(lambda request, connection: (whole if request.number % 2 == 0 else good)(request, connection))
    for first in (1_400_000, 0, 700_000, 100):
        t.expect_honest(t.attempt_get(range=f"bytes={first}-{first + 999}"), 1_500_000, run=(first, first + 1000))
    t.expect_honest(t.attempt_get(), 1_500_000)
    t.expect_recovery(1_500_000)


@table(
    "the Content-Range of an upstream 200 is not passed on", rfc="9110 §14.4, §15.3.7", rows=["whole", "part"],
)  # fmt: skip
def content_range_on_200(t, kind):
    """The field has no meaning in a 200: the body is the whole asset."""
    place = f"bytes 0-{SIZE - 1}/{SIZE}" if kind == "whole" else "bytes 500-599/600"
    t.upstream(Answer(200, FIELDS + [("Content-Range", place)], t.bytes(0, SIZE)))
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE), headers={"Content-Range": None} if t.is_larder else {})
    t.expect(t.get(), 200, body=t.bytes(0, SIZE), headers={"Content-Range": None} if t.is_larder else {})
    t.expect_honest(t.attempt_get(range="bytes=100-199"), SIZE, run=(100, 200))
    t.expect_recovery(SIZE)


# Wrong 206

def shifted(first, end):
    return f"bytes {first + 1}-{end}/{SIZE}"


WRONG = {
    "another range": lambda first, end: f"bytes {first + 10}-{end + 9}/{SIZE + 50}",
    "a byte further": lambda first, end: shifted(first, end),
    "a far range": lambda first, end: "bytes 1000000-1002999/2000000",
    "no Content-Range": lambda first, end: None,
    "an empty one": lambda first, end: "",
    "garbage": lambda first, end: "garbage",
    "no numbers": lambda first, end: "bytes -/-",
    "no unit": lambda first, end: f"{first}-{end - 1}/{SIZE}",
    "another unit": lambda first, end: f"items {first}-{end - 1}/{SIZE}",
    "seconds": lambda first, end: f"seconds {first}-{end - 1}/{SIZE}",
    "an equals sign": lambda first, end: f"bytes={first}-{end - 1}/{SIZE}",
    "unsatisfied": lambda first, end: f"bytes */{SIZE}",
    "no size": lambda first, end: f"bytes {first}-{end - 1}",
    "reversed": lambda first, end: f"bytes {end - 1}-{first}/{SIZE}",
    "an end beyond the size": lambda first, end: f"bytes {first}-{SIZE}/{SIZE}",
    "a size below the range": lambda first, end: f"bytes {first}-{end - 1}/{first}",
    "negative": lambda first, end: f"bytes -{end - first}/{SIZE}",
    "numbers of 30 digits": lambda first, end: f"bytes {'9' * 30}-{'9' * 31}/{'9' * 32}",
    "a sign": lambda first, end: f"bytes +{first}-{end - 1}/{SIZE}",
    "two of them": lambda first, end: f"bytes {first}-{end - 1}/{SIZE}, bytes 0-99/{SIZE}",
    "a rest": lambda first, end: f"bytes {first}-{end - 1}/{SIZE} and more",
    "hexadecimal": lambda first, end: f"bytes 0x{first:x}-0x{end - 1:x}/{SIZE}",
}


@table("a 206 with a wrong Content-Range", rfc="9110 §14.4, §15.3.7", rows=[(name, name) for name in WRONG])
def wrong_place(t, _, name):
    """The bytes do not match the field, or this cannot be known: none of them are used."""

    def handler(request, connection):
        first, end = asked(request)
        place = WRONG[name](first, end)
        body = t.bytes(first, end, seed=9)
        connection.answer(Answer(206, FIELDS + ([("Content-Range", place)] if place is not None else []), body))

    t.upstream(handler)
    responses = read_all(t)
    expect_refused(t, [response for response in responses if response.status != 416])
    t.expect_recovery(SIZE)


@check("two Content-Range lines that differ", rfc="9110 §5.3, §14.4")
def two_places(t):
    def handler(request, connection):
        first, end = asked(request)
        places = [("Content-Range", f"bytes {at}-{at + end - first - 1}/{SIZE * 2}") for at in (first, first + 5)]
        connection.answer(Answer(206, FIELDS + places, t.bytes(first, end, seed=9)))

    t.upstream(handler)
    expect_refused(t, read_all(t))
    t.expect_recovery(SIZE)


@table(
    "a 206 with another range than requested, correctly labelled", rfc="9110 §15.3.7",
    rows=[
        ("the first bytes always", lambda first, end: (0, 100)),
        ("10 bytes further", lambda first, end: (min(first + 10, SIZE - 1), end)),
        ("10 bytes before", lambda first, end: (max(0, first - 10), end)),
        ("the whole", lambda first, end: (0, SIZE)),
        ("the last bytes always", lambda first, end: (SIZE - 100, SIZE)),
        ("more than asked", lambda first, end: (first, SIZE)),
        ("less than asked", lambda first, end: (first, first + max(1, (end - first) // 2))),
        ("a byte at a time", lambda first, end: (first, first + 1)),
    ],
)  # fmt: skip
def other_range(t, _, choose):
    """The bytes may be used for their labelled range, or rejected; never for the requested range."""

    def handler(request, connection):
        first, end = choose(*asked(request))
        place = ("Content-Range", f"bytes {first}-{end - 1}/{SIZE}")
        connection.answer(Answer(206, FIELDS + [place], t.bytes(first, end)))

    t.upstream(handler)
    read_all(t)
    t.expect_recovery(SIZE)


@check("a 206 with the size *", rfc="9110 §14.4")
def unknown_size(t):
    def handler(request, connection):
        first, end = asked(request)
        if first >= SIZE:
            return connection.answer(Answer(416, [("Content-Range", f"bytes */{SIZE}")]))
        connection.answer(Answer(206, FIELDS + [("Content-Range", f"bytes {first}-{end - 1}/*")], t.bytes(first, end)))

    t.upstream(handler)
    for value, run in READS:
        response = t.attempt_get(range=value)
        if response.status == 206 and (response.get("Content-Range") or "").endswith("/*"):
            first = int(re.match(r"bytes (\d+)-", response.get("Content-Range")).group(1))
            t.expect(response, body=t.bytes(first, first + len(response.body)))
        else:
            t.expect_honest(response, SIZE, run=run)
    t.expect_recovery(SIZE)


@table(
    "a 206 with a size other than the known one", rfc="9110 §14.4, 9111 §3.4",
    rows=[("larger", SIZE + 1), ("smaller", SIZE - 1), ("by far", 10 ** 15), ("beyond 2^63", 2 ** 63)],
)  # fmt: skip
def other_size(t, _, size):
    """The same strong ETag, another size: bytes of the two are never combined."""

    def handler(request, connection):
        first, end = asked(request)
        end = min(end, size)
        place = ("Content-Range", f"bytes {first}-{end - 1}/{size}")
        connection.answer(Answer(206, FIELDS + [place], t.bytes(first, end, seed=9)))

    t.upstream(asset(SIZE))
    t.expect(t.get(range="bytes=0-99"), 206, body=t.bytes(0, 100))
    t.upstream(handler)
    response = t.get()
    if response.complete and response.status == 200 and response.body[:1000] != t.bytes(0, 1000, seed=9):
        t.fail(f"{response}: two assets mixed")
    if response.body[:100] == t.bytes(0, 100):
        t.expect_honest(response, SIZE)
    t.upstream(asset(SIZE, etag='"v3"'))
    t.get()
    t.expect_recovery(SIZE, etag='"v3"')


@table(
    "a 206 with a Content-Length other than its Content-Range", rfc="9110 §8.6, §14.4",
    rows=[("shorter", -10), ("longer", 10), ("half", -50), ("0", None)],
)  # fmt: skip
def other_length(t, _, difference):
    def handler(request, connection):
        first, end = asked(request)
        count = 0 if difference is None else end - first + difference
        place = ("Content-Range", f"bytes {first}-{end - 1}/{SIZE}")
        connection.answer(Answer(206, FIELDS + [place, ("Content-Length", str(count))], t.bytes(first, first + count)))
        connection.close()

    t.upstream(handler)
    expect_refused(t, read_all(t))
    t.expect_recovery(SIZE)


@table("a 206 to a request without a range", rfc="9110 §15.3.7", rows=["the whole", "a part"])
def unasked_206(t, kind):
    """Larder detects that ranges are ignored and requests without one; a peer may never send a range."""

    def handler(request, connection):
        if request.range:
            return asset(SIZE, ranges=False, cache_control="no-cache")(request, connection)
        end = SIZE if kind == "the whole" else 100
        connection.answer(Answer(206, FIELDS + [("Content-Range", f"bytes 0-{end - 1}/{SIZE}")], t.bytes(0, end)))

    t.upstream(handler)
    for _ in range(2):
        read_all(t)
    t.expect_recovery(SIZE)


@table(
    "a multipart response to a single range", rfc="9110 §15.3.7.2",
    rows=["one part", "two parts", "with a Content-Range of its own"],
)  # fmt: skip
def multipart(t, kind):
    def handler(request, connection):
        first, end = asked(request)
        runs = [(first, end)] if kind == "one part" else [(first, end), (0, 10)]
        body = b"".join(
            f"\r\n--B\r\nContent-Range: bytes {a}-{b - 1}/{SIZE}\r\n\r\n".encode() + t.bytes(a, b)
            for a, b in runs
        ) + b"\r\n--B--\r\n"
        fields = [field for field in FIELDS if field[0] != "Content-Type"]
        fields.append(("Content-Type", "multipart/byteranges; boundary=B"))
        if kind.startswith("with a"):
            fields.append(("Content-Range", f"bytes {first}-{first + len(body) - 1}/{SIZE + 9000}"))
        connection.answer(Answer(206, fields, body))

    t.upstream(handler)
    responses = [t.attempt_get(range=value) for value, _ in READS[1:]]
    for response, (_, run) in zip(responses, READS[1:]):
        if not (response.get("Content-Type") or "").startswith("multipart/") or t.is_larder:
            t.expect_honest(response, SIZE, run=run)
    if t.is_larder:
        expect_refused(t, responses)
    t.expect_recovery(SIZE)


PART = 100_000
LONG = 1_000_000


def in_parts(t, part, etag='"v1"', is_plain_refused=False):
    """An upstream that sends at most `part` bytes of a range."""

    def handler(request, connection):
        if request.range:
            first, end = asked(request, LONG)
            end = min(end, first + part)
            fields = [("Content-Range", f"bytes {first}-{end - 1}/{LONG}"), ("Cache-Control", "max-age=3600")]
            fields += [("ETag", etag)] if etag else []
            return connection.answer(Answer(206, fields, t.bytes(first, end)))
        if is_plain_refused:
            return connection.answer(Answer(403))
        asset(LONG, etag=etag, last_modified=None)(request, connection)

    t.upstream(handler)


PARTIAL_READS = [
    ("a range", "bytes=1000-600999", (1000, 601_000)), ("the end", "bytes=-600000", (LONG - 600_000, LONG)),
    ("an open range", "bytes=400000-", (400_000, LONG)), ("the whole", None, None),
]  # fmt: skip


@table(
    "a 206 that is shorter than requested is continued", rfc="9110 §15.3.7", larder_only=True,
    rows=[(f"{name}, {kind}", kind, value, run) for name, value, run in PARTIAL_READS
          for kind in ("strong validator", "trustValidators")],
)  # fmt: skip
def shorter_part(t, _, kind, value, run):
    """"A server might want to send only a subset of the data requested for reasons of its own" (§15.3.7)."""
    is_strong = kind == "strong validator"
    in_parts(t, PART, etag='"v1"' if is_strong else 'W/"v1"', is_plain_refused=True)
    t.origin(retries=0, **({} if is_strong else {"trustValidators": "immutable"}))
    first, end = run or (0, LONG)
    t.expect(t.get(range=value), 206 if value else 200, body=t.bytes(first, end))
    t.expect_requests(-(-(end - first) // PART))
    if any(not request.range for request in t.requests):
        t.fail("a request without Range")


@table(
    "a shorter 206 without a strong validator: one plain transfer", rfc="9110 §15.3.7, §15.3.7.3", larder_only=True,
    rows=PARTIAL_READS,
)  # fmt: skip
def shorter_part_of_unknown(t, _, value, run):
    in_parts(t, PART, etag=None)
    response = t.get(range=value)
    t.expect(response, 206 if value else 200, body=t.bytes(*(run or (0, LONG))))
    t.expect_requests(2)
    in_parts(t, PART, etag=None, is_plain_refused=True)
    refused = t.get(range=value, path="/refused.mp4")
    if refused.status < 400 and refused.complete:
        t.fail(f"{refused}: complete, although parts cannot be combined")


@check("parts of a few bytes are not continued without end", rfc="9110 §15.3.7", larder_only=True)
def small_parts(t):
    in_parts(t, 1000)
    t.origin(retries=2)
    t.expect_honest(t.get(range="bytes=0-99999"), LONG, run=(0, 100_000))
    t.expect_requests(3)


@check("a wrong 206 in the middle of a read", rfc="9110 §15.3.7")
def wrong_in_the_middle(t):
    """The first window is correct, the second is labelled as another one."""
    size = 3_000_000

    def handler(request, connection):
        answer = asset(size).answer(request)
        first, end = asked(request, size)
        if first >= 1000:
            place = ("Content-Range", f"bytes {first - 1000}-{end - 1001}/{size}")
            answer.headers = [field for field in answer.headers if field[0] != "Content-Range"] + [place]
        connection.answer(answer)

    t.upstream(handler)
    t.expect_honest(t.attempt_get(), size)
    t.expect_recovery(size)


# 416

@check("a 416 gives the size, and is passed on with it", rfc="9110 §15.5.17")
def size_learnt(t):
    t.upstream(asset(SIZE))
    for _ in range(2):
        response = t.get(range="bytes=5000-5999")
        t.expect(response, 416, headers={"Content-Range": f"bytes */{SIZE}"})
        for name in ("ETag", "Last-Modified"):
            if t.is_larder and response.get(name):
                t.fail(f"{response}: {name} of a 200")
    t.expect(t.get(range="bytes=-10"), 206, body=t.bytes(SIZE - 10, SIZE))
    t.expect_recovery(SIZE)


@table(
    "a 416 without a size, or a wrong one", rfc="9110 §15.5.17",
    rows=[
        ("nothing", None),
        ("garbage", "garbage"),
        ("a run", "bytes 0-9/3000"),
        ("of another unit", "items */3000"),
        ("of the range's own asset", "bytes */3000"),
        ("of 30 digits", f"bytes */{'9' * 30}"),
    ],
)  # fmt: skip
def lying_416(t, _, value):
    """Every response is a 416, although the asset has 3000 bytes."""
    t.upstream(Answer(416, [("Content-Range", value)] if value else [], b"no"))
    for wanted, run in READS:
        response = t.attempt_get(range=wanted)
        if response.status < 400:
            t.fail(f"{response}: a success without an upstream response")
        if wanted is None and response.status == 416 and t.is_larder:
            t.fail(f"{response}: a 416 without a range")
    t.expect_recovery(SIZE)


@check("a 416 with size 0 is the empty asset, until it has bytes", rfc="9110 §15.5.17", larder_only=True)
def empty_416(t):
    t.upstream(asset(0, cache_control="no-cache"))
    t.expect(t.get(), 200, body=b"")
    t.expect_recovery(SIZE, etag='"v2"')


@check("a 416 for bytes that were announced", rfc="9110 §15.5.17")
def vanished(t):
    """The asset was truncated: old bytes are not served as new ones, and the next read is correct."""
    t.upstream(asset(3_000_000))
    t.expect(t.get(range="bytes=0-99"), 206, body=t.bytes(0, 100))
    t.upstream(asset(1000, etag='"v2"', seed=2))
    response = t.get(range="bytes=2000000-2000099")
    if response.status < 400:
        t.fail(f"{response}: a success without an upstream response")
    if t.is_larder:
        t.expect(t.get(), 200, body=t.bytes(0, 1000, seed=2))
        t.expect_recovery(1000, seed=2, etag='"v2"')


# Unsolicited statuses

@table("an unsolicited 304", rfc="9110 §15.4.5", rows=[('"v1"', FIELDS[0][1]), ('"v7"', '"v7"')])
def unsolicited_304(t, _, tag):
    t.upstream(Answer(304, [("ETag", tag)] + FIELDS[1:], b""))
    for value, _ in READS:
        response = t.attempt_get(range=value)
        if response.status in (200, 206) or (t.is_larder and response.status == 304):
            t.fail(f"{response}: expected a failure")
        t.expect_problem(response, "upstreamProtocol", 502)
    t.expect_recovery(SIZE)


PASSED_ON = [201, 202, 204, 205, 207, 226, 299, 300, 305, 306, 399]


@table("another 2xx, or a redirect without a target", rfc="9110 §15.3, §15.4", rows=PASSED_ON)
def passed_on(t, status):
    """It is passed on unchanged for any requested range, with one upstream request each, and never stored."""
    body = b"" if status in (204, 205) else b"something else"
    t.upstream(Answer(status, FIELDS + [("X-Note", "kept")], body))
    for value, _ in READS:
        response = t.attempt_get(range=value)
        if t.is_larder:
            t.expect(response, status, body=body, headers={"X-Note": "kept", "Content-Range": None})
            t.expect_cache_status(response, hit=False)
        elif response.status in (200, 206):
            t.fail(f"{response}: expected status {status}")
    if t.is_larder:  # another cache may store them for their lifetime
        t.expect_requests(len(READS))
        t.expect_recovery(SIZE)


@check("responses that cannot be stored do not open the circuit", rfc="9110 §15.3", larder_only=True)
def not_counted(t):
    t.upstream(lambda request, connection: (
        asset(SIZE) if request.target.endswith("good.mp4") else Answer(202, FIELDS, b"later"))(request, connection)
    )  # fmt: skip
    for number in range(30):
        t.expect(t.get(path=f"/{number}.mp4"), 202, body=b"later")
    t.expect(t.get(path="/good.mp4"), 200, body=t.bytes(0, SIZE))


@check("a 203 is handled like a 200", rfc="9110 §15.3.4")
def transformed(t):
    t.upstream(Answer(203, FIELDS, t.bytes(0, SIZE)))
    for _ in range(2):
        t.expect(t.get(), (200, 203), body=t.bytes(0, SIZE))
    t.expect_requests(1)


@table("an unexpected status for a cached asset", rfc="9110 §15, 9111 §4.3.3", rows=[204, 205, 202, 206, 416, 304])
def unasked_on_cached(t, status):
    """A revalidation with this status changes no stored byte."""
    t.upstream(asset(SIZE, cache_control="max-age=0"))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    fields = [("ETag", '"v9"'), ("Cache-Control", "max-age=60")]
    t.upstream(Answer(status, fields, b"" if status in (204, 205, 304) else b"evil"))
    response = t.get()
    if t.is_larder and status in (202, 204, 205):
        t.expect(response, status)
    elif t.is_larder or response.status == 200:
        t.expect_honest(response, SIZE)
    if t.is_larder or status == 304:
        t.expect_recovery(SIZE)


@table("a HEAD with an unexpected status", rfc="9110 §9.3.2", rows=[204, 205, 206, 304, 416])
def unasked_on_head(t, status):
    def handler(request, connection):
        if request.method == "HEAD":
            return connection.answer(Answer(status, FIELDS + [("Content-Range", "bytes 0-4/5")]))
        asset(SIZE)(request, connection)

    t.upstream(handler)
    t.expect(t.head(), body=b"")
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect_recovery(SIZE)
