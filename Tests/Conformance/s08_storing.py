"""Storing: RFC 9111 §3 (responses), §3.3 (parts), §3.5 (Authorization), §4.1 (Vary), §7.3 (cookies);
RFC 9110 §12.5.5 (Vary).

A stored response is visible in the next read, after the upstream has changed its asset. Storing is optional (RFC 9111
§2): it is required of Larder, not of a peer. No cache may store a response that must not be stored.
"""

from suite import LAST_MODIFIED, Answer, asset, check, http_date, table

SECTION = (8, "Storing: statuses, cookies, credentials, Vary")
BOTH = ("cold", "warm")
SIZE = 1000
FRESH = [("Cache-Control", "max-age=3600")]


def change(t, **options):
    """The upstream serves another asset from now on."""
    t.own.requests.clear()
    t.upstream(asset(SIZE, etag='"v2"', seed=1, cache_control="max-age=0", **options))


def expect_old(t, response):
    t.expect(response, 200, body=t.bytes(0, SIZE))


def expect_new(t, response):
    t.expect(response, 200, body=t.bytes(0, SIZE, seed=1))


# 200 and 206


@check("a 200 is stored", rfc="9111 §3", larder_only=True)
def stored(t):
    t.upstream(asset(SIZE))
    expect_old(t, t.get())
    change(t)
    response = t.get()
    expect_old(t, response)
    t.expect_cache_status(response, hit=True)
    t.expect_requests(0)


@check("a 206 is stored and serves parts of itself", rfc="9111 §3.3", larder_only=True)
def partial_stored(t):
    t.upstream(asset(SIZE))
    t.expect(t.get(range="bytes=100-299"), 206, body=t.bytes(100, 300))
    change(t)
    for first, last in [(100, 299), (100, 100), (299, 299), (150, 249)]:
        response = t.get(range=f"bytes={first}-{last}")
        t.expect(response, 206, body=t.bytes(first, last + 1), headers={"Content-Range": f"bytes {first}-{last}/1000"})
        t.expect_cache_status(response, hit=True)
    t.expect_requests(0)


@check("only missing bytes are requested", rfc="9111 §3.4", larder_only=True)
def combined(t):
    size = 3_000_000
    t.upstream(asset(size))
    t.expect(t.get(range="bytes=0-999999"), 206, body=t.bytes(0, 1_000_000))
    t.expect(t.get(range="bytes=2000000-"), 206, body=t.bytes(2_000_000, size))
    t.own.requests.clear()
    t.expect(t.get(), 200, body=t.bytes(0, size))
    asked = [range(*(int(part) for part in request.range.removeprefix("bytes=").split("-"))) for request in t.requests]
    if any(run.start < 1_000_000 or run.stop >= 2_000_000 for run in asked):
        t.fail(f"stored bytes were requested again: {asked}")


@check("parts of two generations are never combined", rfc="9111 §3.4")
def not_combined(t):
    t.upstream(asset(SIZE))
    t.expect(t.get(range="bytes=0-99"), 206, body=t.bytes(0, 100))
    t.upstream(asset(SIZE, etag='"v2"', seed=1))
    response = t.get()
    if response.complete and response.body not in (t.bytes(0, SIZE), t.bytes(0, SIZE, seed=1)):
        t.fail(f"{response}: neither of the two generations")
    if not response.complete and response.body != t.bytes(0, len(response.body)):
        t.fail(f"{response}: WRONG BYTES")
    if t.is_larder:
        t.expect(t.get(range="bytes=500-599"), 206, body=t.bytes(500, 600, seed=1))
        expect_new(t, t.get())


@table(
    "a part that may not be stored is not stored", rfc="9111 §3, §5.2.2",
    rows=["no-store", "private", "no-store, max-age=3600", "private, max-age=3600"],
)  # fmt: skip
def partial_not_stored(t, value):
    t.upstream(asset(SIZE, cache_control=value))
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))
    change(t)
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10, seed=1))
    expect_new(t, t.get())


@table(
    "a response that may not be stored is not revalidated", rfc="9111 §3, §4.3",
    rows=["no-store", "private", "no-store, max-age=3600"],
)  # fmt: skip
def not_confirmed(t, value):
    t.upstream(asset(SIZE, cache_control=value))
    expect_old(t, t.get())
    t.own.requests.clear()
    expect_old(t, t.get())
    if not t.requests:
        t.fail("the upstream received no request")
    for request in t.requests:
        if request.get("If-None-Match") or request.get("If-Modified-Since"):
            t.fail(f"the upstream received a conditional request: {request.headers}")


@table("Cache-Status reports storing", rfc="9211 §2.6", larder_only=True,
       rows=[("max-age=3600", True), ("no-cache", True), ("no-store", None), ("private", None)])  # fmt: skip
def status_tells(t, value, is_stored):
    t.upstream(asset(SIZE, cache_control=value))
    response = t.get()
    expect_old(t, response)
    t.expect_cache_status(response, hit=False, stored=is_stored)


@check("many readers of an unstorable asset each get it whole", rfc="9111 §3")
def unstorable_together(t):
    t.upstream(asset(200_000, cache_control="no-store"))
    for response in t.together(*[t.get] * 6):
        t.expect(response, 200, body=t.bytes(0, 200_000))


@table("a long asset that is immediately stale or unstorable is complete", rfc="9111 §3, §4", states=BOTH,
       rows=["no-store", "private", "no-cache", "max-age=0", "max-age=0, must-revalidate"])  # fmt: skip
def long_unstorable(t, value):
    size = 3_000_000
    t.upstream(asset(size, cache_control=value))
    t.expect(t.get(range="bytes=1000000-1999999"), 206, body=t.bytes(1_000_000, 2_000_000))
    t.expect(t.get(), 200, body=t.bytes(0, size))
    readers = [t.get, lambda: t.get(range="bytes=500000-"), t.get, lambda: t.get(range="bytes=-700000")]
    for response, first in zip(t.together(*readers), (0, 500_000, 0, size - 700_000)):
        t.expect(response, 206 if first else 200, body=t.bytes(first, size))


def read_after_unstorable_part(t, value, changed):
    """Reads a part of a stored asset with this `Cache-Control`, and again after the upstream has `changed`."""
    size = 3_000_000
    t.upstream(asset(size))
    t.expect(t.get(range="bytes=0-9"), 206, body=t.bytes(0, 10))
    t.upstream(asset(size, cache_control=value))
    t.expect(t.get(range="bytes=2000000-2000009"), 206, body=t.bytes(2_000_000, 2_000_010))
    if len(t.requests) < 2:
        return  # a peer that read the whole asset
    t.upstream(asset(size, seed=1, **changed))
    response = t.get(range="bytes=2000000-2000009")
    t.expect(response, 206, body=t.bytes(2_000_000, 2_000_010, seed=1))


@table("an unstorable part is not combined with stored parts", rfc="9111 §3, §3.4", rows=["no-store", "private"])
def unstorable_part(t, value):
    read_after_unstorable_part(t, value, {"etag": '"v2"'})


@table("the bytes of an unstorable part are not reused", rfc="9111 §3, §5.2.2.5", rows=["no-store", "private"])
def unstorable_bytes(t, value):
    """The upstream keeps the tag of changed bytes, so that reused bytes are recognised."""
    read_after_unstorable_part(t, value, {})


@table(
    "a fetched part has its own header fields", rfc="9111 §3.2, §3.4, §5.2", larder_only=True,
    rows=["max-age=0", "no-store", "private, max-age=3600", "max-age=60"],
)  # fmt: skip
def own_fields_of_a_part(t, value):
    """The stored bytes have another lifetime; a downstream cache must not apply it to this part."""
    size = 3_000_000
    t.upstream(asset(size, headers={"X-Part": "1"}))
    t.expect(t.get(range="bytes=0-9"), 206, body=t.bytes(0, 10))
    t.upstream(asset(size, cache_control=value, headers={"X-Part": "2"}))
    response = t.get(range="bytes=2000000-2000009")
    t.expect(response, 206, body=t.bytes(2_000_000, 2_000_010), headers={"Cache-Control": value, "X-Part": "2"})
    is_kept = value.startswith("max-age")
    t.expect_cache_status(response, hit=False, fwd="miss" if is_kept else "bypass", stored=True if is_kept else None)


@check("the lifetime of the last part applies to the whole asset", rfc="9111 §3.2, §3.4", larder_only=True)
def lifetime_of_the_last_part(t):
    size = 3_000_000
    t.upstream(asset(size))
    t.expect(t.get(range="bytes=0-9"), 206, body=t.bytes(0, 10))
    t.upstream(asset(size, cache_control="max-age=0"))
    t.expect(t.get(range="bytes=2000000-2000009"), 206, body=t.bytes(2_000_000, 2_000_010))
    t.own.requests.clear()
    response = t.get(range="bytes=0-9")
    t.expect(response, 206, body=t.bytes(0, 10))
    t.expect_cache_status(response, hit=False, fwd="stale", fwd_status=304)


@check("a response that became unstorable replaces the stored one", rfc="9111 §3.2, §4")
def became_unstorable(t):
    t.upstream(asset(SIZE, cache_control="max-age=0"))
    expect_old(t, t.get())
    t.upstream(asset(SIZE, etag='"v2"', seed=1, cache_control="no-store"))
    expect_new(t, t.get())
    t.upstream(asset(SIZE, etag='"v3"', seed=2, cache_control="max-age=3600"))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE, seed=2))


# Negative caching

KEPT = [403, 404, 405, 410, 414, 451]
LIFETIMES = {
    "max-age=3600": FRESH,
    "s-maxage=3600": [("Cache-Control", "max-age=0, s-maxage=3600")],
    "Expires in an hour": [("Expires", http_date(3600))],
    "Age 600 of 3600": FRESH + [("Age", "600")],
}


def refuse(t, status, fields=()):
    t.upstream(Answer(status, list(fields), b"no such film"))
    t.expect(t.get(), status)
    t.own.requests.clear()
    t.upstream(asset(SIZE))


def expect_repeated(t, status, **parameters):
    response = t.get()
    t.expect(response, status)
    t.expect_cache_status(response, hit=True, detail="negative", **parameters)
    t.expect(t.get(range="bytes=0-9"), status, headers={"Content-Range": None})
    t.expect(t.head(), status, body=b"")
    t.expect_requests(0)
    return response


def expect_recovered(t):
    expect_old(t, t.get())
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))


@table("a cached error is repeated within its lifetime", rfc="9111 §3, §4", larder_only=True, rows=KEPT)
def repeated(t, status):
    refuse(t, status, FRESH)
    expect_repeated(t, status)


@table("the lifetime of a 404", rfc="9111 §4.2.1", larder_only=True, rows=list(LIFETIMES))
def lifetime(t, name):
    refuse(t, 404, LIFETIMES[name])
    response = expect_repeated(t, 404)
    age = int(response.get("Age") or -1)
    low = 600 if name.startswith("Age") else 0
    if not low <= age <= low + 5:
        t.fail(f"{response}: Age should be {low}")


@table(
    "a 404 is requested again", rfc="9111 §3, §4.2.1, §5.2.2",
    rows=[
        ("no-store", [("Cache-Control", "no-store, max-age=3600")]),
        ("private", [("Cache-Control", "private, max-age=3600")]),
        ("no-cache", [("Cache-Control", "no-cache, max-age=3600")]),
        ("max-age=0", [("Cache-Control", "max-age=0")]),
        ("s-maxage=0", [("Cache-Control", "max-age=3600, s-maxage=0")]),
        ("Expires: 0", [("Expires", "0")]),
        ("Expires an hour ago", [("Expires", http_date(-3600))]),
        ("Age beyond the lifetime", FRESH + [("Age", "7200")]),
        ("Vary: *", FRESH + [("Vary", "*")]),
    ],
)  # fmt: skip
def not_repeated(t, _, fields):
    refuse(t, 404, fields)
    expect_recovered(t)


@table(
    "an error without a lifetime is requested again", rfc="9111 §4.2.2", larder_only=True,
    rows=[
        ("404 with nothing", 404, []),
        ("404 with Last-Modified", 404, [("Last-Modified", LAST_MODIFIED)]),
        ("404 with ETag", 404, [("ETag", '"none"')]),
        ("404 with public", 404, [("Cache-Control", "public")]),
        ("410 with nothing", 410, []),
        ("410 with Last-Modified", 410, [("Last-Modified", LAST_MODIFIED)]),
        ("451 with nothing", 451, []),
    ],
)  # fmt: skip
def without_lifetime(t, _, status, fields):
    refuse(t, status, fields)
    expect_recovered(t)


@table(
    "other errors are never stored", rfc="9111 §3", larder_only=True,
    rows=[400, 401, 402, 406, 407, 408, 409, 411, 413, 415, 418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 500, 501,
          502, 503, 504, 505, 507, 508, 511, 599],
)  # fmt: skip
def never_stored(t, status):
    t.upstream(Answer(status, FRESH, b"not now"))
    response = t.get()
    if response.status < 400:
        t.fail(f"{response}")
    t.upstream(asset(SIZE))
    expect_recovered(t)


@check("a cached error is repeated no longer than the origin allows", rfc="9111 §4.2",
       origin={"negativeCaching": {"maxSeconds": 60}})  # fmt: skip
def capped(t):
    refuse(t, 404, FRESH)
    expect_repeated(t, 404, ttl=lambda ttl: 50 <= ttl <= 60)


@check("a cached error is repeated for at most 5 minutes by default", rfc="9111 §4.2", larder_only=True)
def capped_by_default(t):
    refuse(t, 404, FRESH)
    expect_repeated(t, 404, ttl=lambda ttl: 290 <= ttl <= 300)


@check("a shorter lifetime applies", rfc="9111 §4.2.1", larder_only=True)
def shorter(t):
    refuse(t, 404, [("Cache-Control", "max-age=100"), ("Age", "50")])
    expect_repeated(t, 404, ttl=lambda ttl: 40 <= ttl <= 50)


@table("no error is repeated when negative caching is off", rfc="9111 §2", origin={"negativeCaching": False}, rows=KEPT)
def switched_off(t, status):
    refuse(t, status, FRESH)
    expect_recovered(t)


@check("an error of one path does not affect another", rfc="9111 §4")
def other_path(t):
    def handler(request, connection):
        (Answer(404, FRESH, b"no") if "missing" in request.target else asset(SIZE))(request, connection)

    t.upstream(handler)
    t.expect(t.get(path="missing.mp4"), 404)
    expect_old(t, t.get())
    t.expect(t.get(path="missing.mp4"), 404)


@check("an error does not permanently replace a stored asset", rfc="9111 §4.3.3")
def refused_then_back(t):
    t.upstream(asset(SIZE, cache_control="max-age=0"))
    expect_old(t, t.get())
    t.upstream(Answer(404, [("Cache-Control", "max-age=0")], b"gone for now"))
    t.expect(t.get(), 404)
    t.upstream(asset(SIZE, etag='"v2"', seed=1))
    expect_new(t, t.get())


@check("a cached error is removed when its asset is purged", rfc="9111 §4.4", larder_only=True)
def purged(t):
    refuse(t, 404, FRESH)
    expect_repeated(t, 404)
    response = t.api("POST", "/v1/purges", {"origin": t.label})
    t.expect(response, 200)
    expect_recovered(t)


@check("a purge of other assets keeps a cached error", rfc="9111 §4", larder_only=True)
def purged_others(t):
    refuse(t, 404, FRESH)
    for order in ({"prefix": f"/o/{t.label}/other/"}, {"keys": [f"/o/{t.label}/other"]}, {"patterns": ["/o/*/other"]}):
        t.expect(t.api("POST", "/v1/purges", order), 200)
        expect_repeated(t, 404)
    t.expect(t.api("POST", "/v1/purges", {"prefix": f"/o/{t.label}/"}), 200)
    expect_recovered(t)


@check("many readers of a cached error cause one request", rfc="9111 §4", larder_only=True)
def refused_together(t):
    release = t.event()

    def handler(request, connection):
        connection.wait(release)
        connection.answer(Answer(404, FRESH, b"no such film"))

    t.upstream(handler)
    readers = [t.spawn(t.get) for _ in range(5)]
    t.await_requests(1)
    release.set()
    for reader in readers:
        t.expect(reader(), 404)
    t.expect(t.get(), 404)
    t.expect_requests(1)


# Cookies and credentials


@check("Set-Cookie is not served and does not prevent storing", rfc="9111 §7.3", larder_only=True, states=BOTH)
def set_cookie(t):
    t.upstream(asset(SIZE, headers=[("Set-Cookie", "id=1; Path=/"), ("Set-Cookie", "b=2"), ("X-Kept", "yes")]))
    for _ in range(2):
        response = t.get()
        t.expect(response, 200, body=t.bytes(0, SIZE), headers={"Set-Cookie": None, "X-Kept": "yes"})
    t.expect_cache_status(response, hit=True)


@table("a reader's own fields do not reach the upstream", rfc="9111 §3.5", larder_only=True,
       rows=["Authorization", "Cookie", "Proxy-Authorization", "Referer", "X-Forwarded-For"])  # fmt: skip
def not_forwarded(t, name):
    t.upstream(asset(SIZE))
    expect_old(t, t.get(headers={name: "Basic c2VjcmV0OnNlY3JldA=="}))
    for request in t.requests:
        if "c2VjcmV0" in (request.get(name) or ""):
            t.fail(f"the upstream received {name}: {request.get(name)}")


@table(
    "a response to one reader's credentials is not served to another", rfc="9111 §3.5",
    rows=["max-age=3600", "max-age=3600, immutable", "no-store", "private, max-age=3600"],
)  # fmt: skip
def authorized(t, value):
    def handler(request, connection):
        seed = 1 if request.get("Authorization") else 0
        asset(SIZE, etag=f'"v{seed}"', seed=seed, cache_control=value)(request, connection)

    t.upstream(handler)
    t.expect(t.get(headers={"Authorization": "Basic c2VjcmV0OnNlY3JldA=="}), 200)
    expect_old(t, t.get())


@table(
    "a response to the origin's own credentials is stored", rfc="9111 §3.5",
    origin={"headers": {"Authorization": "Bearer the-origins-own-token"}},
    rows=["max-age=3600", "max-age=3600, public", "s-maxage=3600", "max-age=3600, must-revalidate"],
)  # fmt: skip
def own_credentials(t, value):
    def handler(request, connection):
        is_known = request.get("Authorization") == "Bearer the-origins-own-token"
        (asset(SIZE, cache_control=value) if is_known else Answer(401))(request, connection)

    t.upstream(handler)
    expect_old(t, t.get())
    t.own.requests.clear()
    response = t.get()
    expect_old(t, response)
    t.expect_cache_status(response, hit=True)
    t.expect_requests(0)


# Vary


def varying(*names, vary=None, control="max-age=3600", without=0):
    """An upstream with an asset that depends on these request fields; `without`: the seed if none is present."""
    seeds = {}

    def handler(request, connection):
        values = tuple(request.get(name) for name in names)
        seed = seeds.setdefault(values, len(seeds) + 1) if any(values) else without
        fields = [("Vary", line) for line in ([", ".join(names)] if vary is None else vary)]
        fields.append(("X-Seen", ascii(values)))
        asset(SIZE, etag=f'"s{seed}"', seed=seed, cache_control=control, headers=fields)(request, connection)

    handler.seeds = seeds
    return handler


def expect_seen(t, response, *values):
    """Expects the variant that the upstream selects for these values."""
    t.expect(response, (200, 206), headers={"X-Seen": ascii(values)})


def expect_stored_variant(t, headers, *values):
    t.own.requests.clear()
    response = t.get(headers=headers)
    expect_seen(t, response, *values)
    t.expect_cache_status(response, hit=True)
    if t.is_larder:
        t.expect_requests(0)


@table("a response with Vary: * is not stored", rfc="9111 §4.1",
       rows=[("*", ["*"]), ("*, Accept", ["*, Accept"]), ("Accept, *", ["Accept, *"]),
             ("Accept and *", ["Accept", "*"])])  # fmt: skip
def star(t, _, vary):
    t.upstream(asset(SIZE, headers=[("Vary", line) for line in vary]))
    expect_old(t, t.get())
    change(t)
    expect_new(t, t.get())


@check("readers with different fields get their own variants", rfc="9111 §4.1")
def variants(t):
    t.upstream(varying("Accept-Language"))
    for language in ("en", "de", "en", "mi", "de"):
        expect_seen(t, t.get(headers={"Accept-Language": language}), language)
    expect_seen(t, t.get(), None)
    for language in ("en", "de", "mi"):
        expect_stored_variant(t, {"Accept-Language": language}, language)
    expect_stored_variant(t, {}, None)


@table("ranges come from the reader's own variant", rfc="9111 §4.1", rows=["one after the other", "after the whole"])
def variant_ranges(t, kind):
    handler = varying("X-Quality")
    t.upstream(handler)
    if kind == "after the whole":
        t.get(), t.get(headers={"X-Quality": "low"})
    for quality in ("low", "high", None, "low", "high"):
        headers = {"X-Quality": quality} if quality else {}
        response = t.get(headers=headers, range="bytes=5-9")
        expect_seen(t, response, quality)
        t.expect(response, 206, body=t.bytes(5, 10, seed=handler.seeds.get((quality,), 0)))


@check("a condition is evaluated against the reader's own variant", rfc="9111 §4.1, §4.3.2")
def variant_conditions(t):
    handler = varying("X-One")
    t.upstream(handler)
    tags = {value: t.get(headers={"X-One": value}, range="bytes=0-99").get("ETag") for value in ("a", "b")}
    first, second = "bytes=0-9", "bytes=500-509"
    for value, other in (("a", "b"), ("b", "a")):
        seed, own = handler.seeds[(value,)], [("X-One", value)]
        t.expect(t.get(headers=own + [("If-None-Match", tags[value])], range=first), 304)
        whole = t.get(headers=own + [("If-Range", tags[other])], range=first)
        t.expect(whole, 200, body=t.bytes(0, SIZE, seed=seed), headers={"ETag": tags[value]})
        for condition in (("If-None-Match", tags[other]), ("If-Range", tags[value])):
            response = t.get(headers=own + [condition], range=second)
            t.expect(response, 206, body=t.bytes(500, 510, seed=seed), headers={"ETag": tags[value]})


@table(
    "different field values are different variants", rfc="9111 §4.1",
    rows=[
        ("value", ["X-One"], {"X-One": "a"}, {"X-One": "b"}),
        ("case of the value", ["X-One"], {"X-One": "a"}, {"X-One": "A"}),
        ("present and absent", ["X-One"], {"X-One": "a"}, {}),
        ("absent and present", ["X-One"], {}, {"X-One": "a"}),
        ("the second of two", ["X-One", "X-Two"], {"X-One": "a", "X-Two": "a"}, {"X-One": "a", "X-Two": "b"}),
        ("the first of two", ["X-One", "X-Two"], {"X-One": "a", "X-Two": "a"}, {"X-One": "b", "X-Two": "a"}),
        ("swapped", ["X-One", "X-Two"], {"X-One": "a", "X-Two": "b"}, {"X-One": "b", "X-Two": "a"}),
        ("one of two absent", ["X-One", "X-Two"], {"X-One": "a"}, {"X-Two": "a"}),
        ("a member more", ["Accept-Language"], {"Accept-Language": "en"}, {"Accept-Language": "en, de"}),
        ("User-Agent", ["User-Agent"], {"User-Agent": "one/1"}, {"User-Agent": "two/2"}),
        ("Accept", ["Accept"], {"Accept": "video/mp4"}, {"Accept": "video/webm"}),
    ],
)  # fmt: skip
def different(t, _, names, one, other):
    t.upstream(varying(*names))
    for headers in (one, other, one):
        response = t.get(headers=headers)
        wanted = tuple(headers.get(name) for name in names)
        if t.is_larder or "User-Agent" not in names:
            expect_seen(t, response, *wanted)


@table(
    "equivalent forms of Vary", rfc="9111 §4.1, 9110 §12.5.5, §5.6.1",
    rows=[
        ("in small letters", ["accept-language, x-one"]),
        ("in capitals", ["ACCEPT-LANGUAGE, X-ONE"]),
        ("without blanks", ["Accept-Language,X-One"]),
        ("with empty members", [", Accept-Language ,, X-One,"]),
        ("in two fields", ["Accept-Language", "X-One"]),
        ("twice the same", ["Accept-Language, X-One, accept-language"]),
        ("with Accept-Encoding", ["Accept-Encoding, Accept-Language, X-One"]),
    ],
)  # fmt: skip
def spelling(t, _, vary):
    t.upstream(varying("Accept-Language", "X-One", vary=vary))
    for one, language in [("a", "en"), ("a", "de"), ("b", "en"), ("a", "en")]:
        expect_seen(t, t.get(headers={"X-One": one, "Accept-Language": language}), language, one)
    expect_stored_variant(t, {"X-One": "b", "Accept-Language": "en"}, "en", "b")


@table(
    "values that differ only in white space are equal", rfc="9111 §4.1", larder_only=True,
    rows=[
        ("round a comma", [("Accept-Language", "en,de")], [("Accept-Language", "en ,  de")]),
        ("at the ends", [("Accept-Language", "en")], [("Accept-Language", "   en  ")]),
        ("two fields and one", [("Accept-Language", "en"), ("Accept-Language", "de")], [("Accept-Language", "en, de")]),
        ("the field's name", [("accept-language", "en")], [("ACCEPT-LANGUAGE", "en")]),
    ],
)  # fmt: skip
def normalised(t, _, one, other):
    t.upstream(varying("Accept-Language"))
    first = t.get(headers=one)
    t.own.requests.clear()
    second = t.get(headers=other)
    t.expect(second, 200, body=first.body)
    t.expect_cache_status(second, hit=True)
    t.expect_requests(0)


@table(
    "a field outside Vary creates no variant", rfc="9111 §4.1", larder_only=True,
    rows=["Accept-Language", "X-Two", "User-Agent", "Accept", "Referer"],
)  # fmt: skip
def unnamed(t, name):
    t.upstream(varying("X-One"))
    t.get()
    expect_stored_variant(t, {name: "whatever"}, None)


@table("identity is requested for any Accept-Encoding of the reader", rfc="9110 §12.5.3", larder_only=True,
       rows=["gzip", "gzip, br", "identity", "*", "identity;q=0, gzip"])  # fmt: skip
def encoding(t, value):
    t.upstream(asset(SIZE, headers={"Vary": "Accept-Encoding"}))
    expect_old(t, t.get(headers={"Accept-Encoding": value}))
    for request in t.requests:
        if request.get("Accept-Encoding") != "identity":
            t.fail(f"the upstream received Accept-Encoding: {request.get('Accept-Encoding')}")
    t.own.requests.clear()
    for other in ({"Accept-Encoding": "br"}, {}):
        response = t.get(headers=other)
        expect_old(t, response)
        t.expect_cache_status(response, hit=True)
    t.expect_requests(0)


@table("fields that never reach the upstream create no variant", rfc="9111 §4.1", larder_only=True,
       rows=["Authorization", "Cookie", "Range"])  # fmt: skip
def neutral(t, name):
    t.upstream(asset(SIZE, headers={"Vary": name}))
    expect_old(t, t.get())
    t.own.requests.clear()
    value = {"Authorization": "Basic YTpi", "Cookie": "a=b", "Range": "bytes=5-9"}[name]
    response = t.get(headers={name: value})
    t.expect(response, (200, 206))
    t.expect_cache_status(response, hit=True)
    t.expect_requests(0)


@check("a new variant is a vary-miss", rfc="9211 §2.2", larder_only=True)
def vary_miss(t):
    t.upstream(varying("X-One"))
    t.get()
    response = t.get(headers={"X-One": "a"})
    expect_seen(t, response, "a")
    t.expect_cache_status(response, hit=False, fwd="vary-miss", stored=True)


@check("the origin can exclude a field from variant selection", rfc="9111 §4.1", origin={"ignoreVary": ["x-one"]})
def ignored(t):
    t.upstream(varying("X-One", "X-Two"))
    t.get()
    expect_stored_variant(t, {"X-One": "a"}, None, None)
    expect_seen(t, t.get(headers={"X-One": "a", "X-Two": "b"}), None, "b")


@check("Vary: Origin creates no variants", rfc="9111 §4.1", larder_only=True)
def origin_is_no_variant(t):
    t.upstream(varying("Origin"))
    t.get()
    expect_stored_variant(t, {"Origin": "http://one.example"}, None)


@check("a variant is revalidated with its own validator", rfc="9111 §4.3.1")
def variant_confirmed(t):
    t.upstream(varying("X-One", control="max-age=0"))
    for value in ("a", "b"):
        t.get(headers={"X-One": value})
    for value in ("a", "b", None):
        expect_seen(t, t.get(headers={"X-One": value} if value else {}), value)


@check("concurrent readers of several variants", rfc="9111 §4.1")
def variants_together(t):
    t.upstream(varying("X-One"))
    values = ["a", "b", "c", None] * 3
    responses = t.together(*[lambda value=value: t.get(headers={"X-One": value} if value else {}) for value in values])
    for value, response in zip(values, responses):
        expect_seen(t, response, value)


@table("all parts of a long read come from one variant", rfc="9111 §4.1", rows=["whole", "range", "together"])
def long_variant(t, kind):
    size = 3_000_000

    def handler(request, connection):
        seed = {"a": 1, "b": 2}.get(request.get("X-One"), 0)
        asset(size, etag=f'"s{seed}"', seed=seed, headers={"Vary": "X-One"})(request, connection)

    t.upstream(handler)
    seeds = {"a": 1, "b": 2}
    if kind == "together":
        readers = [lambda value=value: t.get(headers={"X-One": value}) for value in ("a", "b", "a", "b")]
        for response, seed in zip(t.together(*readers), (1, 2, 1, 2)):
            t.expect(response, 200, body=t.bytes(0, size, seed=seed))
        return
    for value, seed in seeds.items():
        options = {"range": "bytes=100000-"} if kind == "range" else {}
        response = t.get(headers={"X-One": value}, **options)
        t.expect(response, 206 if options else 200, body=t.bytes(100_000 if options else 0, size, seed=seed))
    t.expect(t.get(), 200, body=t.bytes(0, size))


@check("Vary is passed on", rfc="9110 §12.5.5", states=BOTH)
def passed_on(t):
    t.upstream(asset(SIZE, headers={"Vary": "Accept-Language, X-One"}))
    t.expect(t.get(), 200, headers={"Vary": "Accept-Language, X-One"})


@check("an asset that starts to vary", rfc="9111 §4.1")
def begins_to_vary(t):
    t.upstream(asset(SIZE, cache_control="max-age=0"))
    expect_old(t, t.get(headers={"X-One": "a"}))
    t.upstream(varying("X-One"))
    expect_seen(t, t.get(headers={"X-One": "a"}), "a")
    expect_seen(t, t.get(headers={"X-One": "b"}), "b")
    expect_seen(t, t.get(headers={"X-One": "a"}), "a")


@check("a 203 stays a 203, also from the store and after a revalidation", rfc="9110 §15.3.4", larder_only=True)
def transformed(t):
    def handler(request, connection):
        answer = asset(3000, cache_control="max-age=3600", ranges=False).answer(request)
        answer.status = 203 if answer.status == 200 else answer.status
        connection.answer(answer)

    t.upstream(handler)
    for is_hit in (False, True):
        response = t.get()
        t.expect(response, 203, body=t.bytes(0, 3000))
        t.expect_cache_status(response, hit=is_hit)
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))
    t.api("POST", "/v1/purges", {"prefix": t.mount + "/", "soft": True})
    t.expect(t.get(), 203, body=t.bytes(0, 3000))
    t.expect_requests(2)
