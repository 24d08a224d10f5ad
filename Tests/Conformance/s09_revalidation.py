"""Revalidation: RFC 9111 §4.3 (validation), §3.2 (updating stored fields), §3.1 (stored fields), §4.2.4 (stale);
RFC 9110 §7.6.1 (connection fields), §15.4.5 (304); RFC 5861 (stale-while-revalidate, stale-if-error).
"""

from suite import LAST_MODIFIED, Answer, asset, check, confirming, http_date, table

SECTION = (9, "Revalidation, stale use, stored header fields")
SIZE = 1000
OLD = "max-age=600"
STALE = [("Age", "1000")]


def stale(t, control=OLD, **options):
    """Stores the whole asset, 400 s stale."""
    t.upstream(asset(SIZE, cache_control=control, headers=STALE, **options))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.own.requests.clear()


def expect_old(t, response, **parameters):
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, **parameters)


def expect_new(t, response, **parameters):
    t.expect(response, 200, body=t.bytes(0, SIZE, seed=1))
    t.expect_cache_status(response, **parameters)


# The conditional request


@table(
    "the condition for", rfc="9111 §4.3.1, 9110 §13.1.2, §13.1.3",
    rows=[
        ("an ETag", '"v1"', None, '"v1"', None),
        ("a weak ETag", 'W/"v1"', None, 'W/"v1"', None),
        ("an unusual ETag", '"a;b=\\"', None, '"a;b=\\"', None),
        ("Last-Modified", None, LAST_MODIFIED, None, LAST_MODIFIED),
        ("both", '"v1"', LAST_MODIFIED, '"v1"', LAST_MODIFIED),
    ],
)  # fmt: skip
def condition(t, _, etag, modified, match, since):
    stale(t, etag=etag, last_modified=modified)
    expect_old(t, t.get(), hit=False, fwd="stale", fwd_status=304)
    t.expect_requests(1)
    request = t.requests[0]
    if fetches_anew(t):
        return
    if request.get("If-None-Match") != match:
        t.fail(f"If-None-Match: {request.get('If-None-Match')} instead of {match}")
    if request.get("If-Modified-Since") not in ((since,) if match is None else (since, None)):
        t.fail(f"If-Modified-Since: {request.get('If-Modified-Since')} instead of {since}")


@check("nothing is revalidated without a validator", rfc="9111 §4.3.1")
def no_validator(t):
    stale(t, etag=None, last_modified=None)
    t.upstream(asset(SIZE, etag=None, last_modified=None, seed=1))
    expect_new(t, t.get())
    for request in t.requests:
        if request.get("If-None-Match") or request.get("If-Modified-Since"):
            t.fail(f"an invented condition: {request.headers}")


@check("a reader's own condition does not replace the cache's condition", rfc="9111 §4.3.1, §4.3.2")
def own_condition(t):
    stale(t)
    t.expect(t.get(headers={"If-None-Match": '"other"'}), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(headers={"If-None-Match": '"v1"'}), 304, body=b"")
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table("a stale response is revalidated for", rfc="9111 §4.3", rows=["GET", "HEAD", "a range", "a condition"])
def confirmed_for(t, kind):
    stale(t)
    if kind == "a range":
        response = t.get(range="bytes=5-9")
        t.expect(response, 206, body=t.bytes(5, 10))
    elif kind == "a condition":
        response = t.get(headers={"If-None-Match": '"v1"'})
        t.expect(response, 304)
    else:
        response = t.get(method=kind)
        t.expect(response, 200, body=t.bytes(0, SIZE) if kind == "GET" else b"")
    t.expect_cache_status(response, hit=False, fwd="stale", fwd_status=304)
    if t.is_larder:
        t.expect_requests(1)


def fetches_anew(t):
    """Whether a peer sent an unconditional request, as it may."""
    conditions = ("If-None-Match", "If-Modified-Since")
    return not t.is_larder and not any(request.get(name) for request in t.requests for name in conditions)


# 304


@table(
    "a 304 makes it fresh again", rfc="9111 §4.3.4, §3.2",
    rows=[
        ("max-age=3600", [("Cache-Control", "max-age=3600")], 3600),
        ("nothing: the stored lifetime counts anew", [], 600),
        ("max-age=3600, Age 1000", [("Cache-Control", "max-age=3600"), ("Age", "1000")], 2600),
        ("s-maxage=100", [("Cache-Control", "s-maxage=100")], 100),
        ("Age 100", [("Age", "100")], 500),
    ],
)  # fmt: skip
def refreshed(t, _, fields, seconds):
    stale(t)
    t.upstream(confirming(asset(SIZE), *fields))
    expect_old(t, t.get(), hit=False, fwd="stale", fwd_status=304)
    t.own.requests.clear()
    near = lambda ttl: ttl is not None and seconds - 5 <= ttl <= seconds  # noqa: E731
    expect_old(t, t.get(), hit=True, ttl=near)
    if t.is_larder:
        t.expect_requests(0)


@check("a 304 restarts the lifetime from Expires", rfc="9111 §4.3.4, §5.3")
def refreshed_expires(t):
    t.upstream(asset(SIZE, cache_control=None, headers={"Expires": http_date(-100)}))
    expect_old(t, t.get())
    t.upstream(confirming(asset(SIZE), ("Expires", http_date(3600))))
    expect_old(t, t.get(), hit=False)
    t.own.requests.clear()
    expect_old(t, t.get(), hit=True)
    if t.is_larder:
        t.expect_requests(0)


@table(
    "a 304 that is immediately stale is revalidated again", rfc="9111 §4.3.4, §3.2",
    rows=["max-age=0", "no-cache", "no-store", "private", "no-store, max-age=3600", "private, max-age=3600"],
)  # fmt: skip
def still_stale(t, control):
    stale(t)
    t.upstream(confirming(asset(SIZE, cache_control=control), ("Cache-Control", control)))
    response = t.get()
    expect_old(t, response)
    t.expect(response, headers={"Cache-Control": control})
    t.upstream(asset(SIZE, etag='"v2"', seed=1))
    expect_new(t, t.get())


@check("the fields of a 304 replace the stored fields of the same name", rfc="9111 §3.2")
def replaced(t):
    fields = [("X-Changed", "1"), ("X-Changed", "2"), ("X-Kept", "a"), ("X-Kept", "b"), ("Content-Language", "en")]
    t.upstream(asset(SIZE, cache_control="max-age=0", headers=fields))
    expect_old(t, t.get())
    date = http_date(-5)
    t.upstream(confirming(
        asset(SIZE), ("Date", date), ("X-Changed", "3"), ("X-New", "n"), ("Content-Language", "de"),
        ("Cache-Control", "max-age=3600"),
    ))  # fmt: skip
    wanted = {
        "X-Changed": "3", "X-Kept": "a, b", "X-New": "n", "Content-Language": "de", "Cache-Control": "max-age=3600",
        "Date": date, "ETag": '"v1"', "Last-Modified": LAST_MODIFIED, "Content-Type": "video/mp4",
    }  # fmt: skip
    for _ in range(2):
        response = t.get()
        expect_old(t, response)
        if not fetches_anew(t):
            t.expect(response, headers=wanted)


@table(
    "fields about the 304 itself do not change stored fields", rfc="9111 §3.1, §3.2; 9110 §8.6",
    rows=[
        ("Content-Length: 0", [("Content-Length", "0")]),
        ("Content-Length: 5", [("Content-Length", "5")]),
        ("Connection: X-Kept", [("Connection", "X-Kept"), ("X-Kept", "no")]),
        ("Keep-Alive", [("Keep-Alive", "timeout=5")]),
        ("Set-Cookie", [("Set-Cookie", "a=b")]),
        ("Content-Range", [("Content-Range", "bytes 0-4/5")]),
        ("Content-Encoding", [("Content-Encoding", "gzip")]),
        ("Accept-Ranges: none", [("Accept-Ranges", "none")]),
    ],
)  # fmt: skip
def not_replaced(t, name, fields):
    t.upstream(asset(SIZE, cache_control="max-age=0", headers={"X-Kept": "yes"}))
    expect_old(t, t.get())
    t.upstream(confirming(asset(SIZE), ("Cache-Control", "max-age=3600"), *fields))
    for _ in range(2):
        headers = {"Content-Length": SIZE, "X-Kept": "yes", "Content-Range": None, "Keep-Alive": None}
        if t.is_larder:
            headers.update({"Content-Encoding": None, "Set-Cookie": None, "Accept-Ranges": "bytes"})
        response = t.get()
        expect_old(t, response)
        if not fetches_anew(t):
            t.expect(response, headers=headers)
    if fetches_anew(t):
        return
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10), headers={"Content-Range": f"bytes 5-9/{SIZE}"})


@table(
    "a 304 for another representation", rfc="9111 §4.3.4",
    rows=[("another ETag", '"v2"'), ("another weak ETag", 'W/"v2"')],
)  # fmt: skip
def wrong_confirmation(t, _, etag):
    """The 304 validates nothing; Larder sends an unconditional request."""
    stale(t)

    def handler(request, connection):
        if request.get("If-None-Match"):
            connection.answer(Answer(304, [("ETag", etag), ("Cache-Control", "max-age=3600")]))
        else:
            asset(SIZE, etag=etag, seed=1)(request, connection)

    t.upstream(handler)
    for _ in range(2):
        response = t.get()
        if response.status == 200:
            is_old = response.body == t.bytes(0, SIZE)
            if not is_old and response.body != t.bytes(0, SIZE, seed=1):
                t.fail(f"{response}: WRONG BYTES")
            if (response.get("ETag") == etag) == is_old:
                t.fail(f"{response}: bytes of one generation with the ETag of the other")
            if is_old and t.is_larder:
                t.fail(f"{response}: stale and not validated")
        else:
            t.expect(response, 200 if t.is_larder else 502)


@check("a 304 with a date other than the one in the condition", rfc="9111 §4.3.4")
def wrong_date_confirmation(t):
    stale(t, etag=None)
    later = "Thu, 02 Jan 2020 10:00:00 GMT"

    def handler(request, connection):
        if request.get("If-Modified-Since"):
            connection.answer(Answer(304, [("Last-Modified", later), ("Cache-Control", "max-age=3600")]))
        else:
            asset(SIZE, etag=None, last_modified=later, seed=1)(request, connection)

    t.upstream(handler)
    for _ in range(2):
        response = t.get()
        if t.is_larder:
            expect_new(t, response)
            t.expect(response, headers={"Last-Modified": later})
        elif response.status == 200 and response.body != t.bytes(0, SIZE):
            t.expect(response, 200, body=t.bytes(0, SIZE, seed=1), headers={"Last-Modified": later})


@check("a 304 with Vary: * makes the stored response unusable afterwards", rfc="9111 §3.2, §4.1")
def confirmed_to_vary(t):
    stale(t)
    t.upstream(confirming(asset(SIZE), ("Cache-Control", "max-age=3600"), ("Vary", "*")))
    expect_old(t, t.get())
    t.upstream(asset(SIZE, etag='"v2"', seed=1))
    expect_new(t, t.get())


# 200 and other validators


@table("another generation", rfc="9111 §4.3.3", rows=["whole", "range", "HEAD", "many ranges"])
def changed(t, kind):
    stale(t, content_type="video/mp4")
    t.upstream(asset(SIZE, etag='"v2"', seed=1, content_type="video/webm", headers={"X-Seed": "1"}))
    if kind == "range":
        t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10, seed=1), headers={"ETag": '"v2"'})
    elif kind == "HEAD":
        t.expect(t.head(), 200, headers={"ETag": '"v2"', "X-Seed": "1"})
    elif kind == "many ranges":
        for first in (900, 0, 500):
            response = t.get(range=f"bytes={first}-{first + 9}")
            t.expect(response, 206, body=t.bytes(first, first + 10, seed=1))
    response = t.get()
    expect_new(t, response)
    t.expect(response, headers={"ETag": '"v2"', "X-Seed": "1", "Content-Type": "video/webm"})


@check("no field of the old generation remains", rfc="9111 §4.3.3")
def old_fields_gone(t):
    t.upstream(asset(SIZE, cache_control="max-age=0", headers={"X-Old": "yes", "Expires": http_date(-10)}))
    expect_old(t, t.get())
    t.upstream(asset(SIZE, etag='"v2"', seed=1, last_modified=None))
    for _ in range(2):
        response = t.get()
        expect_new(t, response)
        t.expect(response, headers={"X-Old": None, "Expires": None, "Last-Modified": None, "ETag": '"v2"'})


@table(
    "a generation that differs in", rfc="9111 §4.3.3, 9110 §8.8",
    rows=[
        ("ETag, size", {"etag": '"v2"'}, 2000),
        ("ETag, smaller", {"etag": '"v2"'}, 500),
        ("ETag, same size", {"etag": '"v2"'}, SIZE),
        ("Last-Modified", {"etag": None, "last_modified": "Thu, 02 Jan 2020 10:00:00 GMT"}, SIZE),
        ("Last-Modified, backwards", {"etag": None, "last_modified": "Tue, 01 Jan 2019 10:00:00 GMT"}, SIZE),
    ],
)  # fmt: skip
def differs(t, _, changes, size):
    kept = {"etag": None} if changes["etag"] is None else {}
    stale(t, **kept)

    def handler(request, connection):
        # A server that compares dates for equality, as many servers do.
        request.headers = [(n, v) for n, v in request.headers if n.lower() != "if-modified-since"]
        asset(size, seed=1, **changes)(request, connection)

    t.upstream(handler)
    t.expect(t.get(), 200, body=t.bytes(0, size, seed=1), headers={"Content-Length": size})
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10, seed=1), headers={"Content-Range": f"bytes 5-9/{size}"})


@check("a 200 with the same validator makes it fresh again", rfc="9111 §4.3.3")
def same_again(t):
    stale(t)

    def handler(request, connection):
        request.headers = [(n, v) for n, v in request.headers if not n.lower().startswith("if-none")
                           and not n.lower().startswith("if-modified")]  # fmt: skip
        asset(SIZE)(request, connection)

    t.upstream(handler)
    expect_old(t, t.get(), hit=False)
    t.own.requests.clear()
    expect_old(t, t.get(), hit=True)
    if t.is_larder:
        t.expect_requests(0)


# Partly stored assets

LONG = 3_000_000


def stale_part(t, control=OLD):
    """Stores the first 100,000 bytes, 400 s stale."""
    t.upstream(asset(LONG, cache_control=control, headers=STALE))
    t.expect(t.get(range="bytes=0-99999"), 206, body=t.bytes(0, 100_000))
    t.own.requests.clear()


@table("a partly stored asset", rfc="9111 §4.3, §3.4", rows=["the part", "another part", "the whole", "both"])
def part_confirmed(t, kind):
    stale_part(t)
    t.upstream(asset(LONG))
    if kind == "the whole":
        t.expect(t.get(), 200, body=t.bytes(0, LONG))
    else:
        first, end = {"the part": (5, 10), "another part": (2_000_000, 2_000_010), "both": (50_000, 150_000)}[kind]
        t.expect(t.get(range=f"bytes={first}-{end - 1}"), 206, body=t.bytes(first, end))
    # A conditional request names a range for the case of a change; the 304 has no bytes.
    plain = [request for request in t.requests if request.range and not request.get("If-None-Match")]
    runs = [request.range.removeprefix("bytes=").split("-") for request in plain]
    if t.is_larder and any(int(first) < 100_000 and int(last or LONG) - int(first) > 1 for first, last in runs):
        t.fail(f"stored bytes were requested again: {runs}")


@table("a partly stored asset that has changed", rfc="9111 §4.3.3, §3.4",
       rows=["the part", "another part", "the whole", "both"])  # fmt: skip
def part_changed(t, kind):
    stale_part(t)
    t.upstream(asset(LONG, etag='"v2"', seed=1))
    if kind != "the whole":
        first, end = {"the part": (5, 10), "another part": (2_000_000, 2_000_010), "both": (50_000, 150_000)}[kind]
        t.expect(t.get(range=f"bytes={first}-{end - 1}"), 206, body=t.bytes(first, end, seed=1))
    t.expect(t.get(), 200, body=t.bytes(0, LONG, seed=1))


@check("a part with no-cache is revalidated for each read", rfc="9111 §5.2.2.4, §3.4", larder_only=True)
def part_no_cache(t):
    t.upstream(asset(LONG, cache_control="no-cache"))
    for first, end in ((0, 100), (0, 100), (50, 150), (2_000_000, 2_000_010), (0, 10)):
        asked = len(t.requests)
        t.expect(t.get(range=f"bytes={first}-{end - 1}"), 206, body=t.bytes(first, end))
        if asked and t.requests[asked:][0].get("If-None-Match") != '"v1"':
            t.fail(f"{first}-{end}: not revalidated")
    t.upstream(asset(LONG, etag='"v2"', seed=1, cache_control="no-cache"))
    response = t.get(range="bytes=0-9,2000000-2000009")
    t.expect(response, 206, headers={"ETag": '"v2"'})
    if [part.body for part in response.parts()] != [t.bytes(0, 10, seed=1), t.bytes(2_000_000, 2_000_010, seed=1)]:
        t.fail(f"{response}: WRONG BYTES, or two generations MIXED")


@check("a 304 for one reader, then a part for another", rfc="9111 §4.3.4, §3.4")
def confirmed_then_part(t):
    stale_part(t)
    t.upstream(asset(LONG, cache_control=OLD))
    t.expect(t.get(range="bytes=2000000-2000009", headers={"If-None-Match": '"v1"'}), 304, body=b"")
    t.expect(t.get(range="bytes=2000000-2000009"), 206, body=t.bytes(2_000_000, 2_000_010))
    response = t.get(range="bytes=0-99")
    t.expect(response, 206, body=t.bytes(0, 100))
    t.expect_cache_status(response, hit=True, ttl=lambda ttl: ttl is not None and 590 <= ttl <= 600)


@check("a stale part is served when the upstream fails, missing bytes are an error", rfc="5861 §4", larder_only=True)
def part_and_failure(t):
    stale_part(t, "max-age=600, stale-if-error=3600")
    t.upstream(Answer(503, body=b"out of order"))
    response = t.get(range="bytes=5-9")
    t.expect(response, 206, body=t.bytes(5, 10))
    t.expect_cache_status(response, hit=False, fwd="stale", fwd_status=503, detail="stale")
    t.expect(t.get(range="bytes=2000000-2000009"), 503)
    response = t.get(range="bytes=99990-100009")
    if response.status == 206:
        t.expect(response, 206, complete=False)
    else:
        t.expect(response, 503)


@check("a stale part with missing bytes is not mixed with another one", rfc="5861 §3, 9111 §3.4", larder_only=True)
def part_behind(t):
    stale_part(t, "max-age=600, stale-while-revalidate=3600")
    t.upstream(asset(LONG, etag='"v2"', seed=1))
    response = t.get(range="bytes=2000000-2000009")
    t.expect(response, 206, body=t.bytes(2_000_000, 2_000_010, seed=1), headers={"ETag": '"v2"'})
    response = t.get(range="bytes=50000-149999")
    t.expect(response, 206, body=t.bytes(50_000, 150_000, seed=1), headers={"ETag": '"v2"'})


# When the upstream fails


def reset(request, connection):
    connection.reset()


def stall(request, connection):
    connection.stall()


FAILURES = {
    "500": Answer(500, body=b"out of order"),
    "502": Answer(502, body=b"out of order"),
    "503": Answer(503, body=b"out of order"),
    "503 with Retry-After": Answer(503, [("Retry-After", "3600")], b"out of order"),
    "504": Answer(504, body=b"out of order"),
    "a reset connection": reset,
    "no answer": stall,
    "noise": lambda request, connection: (connection.send(b"\x00\x01\x02 noise\r\n\r\n"), connection.close()),
    "a refused connection": None,
}


def fail(t, kind):
    if FAILURES[kind] is None:
        t.stop_upstream()
    else:
        t.upstream(FAILURES[kind])


@table("stale within stale-if-error for", rfc="5861 §4, 9111 §4.2.4", larder_only=True, rows=list(FAILURES))
def stale_if_error(t, kind):
    stale(t, "max-age=600, stale-if-error=3600")
    fail(t, kind)
    response = t.get()
    expired = {"ttl": lambda ttl: ttl is not None and -420 <= ttl <= -400}
    expect_old(t, response, hit=False, fwd="stale", detail="stale", **expired)
    if not 1000 <= int(response.get("Age") or 0) <= 1020:
        t.fail(f"{response}: Age")
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))


STATUS = {"500": 500, "502": 502, "503": 503, "503 with Retry-After": 503, "504": 504, "no answer": 504}


@table("no stale response without stale-if-error for", rfc="9111 §4.2.4, §4.3.3", larder_only=True, rows=list(FAILURES))
def no_stale(t, kind):
    stale(t)
    fail(t, kind)
    t.expect(t.get(), STATUS.get(kind, 502))


@table("no stale response past stale-if-error for", rfc="5861 §4", larder_only=True, rows=["503", "a reset connection"])
def beyond(t, kind):
    stale(t, "max-age=600, stale-if-error=100")
    fail(t, kind)
    t.expect(t.get(), STATUS.get(kind, 502))


@table("no stale response for the upstream's decision", rfc="5861 §4", larder_only=True, rows=[403, 404, 410, 429, 501])
def decided(t, status):
    stale(t, "max-age=600, stale-if-error=3600")
    t.upstream(Answer(status, body=b"no"))
    t.expect(t.get(), status)


@table(
    "stale use is forbidden by", rfc="9111 §4.2.4, §5.2.2.2, §5.2.2.8, §5.2.2.10, §5.2.2.4",
    rows=["must-revalidate", "proxy-revalidate", "s-maxage=600", "no-cache",
          "must-revalidate, stale-while-revalidate=9999"],
)  # fmt: skip
def forbidden(t, directive):
    stale(t, f"max-age=600, stale-if-error=3600, {directive}")
    t.upstream(Answer(503, body=b"out of order"))
    t.expect(t.get(), (502, 503, 504))
    t.expect(t.get(range="bytes=5-9"), (502, 503, 504))


@check("a response that must be revalidated is an error when the upstream is unreachable", rfc="9111 §5.2.2.2")
def must_revalidate_unreachable(t):
    stale(t, "max-age=600, must-revalidate")
    t.stop_upstream()
    t.expect(t.get(), (502, 503, 504))


@table(
    "the origin's staleIfErrorSeconds", rfc="5861 §4", larder_only=True,
    rows=[
        ("3600", 3600, OLD, True),
        ("3600 before the response's own 0", 3600, OLD + ", stale-if-error=0", True),
        ("100, too short", 100, OLD, False),
        ("0 before the response's own 3600", 0, OLD + ", stale-if-error=3600", False),
        ("null: the response's own", None, OLD + ", stale-if-error=3600", True),
        ("3600, must-revalidate", 3600, OLD + ", must-revalidate", False),
        ("3600, proxy-revalidate", 3600, OLD + ", proxy-revalidate", False),
        ("3600, s-maxage", 3600, "s-maxage=600", False),
        ("3600, no-cache", 3600, OLD + ", no-cache", False),
    ],
)  # fmt: skip
def own_limit(t, _, seconds, control, is_used):
    t.origin(staleIfErrorSeconds=seconds)
    stale(t, control)
    t.upstream(Answer(503, body=b"out of order"))
    if is_used:
        expect_old(t, t.get(), hit=False, fwd="stale", detail="stale")
    else:
        t.expect(t.get(), 503)


@check("the first response after a failure is revalidated again", rfc="9111 §4.3.3", larder_only=True)
def recovery(t):
    stale(t, "max-age=600, stale-if-error=3600")
    t.upstream(Answer(503, body=b"out of order"))
    expect_old(t, t.get(), hit=False, fwd="stale")
    t.upstream(asset(SIZE, etag='"v2"', seed=1))
    expect_new(t, t.get())


@check("a failure after a new generation began does not serve the old generation", rfc="9111 §4.3.3")
def failing_body(t):
    stale(t)

    def handler(request, connection):
        connection.send(b'HTTP/1.1 200 OK\r\nETag: "v2"\r\nContent-Length: 1000\r\n\r\n' + t.bytes(0, 10, seed=1))
        connection.reset()

    t.upstream(handler)
    response = t.get()
    if response.status == 200:
        if response.complete:
            t.fail(f"{response}: ended as if it were complete")
        if response.body != t.bytes(0, len(response.body), seed=1):
            t.fail(f"{response}: WRONG BYTES")


# stale-while-revalidate

BEHIND = "max-age=600, stale-while-revalidate=3600"


@table("stale-while-revalidate responds immediately", rfc="5861 §3", larder_only=True, rows=["whole", "range", "HEAD"])
def at_once(t, kind):
    stale(t, BEHIND)
    release = t.event()

    def handler(request, connection):
        connection.wait(release)
        asset(SIZE, etag='"v2"', seed=1)(request, connection)

    t.upstream(handler)
    if kind == "range":
        response = t.get(range="bytes=5-9")
        t.expect(response, 206, body=t.bytes(5, 10))
    else:
        response = t.get(method="HEAD" if kind == "HEAD" else "GET")
        t.expect(response, 200, body=b"" if kind == "HEAD" else t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=True, detail="stale", ttl=lambda ttl: ttl is not None and -410 <= ttl <= -400)
    t.await_requests(1)
    release.set()
    t.eventually(lambda: t.get().body == t.bytes(0, SIZE, seed=1), "the new generation")


@check("many stale responses cause one revalidation", rfc="5861 §3", larder_only=True)
def one_behind(t):
    stale(t, BEHIND)
    release = t.event()

    def handler(request, connection):
        connection.wait(release)
        asset(SIZE, cache_control="max-age=3600")(request, connection)

    t.upstream(handler)
    for response in t.together(*[t.get] * 8):
        expect_old(t, response, hit=True)
    t.await_requests(1)
    expect_old(t, t.get(), hit=True)
    release.set()
    t.eventually(lambda: "detail" not in t.get().cache_status()[-1][1], "a fresh response")
    t.expect_requests(1)
    if t.requests[0].get("If-None-Match") != '"v1"':
        t.fail(f"the upstream received {t.requests[0].headers}")


@table("a background revalidation failure does not reach the reader", rfc="5861 §3", larder_only=True,
       rows=["503", "a reset connection", "a refused connection"])  # fmt: skip
def failure_behind(t, kind):
    stale(t, BEHIND)
    fail(t, kind)
    for _ in range(3):
        expect_old(t, t.get(), hit=True)


@check("beyond stale-while-revalidate the reader waits", rfc="5861 §3")
def behind_too_late(t):
    stale(t, "max-age=600, stale-while-revalidate=100")
    t.upstream(asset(SIZE, etag='"v2"', seed=1))
    expect_new(t, t.get(), hit=False)


# Concurrency


@check("many concurrent revalidations are one request", rfc="9111 §4", states=("cold",), larder_only=True)
def together(t):
    stale(t)
    release = t.event()

    def handler(request, connection):
        connection.wait(release)
        asset(SIZE)(request, connection)

    t.upstream(handler)
    readers = [t.spawn(t.get if at % 2 else lambda: t.get(range="bytes=5-9")) for at in range(10)]
    t.await_requests(1)
    release.set()
    for at, reader in enumerate(readers):
        response = reader()
        t.expect(response, 200 if at % 2 else 206, body=t.bytes(0, SIZE) if at % 2 else t.bytes(5, 10))
    t.expect_requests(1)


@check("many readers of a changed asset", rfc="9111 §4.3.3")
def changed_together(t):
    stale(t)
    release = t.event()

    def handler(request, connection):
        connection.wait(release)
        asset(SIZE, etag='"v2"', seed=1)(request, connection)

    t.upstream(handler)
    readers = [t.spawn(t.get) for _ in range(8)]
    t.await_requests(1)
    release.set()
    for reader in readers:
        expect_new(t, reader())
    if t.is_larder and len([request for request in t.requests if request.get("If-None-Match")]) != 1:
        t.fail(f"{len(t.requests)} requests: {[request.headers for request in t.requests]}")


@check("one failed revalidation fails all of its waiting readers", rfc="9111 §4", larder_only=True)
def failed_together(t):
    stale(t)
    release = t.event()

    def handler(request, connection):
        connection.wait(release)
        connection.answer(Answer(404, body=b"gone"))

    t.upstream(handler)
    readers = [t.spawn(t.get) for _ in range(6)]
    t.await_requests(1)
    release.set()
    for reader in readers:
        t.expect(reader(), 404)


# Stored fields

KEPT = [
    ("X-Multi", "1"), ("Link", "</a>; rel=next"), ("X-Multi", "2, 3"), ("Content-Language", "mi, en"), ("X-Empty", ""),
    ("Content-Disposition", 'attachment; filename="a;b.mp4"'), ("X-Multi", "1"), ("x-small-letters", "yes"),
    ("X-UTF-8", "caf\xc3\xa9"), ("X-Long", "x" * 1000), ("Content-Location", "/films/1"), ("X-Quoted", '"a, b", "c"'),
    ("Warning", '199 - "x"'), ("Link", "</b>; rel=prev"), ("Pragma", "foo"), ("Repr-Digest", "sha-256=:AAAA:"),
    ("Content-Security-Policy", "default-src 'none'"), ("X-Powered-By", "a"), ("Timing-Allow-Origin", "*"),
]  # fmt: skip


@check("end-to-end fields keep their order and number", rfc="9111 §3.1, 9110 §5.3, §7.6.1", states=("cold", "warm"))
def end_to_end(t):
    t.upstream(asset(SIZE, headers=KEPT))
    names = {name.lower() for name, _ in KEPT}
    for _ in range(2):
        response = t.get()
        t.expect(response, 200)
        found = [(name.lower(), value) for name, value in response.headers if name.lower() in names]
        for name in names:
            wanted = [value for other, value in KEPT if other.lower() == name]
            if [value for other, value in found if other == name] != wanted:
                t.fail(f"{name}: {[value for other, value in found if other == name]} instead of {wanted}")
        if t.is_larder and found != [(name.lower(), value) for name, value in KEPT]:
            t.fail(f"another order: {[name for name, _ in found]}")


@check("a field that is not UTF-8 keeps its bytes", rfc="9110 §5.5", states=("cold", "warm"))
def obsolete_text(t):
    t.upstream(asset(SIZE, headers={"X-Latin": "caf\xe9"}))
    response = t.get()
    if response.get("X-Latin") not in ("caf\xe9", "caf\xc3\xa9"):
        t.fail(f"X-Latin: {response.get('X-Latin')!r}")


@check("ETags that differ in non-ASCII bytes differ", rfc="9110 §8.8.3")
def obsolete_tags(t):
    stale(t, etag='"\xe9"', last_modified=None)
    t.upstream(asset(SIZE, etag='"\xe8"', last_modified=None, seed=1))
    expect_new(t, t.get())


@check("unknown directives of Cache-Control are passed on", rfc="9111 §5.2", states=("cold", "warm"))
def unknown_directives(t):
    value = 'max-age=3600, foo, bar="a, b", Stale-While-Revalidate=5, no-transform'
    t.upstream(asset(SIZE, cache_control=value))
    t.expect(t.get(), 200, headers={"Cache-Control": value})


@table(
    "a connection field is not stored", rfc="9110 §7.6.1, 9111 §3.1", states=("cold", "warm"),
    rows=[
        ("Keep-Alive", [("Connection", "keep-alive"), ("Keep-Alive", "timeout=17")], "Keep-Alive"),
        ("Proxy-Connection", [("Proxy-Connection", "keep-alive")], "Proxy-Connection"),
        ("TE", [("Connection", "TE"), ("TE", "trailers")], "TE"),
        ("Upgrade", [("Connection", "upgrade"), ("Upgrade", "h2c")], "Upgrade"),
        ("Proxy-Authenticate", [("Proxy-Authenticate", "Basic")], "Proxy-Authenticate"),
        ("Proxy-Authentication-Info", [("Proxy-Authentication-Info", "a=b")], "Proxy-Authentication-Info"),
        ("named in Connection", [("Connection", "X-Hop"), ("X-Hop", "yes")], "X-Hop"),
        ("named in small letters", [("Connection", "x-hop"), ("X-Hop", "yes")], "X-Hop"),
        ("named among others", [("Connection", "keep-alive, X-Hop ,, x-other"), ("X-Hop", "yes")], "X-Hop"),
        ("named in the second", [("Connection", "x-other"), ("Connection", "X-Hop"), ("X-Hop", "1")], "X-Hop"),
        ("named behind the field", [("X-Hop", "yes"), ("Connection", "X-Hop")], "X-Hop"),
        ("named twice in the head", [("X-Hop", "1"), ("Connection", "X-Hop"), ("X-Hop", "2")], "X-Hop"),
    ],
)  # fmt: skip
def hop_by_hop(t, _, fields, name):
    t.upstream(asset(SIZE, headers=fields + [("X-Kept", "yes")]))
    for _ in range(2):
        t.expect(t.get(), 200, body=t.bytes(0, SIZE), headers={name: None, "X-Kept": "yes"})


@check("fields named by Connection in a 304 are not stored", rfc="9110 §7.6.1", states=("cold",))
def hop_by_hop_of_confirmation(t):
    t.upstream(asset(SIZE, cache_control="max-age=0", headers={"X-Kept": "yes"}))
    expect_old(t, t.get())
    hop = [("Connection", "X-Hop"), ("X-Hop", "1"), ("Cache-Control", "max-age=60")]
    t.upstream(confirming(asset(SIZE), *hop))
    for _ in range(2):
        response = t.get()
        t.expect(response, 200, body=t.bytes(0, SIZE), headers={"X-Hop": None})
        if not fetches_anew(t):
            t.expect(response, headers={"X-Kept": "yes"})


@check("trailers of a chunked response are not stored as fields", rfc="9110 §6.5.1", states=("cold", "warm"))
def trailers(t):
    fields = [("ETag", '"v1"'), ("Cache-Control", "max-age=3600")]
    trailer = [("X-Late", "1"), ("ETag", '"late"'), ("Content-Length", "3")]
    t.upstream(Answer(200, fields, t.bytes(0, SIZE), chunked=True, trailers=trailer))
    for _ in range(2):
        t.expect(t.get(), 200, body=t.bytes(0, SIZE), headers={"X-Late": None, "ETag": '"v1"'})
