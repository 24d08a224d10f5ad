"""Request directives: RFC 9111 §5.2.1, §5.4 (Pragma); RFC 5861 §4.

A cache may ignore these directives (§5.2.1). Players send them by default, so Larder ignores them unless the origin
setting `requestDirectives` enables them. Peers are not tested.
"""

from suite import Answer, asset, check, http_date, table

SECTION = (7, "Request directives")
SIZE = 1000
OBEYING = {"requestDirectives": True}


def serve(t, seed=0, control="max-age=3600", age=None, **changes):
    """An upstream with this generation of the asset."""
    headers = [("Cache-Control", control)] + ([("Age", str(age))] if age is not None else [])
    t.upstream(asset(SIZE, etag=f'"v{seed}"', seed=seed, cache_control=None, headers=headers, **changes))


def store(t, control="max-age=3600", age=None):
    """Stores the whole asset; then the upstream serves another generation."""
    serve(t, control=control, age=age)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.own.requests.clear()
    serve(t, seed=1)


def fields(*values):
    return [("Cache-Control", value) for value in values]


def expect_from_cache(t, headers, **parameters):
    response = t.get(headers=headers)
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=True, fwd=None, **parameters)
    t.expect_requests(0)


def expect_from_upstream(t, headers, **parameters):
    response = t.get(headers=headers)
    t.expect(response, 200, body=t.bytes(0, SIZE, seed=1))
    t.expect_cache_status(response, hit=False, **parameters)


DIRECTIVES = [
    "no-cache", "no-store", "max-age=0", "max-age=1", "min-fresh=999999", "no-transform", "only-if-cached",
    "max-stale", "no-cache, no-store, max-age=0", "NO-CACHE", "foo=bar",
]  # fmt: skip


@table(
    "by default a fresh response ignores request directives", rfc="9111 §5.2.1", larder_only=True, rows=DIRECTIVES,
)  # fmt: skip
def ignored_when_fresh(t, value):
    store(t, age=100)
    expect_from_cache(t, fields(value))


@table(
    "by default a fetch of missing or stale bytes ignores request directives", rfc="9111 §5.2.1", larder_only=True,
    rows=["only-if-cached", "max-stale", "max-stale=999999", "no-store", "stale-if-error=999999"],
)  # fmt: skip
def ignored_when_missing(t, value):
    serve(t, control="max-age=60", age=100)
    t.expect(t.get(headers=fields(value)), 200, body=t.bytes(0, SIZE))
    serve(t, seed=1)
    expect_from_upstream(t, fields(value), fwd="stale")


@check("by default a request's no-store does not prevent storing", rfc="9111 §5.2.1.5",
       larder_only=True)  # fmt: skip
def no_store_ignored(t):
    serve(t)
    t.expect(t.get(headers=fields("no-store")), 200, body=t.bytes(0, SIZE))
    t.own.requests.clear()
    expect_from_cache(t, {})


@table("by default Pragma is ignored", rfc="9111 §5.4", larder_only=True, rows=["no-cache", "No-Cache", "foo"])
def pragma_ignored(t, value):
    store(t)
    expect_from_cache(t, {"Pragma": value})


@table(
    "a fresh response is served", rfc="9111 §5.2.1", origin=OBEYING,
    rows=[
        "max-age=3600", "max-age=200", "MAX-AGE=200", 'max-age="200"', "max-age=99999999999999999999", "min-fresh=3000",
        "min-fresh=0", 'min-fresh="3000"', "max-stale", "max-stale=0", "max-stale=100", "only-if-cached", "no-store",
        "no-transform", "foo", "foo=no-cache", 'foo="a, no-cache"', "max-age=200, min-fresh=3000",
        "only-if-cached, max-age=200", "must-revalidate", "private", "s-maxage=0", "", "no-cachee",
        "max-age=200, max-age=0",
    ],
)  # fmt: skip
def fresh_enough(t, value):
    store(t, age=100)
    expect_from_cache(t, fields(value))


@table(
    "a fresh response is revalidated first", rfc="9111 §5.2.1.1, §5.2.1.3, §5.2.1.4", origin=OBEYING,
    rows=[
        "no-cache", "NO-CACHE", "no-cache=foo", "max-age=0", "Max-Age=0", 'max-age="0"', "max-age=50", "min-fresh=3550",
        "min-fresh=99999999999999999999", "max-age=0, max-age=3600", "max-stale, no-cache", "max-age=50, max-stale",
        "min-fresh=0, max-age=10", "max-age=3600, min-fresh=3590", "max-age=abc", "max-age=-1", "max-age",
        "foo, no-cache", "no-cache, foo",
    ],
)  # fmt: skip
def not_fresh_enough(t, value):
    store(t, age=100)
    expect_from_upstream(t, fields(value))


@table("an immutable response is revalidated if the request requires it", rfc="8246 §2, 9111 §5.2.1.4", origin=OBEYING,
       rows=["no-cache"])  # fmt: skip
def immutable(t, value):
    store(t, "max-age=3600, immutable")
    expect_from_upstream(t, fields(value))


@check("several Cache-Control fields of a request form one list", rfc="9110 §5.3", origin=OBEYING)
def several(t):
    store(t, age=100)
    expect_from_upstream(t, fields("max-age=3600", "no-cache"))


@table("a revalidation required by the request is one conditional request", rfc="9111 §4.3, 9211 §2.2",
       origin=OBEYING, rows=["no-cache", "max-age=0", "min-fresh=7200"])  # fmt: skip
def confirmed(t, value):
    serve(t, age=100)
    t.get()
    t.own.requests.clear()
    response = t.get(headers=fields(value))
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=False, fwd="request", fwd_status=304)
    t.expect_requests(1)
    if t.requests[0].get("If-None-Match") != '"v0"':
        t.fail(f"the upstream received {t.requests[0].headers}")


@check("a revalidated response is fresh enough for max-age=0", rfc="9111 §5.2.1.1", origin=OBEYING)
def confirmed_is_enough(t):
    serve(t)
    for _ in range(3):
        t.expect(t.get(headers=fields("max-age=0")), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(headers=fields("no-cache"), range="bytes=5-9"), 206, body=t.bytes(5, 10))


@table("a range is revalidated like the whole", rfc="9111 §5.2.1.4", origin=OBEYING, rows=["no-cache", "max-age=0"])
def range_confirmed(t, value):
    store(t, age=100)
    t.expect(t.get(headers=fields(value), range="bytes=5-9"), 206, body=t.bytes(5, 10, seed=1))


@table(
    "a request may accept a stale response", rfc="9111 §5.2.1.2", origin=OBEYING,
    rows=["max-stale", "MAX-STALE", "max-stale=3600", 'max-stale="3600"', "max-stale=99999999999999999999",
          "max-stale, only-if-cached", "max-age=3600, max-stale"],
)  # fmt: skip
def stale_accepted(t, value):
    store(t, "max-age=600", age=1000)
    expect_from_cache(t, fields(value), ttl=lambda ttl: ttl is not None and -410 <= ttl <= -400)


@table(
    "no response is staler than the request accepts", rfc="9111 §5.2.1.2", origin=OBEYING,
    rows=["max-stale=0", "max-stale=100", "max-stale=abc", "max-stale=-1", "max-stale=3600, min-fresh=0",
          "max-stale, max-age=700", "foo"],
)  # fmt: skip
def too_stale(t, value):
    store(t, "max-age=600", age=1000)
    expect_from_upstream(t, fields(value), fwd="stale")


@table(
    "a response that forbids stale use is never served stale", rfc="9111 §4.2.4, §5.2.2.2, §5.2.2.8, §5.2.2.10",
    origin=OBEYING,
    rows=["max-age=600, must-revalidate", "max-age=600, proxy-revalidate", "s-maxage=600", "max-age=600, no-cache"],
)  # fmt: skip
def never_stale(t, control):
    store(t, control, age=1000)
    expect_from_upstream(t, fields("max-stale"))


# only-if-cached


def expect_not_cached(t, response):
    t.expect(response, 504)
    if b'"notCached"' not in response.body:
        t.fail(f"{response}: the code should be notCached: {response.body[:200]!r}")


@table("only-if-cached of a missing asset is a 504", rfc="9111 §5.2.1.7", origin=OBEYING,
       rows=["only-if-cached", "Only-If-Cached", "only-if-cached, max-stale", "max-age=9, only-if-cached"])  # fmt: skip
def only_if_cached(t, value):
    serve(t)
    expect_not_cached(t, t.get(headers=fields(value)))
    t.expect(t.head(headers=fields(value)), 504)
    expect_not_cached(t, t.get(headers=fields(value), range="bytes=0-9"))
    t.expect_requests(0)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("only-if-cached of a fresh asset", rfc="9111 §5.2.1.7", origin=OBEYING)
def only_if_cached_fresh(t):
    store(t)
    expect_from_cache(t, fields("only-if-cached"))
    t.expect(t.get(headers=fields("only-if-cached"), range="bytes=5-9"), 206, body=t.bytes(5, 10))
    t.expect(t.head(headers=fields("only-if-cached")), 200)
    t.expect(t.get(headers={"Cache-Control": "only-if-cached", "If-None-Match": '"v0"'}), 304)
    t.expect_requests(0)


@table("only-if-cached of an asset that needs revalidation is a 504", rfc="9111 §5.2.1.7", origin=OBEYING,
       rows=["only-if-cached", "only-if-cached, max-stale=10", "only-if-cached, no-cache"])  # fmt: skip
def only_if_cached_stale(t, value):
    store(t, "max-age=600", age=1000)
    expect_not_cached(t, t.get(headers=fields(value)))
    t.expect_requests(0)


@check("only-if-cached of a range", rfc="9111 §5.2.1.7", origin=OBEYING)
def only_if_cached_range(t):
    size = 3_000_000
    t.upstream(asset(size))
    t.expect(t.get(range="bytes=0-9"), 206, body=t.bytes(0, 10))
    t.own.requests.clear()
    headers = fields("only-if-cached")
    t.expect(t.get(headers=headers, range="bytes=2-5"), 206, body=t.bytes(2, 6))
    expect_not_cached(t, t.get(headers=headers, range="bytes=2000000-2000009"))
    expect_not_cached(t, t.get(headers=headers))
    t.expect(t.get(headers=headers, range="bytes=3000000-"), 416)
    t.expect_requests(0)


# no-store


@check("a request with no-store stores nothing", rfc="9111 §5.2.1.5", origin=OBEYING)
def no_store(t):
    serve(t)
    t.expect(t.get(headers=fields("no-store")), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(headers=fields("no-store"), range="bytes=5-9"), 206, body=t.bytes(5, 10))
    serve(t, seed=1)
    expect_from_upstream(t, {}, fwd="miss")


@check("a request with no-store removes nothing", rfc="9111 §5.2.1.5", origin=OBEYING)
def no_store_keeps(t):
    store(t)
    t.expect(t.get(headers=fields("no-store, no-cache")), 200, body=t.bytes(0, SIZE, seed=1))
    t.own.requests.clear()
    response = t.get(headers=fields("no-store"))
    t.expect(response, 200)
    if response.body not in (t.bytes(0, SIZE), t.bytes(0, SIZE, seed=1)):
        t.fail(f"{response}: WRONG BYTES")


@check("Cache-Status says that nothing was stored", rfc="9211 §2.6", origin=OBEYING)
def no_store_status(t):
    serve(t)
    response = t.get(headers=fields("no-store"))
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=False, stored=None, fwd=lambda fwd: fwd in ("bypass", "miss", "request"))


# Pragma


@table("Pragma: no-cache applies without Cache-Control", rfc="9111 §5.4", origin=OBEYING,
       rows=["no-cache", "NO-CACHE", "foo, no-cache"])  # fmt: skip
def pragma(t, value):
    store(t)
    expect_from_upstream(t, {"Pragma": value})


@table(
    "Pragma is ignored", rfc="9111 §5.4", origin=OBEYING,
    rows=[
        ("beside Cache-Control: max-age=3600", {"Pragma": "no-cache", "Cache-Control": "max-age=3600"}),
        ("beside an unknown directive", {"Pragma": "no-cache", "Cache-Control": "foo"}),
        ("foo", {"Pragma": "foo"}),
        ("no-store", {"Pragma": "no-store"}),
    ],
)  # fmt: skip
def pragma_beside(t, _, headers):
    store(t)
    expect_from_cache(t, headers)


# When the upstream fails


@check("a request's stale-if-error is obeyed", rfc="5861 §4", origin=OBEYING)
def stale_if_error(t):
    store(t, "max-age=600", age=1000)
    t.upstream(Answer(503, body=b"out of order"))
    t.expect(t.get(headers=fields("stale-if-error=3600")), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(headers=fields("stale-if-error=100")), (502, 503))
    t.expect(t.get(), (502, 503))


@check("no-cache gets no stale response when the upstream fails", rfc="9111 §5.2.1.4", origin=OBEYING)
def no_cache_and_failure(t):
    store(t, "max-age=600, stale-if-error=36000", age=1000)
    t.upstream(Answer(503, body=b"out of order"))
    t.expect(t.get(headers=fields("no-cache")), (502, 503))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table("the directives do not affect the next request on the connection", rfc="9112 §9.3", origin=OBEYING,
       rows=["no-cache", "only-if-cached", "no-store"])  # fmt: skip
def one_connection(t, value):
    serve(t, age=10)
    t.get()
    t.own.requests.clear()
    with t.connect() as connection:
        connection.request("GET", t.target(), fields(value))
        t.expect(connection.response(asked=value), 200, body=t.bytes(0, SIZE))
        before = len(t.requests)
        connection.request("GET", t.target())
        response = connection.response(asked=f"after {value}")
        t.expect(response, 200, body=t.bytes(0, SIZE))
        t.expect_cache_status(response, hit=True)
        t.expect_requests(before)


@check("a cached error is requested again if the request requires it", rfc="9111 §5.2.1.4, §4", origin=OBEYING)
def refusal(t):
    t.upstream(Answer(404, [("Cache-Control", "max-age=3600"), ("Date", http_date())], b"no such film"))
    t.expect(t.get(), 404)
    serve(t)
    t.expect(t.get(), 404)
    t.expect(t.get(headers=fields("only-if-cached")), 404)
    t.expect(t.get(headers=fields("max-age=3600")), 404)
    t.expect(t.get(headers=fields("no-cache")), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
