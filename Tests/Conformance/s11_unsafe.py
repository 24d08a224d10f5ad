"""Unsafe requests and invalidation: RFC 9110 §9.2.1 (safe methods), §15.5.6 (405); RFC 9111 §4.4 (invalidation).

A mounted origin is read-only. Only Larder's own API removes stored responses or marks them stale.
"""

from suite import Answer, asset, check, http_date, table

SECTION = (11, "Unsafe requests, invalidation")
SIZE = 1000


def read(t, **options):
    """Stores the whole asset; its id."""
    t.upstream(asset(SIZE, **options))
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.own.requests.clear()
    return response.get("Larder-Asset-Id")


def purge(t, **order):
    response = t.api("POST", "/v1/purges", order)
    t.expect(response, 200)
    return response.document


def expect_hit(t):
    before = len(t.requests)
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=True)
    t.expect_requests(before)


def expect_confirmed(t):
    """Expects one conditional request and no body bytes."""
    t.own.requests.clear()
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=False, fwd="stale", fwd_status=304)
    t.expect_requests(1)
    if t.requests[0].get("If-None-Match") != '"v1"':
        t.fail(f"the upstream received {t.requests[0].headers}")


@table(
    "an unsafe request is not forwarded and invalidates nothing", rfc="9110 §9.2.1, 9111 §4.4", larder_only=True,
    rows=["POST", "PUT", "DELETE", "PATCH", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK"],
)  # fmt: skip
def unsafe(t, method):
    read(t)
    is_known = method in ("POST", "PUT", "DELETE", "PATCH")
    t.expect(t.get(method=method, headers={"Content-Length": "0"}), 405 if is_known else 501)
    t.expect_requests(0)
    expect_hit(t)


def with_body(t, method):
    host = "{}:{}".format(*t.peer.address)
    return f"{method} {t.target()} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello".encode()


@table("an unsafe request with a body is not forwarded", rfc="9110 §9.2.1", larder_only=True,
       rows=["POST", "PUT", "PATCH"])  # fmt: skip
def unsafe_with_body(t, method):
    read(t)
    t.expect(t.raw(with_body(t, method), method), 405)
    t.expect_requests(0)
    expect_hit(t)


@check("an unsafe request for a missing asset sends no upstream request", rfc="9110 §9.2.1", larder_only=True)
def unsafe_cold(t):
    t.upstream(asset(SIZE))
    t.expect(t.get(method="POST", headers={"Content-Length": "0"}), 405)
    t.expect_requests(0)


@check("the body of a safe request is not forwarded", rfc="9110 §9.3.1", larder_only=True)
def get_with_body(t):
    t.upstream(asset(SIZE))
    response = t.raw(with_body(t, "GET"))
    t.expect(response, (200, 400, 413))
    for request in t.requests:
        if request.body or request.get("Content-Length"):
            t.fail("the body reached the upstream")


# Soft purge: marked stale


@table("a soft purge requires a revalidation before the next use", rfc="9111 §4.3, §4.4", larder_only=True,
       rows=["by origin", "by prefix", "by id", "by tag"])  # fmt: skip
def soft(t, kind):
    asset_id = read(t)
    expect_hit(t)
    soften(t, kind, asset_id)
    expect_confirmed(t)
    expect_hit(t)


def soften(t, kind, asset_id):
    if kind == "by id":
        t.expect(t.api("DELETE", f"/v1/assets/{asset_id}?soft=true"), 204)
        return
    if kind == "by tag":
        t.expect(t.api("PATCH", f"/v1/assets/{asset_id}", {"tags": [t.label]}), 200)
    orders = {"by origin": {"origin": t.label}, "by prefix": {"prefix": f"/o/{t.label}/"}, "by tag": {"tag": t.label}}
    report = purge(t, soft=True, **orders[kind])
    if report["assets"] != 1 or report["freedBytes"] != 0:
        t.fail(f"the report: {report}")


@check("a soft purge removes no bytes", rfc="9111 §4.3", larder_only=True)
def soft_keeps(t):
    asset_id = read(t)
    purge(t, origin=t.label, soft=True)
    document = t.api("GET", f"/v1/assets/{asset_id}").document
    if document["cachedBytes"] != SIZE:
        t.fail(f"cachedBytes: {document['cachedBytes']}")


@check("a soft purge, and the asset has changed", rfc="9111 §4.3.3", larder_only=True)
def soft_changed(t):
    read(t)
    purge(t, origin=t.label, soft=True)
    t.upstream(asset(SIZE, etag='"v2"', seed=1))
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10, seed=1))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE, seed=1))


@check("a soft purge, and the asset is gone", rfc="9111 §4.3.3", larder_only=True)
def soft_gone(t):
    read(t)
    purge(t, origin=t.label, soft=True)
    t.upstream(Answer(404, body=b"gone"))
    t.expect(t.get(), 404)


@table("a soft purge, and the upstream fails", rfc="9111 §4.2.4, 5861 §4", larder_only=True,
       rows=[("stale-if-error=3600", "max-age=3600, stale-if-error=3600", True), ("nothing", "max-age=3600", False),
             ("must-revalidate", "max-age=3600, must-revalidate, stale-if-error=3600", False)])  # fmt: skip
def soft_failing(t, _, control, is_used):
    read(t, cache_control=control)
    purge(t, origin=t.label, soft=True)
    t.upstream(Answer(503, body=b"out of order"))
    if is_used:
        response = t.get()
        t.expect(response, 200, body=t.bytes(0, SIZE))
        t.expect_cache_status(response, hit=False, fwd="stale", detail="stale")
    else:
        t.expect(t.get(), 503)


@check("a soft purge with an origin's own ttlSeconds", rfc="9111 §4.4", origin={"freshness": {"ttlSeconds": 3600}})
def soft_with_ttl(t):
    read(t)
    purge(t, origin=t.label, soft=True)
    expect_confirmed(t)
    expect_hit(t)


@check("a soft purge of a variant", rfc="9111 §4.4", larder_only=True)
def soft_variants(t):
    t.upstream(asset(SIZE, headers={"Vary": "X-One"}))
    values = [{}, {"X-One": "a"}, {"X-One": "b"}]
    for headers in values:
        t.expect(t.get(headers=headers), 200, body=t.bytes(0, SIZE))
    purge(t, origin=t.label, soft=True)
    t.upstream(asset(SIZE, etag='"v2"', seed=1, headers={"Vary": "X-One"}))
    for headers in values:
        t.expect(t.get(headers=headers), 200, body=t.bytes(0, SIZE, seed=1))


# Hard purge: removed


@table("a purge causes a new fetch", rfc="9111 §4.4", larder_only=True, rows=["by origin", "by prefix", "by id"])
def hard(t, kind):
    asset_id = read(t)
    if kind == "by id":
        t.expect(t.api("DELETE", f"/v1/assets/{asset_id}"), 204)
    else:
        purge(t, **({"origin": t.label} if kind == "by origin" else {"prefix": f"/o/{t.label}/"}))
    t.upstream(asset(SIZE, seed=1))
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE, seed=1))
    t.expect_cache_status(response, hit=False, fwd="miss")
    for request in t.requests:
        if request.get("If-None-Match") or request.get("If-Range"):
            t.fail(f"the upstream received {request.headers}")


@table("a purge of another asset has no effect", rfc="9111 §4.4", larder_only=True, rows=[False, True])
def elsewhere(t, soft):
    read(t)
    purge(t, prefix=f"/o/{t.label}/another/", soft=soft)
    expect_hit(t)


@table("a dry run changes nothing", rfc="9111 §4.4", larder_only=True, rows=[False, True])
def dry(t, soft):
    read(t)
    report = purge(t, origin=t.label, soft=soft, dryRun=True)
    if report["assets"] != 1:
        t.fail(f"the report: {report}")
    expect_hit(t)


@table("a purge removes a cached error", rfc="9111 §4.4", larder_only=True, rows=["soft", "hard"])
def refusal(t, kind):
    t.upstream(Answer(404, [("Cache-Control", "max-age=3600"), ("Date", http_date())], b"no"))
    t.expect(t.get(), 404)
    purge(t, origin=t.label, soft=kind == "soft")
    t.upstream(asset(SIZE))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
