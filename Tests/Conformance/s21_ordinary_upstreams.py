"""Ordinary upstreams: no strong validator, several nodes, dynamic servers. If one plain transfer could deliver the
response, Larder delivers it; each check counts the upstream requests (RFC 9111 §4.3, RFC 9112 §6.3, RFC 9213)."""

import dataclasses
from urllib.parse import quote

from suite import Answer, asset, check, http_date, table

SECTION = (21, "Ordinary upstreams: requests, validators, nodes, probes")
SIZE = 3_000_000
SMALL = 5000
JOB_WAIT = [("Prefer", "wait=15")]


def weak(size=SIZE, **options):
    return asset(size, **{"etag": 'W/"w"', "last_modified": None, "cache_control": None, **options})


def bare(size=SIZE, **options):
    return asset(size, **{"etag": None, "last_modified": None, "cache_control": None, **options})


def unconditional(whole):
    """Ignores conditions, as many dynamic servers do."""

    def handler(request, connection):
        whole.is_known = lambda request: False
        whole(request, connection)

    return handler


def recent(size=SIZE, **options):
    return asset(size, **{"etag": None, "last_modified": http_date(), "cache_control": None, **options})


UPSTREAMS = [
    (f"{name}, {'ranges' if ranges else 'no ranges'}", make, ranges)
    for name, make in (("a weak tag", weak), ("no validators", bare), ("a recent date", recent))
    for ranges in (True, False)
]


def probe(t, **query):
    t.target()
    fields = {"origin": t.label, "path": "media.mp4", **query}
    text = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in fields.items() if value is not None)
    response = t.api("GET", f"/v1/probe?{text}")
    if response.status != 200:
        t.fail(f"probe: {response}: {response.body[:200]}")
    return response.document


def job(t, state="succeeded", path="media.mp4"):
    t.target()
    response = t.api("POST", "/v1/jobs", {"items": [{"origin": t.label, "path": path}]}, JOB_WAIT)
    if response.document["state"] != state:
        t.fail(f"job: {response.document['state']}, expected {state}: {response.document['error']}")
    return response.document


def stored(t, count=1):
    """The assets of the origin, when this many are listed: a list can lack the latest ones while jobs run."""
    def listed():
        found = t.api("GET", f"/v1/assets?origin={t.label}").document["items"]
        return found if len(found) >= count else None

    return t.eventually(listed, f"{count} assets in the list")


def asset_of(t, asset_id):
    return t.api("GET", f"/v1/assets/{asset_id}").document


# Lengths

@table("the framing of a GET defines the length", rfc="9112 §6.3", larder_only=True, rows=[38, SMALL + 1, None])
def head_length(t, announced):
    def handler(request, connection):
        if request.method == "HEAD":
            fields = [("ETag", '"v1"'), ("Cache-Control", "max-age=3600"), ("Content-Type", "video/mp4")]
            extra = [("Content-Length", str(announced))] if announced else []
            return connection.send(Answer(200, fields + extra, b"", length=False).head())
        asset(SMALL, chunked=True, ranges=False)(request, connection)

    t.upstream(handler)
    for path in ("a.mp4", "b.mp4", "c.mp4"):
        probe(t, path=path)
    t.expect(t.get(path="/a.mp4"), 200, body=t.bytes(0, SMALL))
    if job(t, path="b.mp4")["bytesDone"] != SMALL:
        t.fail("the job reports another length")
    t.expect(t.get(path="/b.mp4"), 200, body=t.bytes(0, SMALL))
    t.expect(t.get(path="/c.mp4", range="bytes=4000-"), (200, 206))
    t.expect(t.get(path="/c.mp4", range="bytes=4000-"), 206, body=t.bytes(4000, SMALL))


@check("a HEAD with another length does not remove stored bytes", rfc="9111 §4.3.5", larder_only=True)
def head_later(t):
    def handler(request, connection):
        (asset(38) if request.method == "HEAD" else asset(SMALL))(request, connection)

    t.upstream(handler)
    t.expect(t.get(), 200, body=t.bytes(0, SMALL))
    found = probe(t, refresh="true")
    if (found["contentLength"], found["cachedBytes"]) != (SMALL, SMALL):
        t.fail(f"the probe reports {found}")
    asked = len(t.requests)
    t.expect(t.get(), 200, body=t.bytes(0, SMALL))
    t.expect_requests(asked)


# No strong validator

@table("Safari: two bytes, then all", rfc="9110 §14.2", larder_only=True, rows=UPSTREAMS)
def safari(t, _, make, ranges):
    t.upstream(make(ranges=ranges))
    t.expect(t.get(range="bytes=0-1"), 206, body=t.bytes(0, 2))
    t.expect(t.get(range="bytes=0-"), 206, body=t.bytes(0, SIZE))


@table("a middle range, then the whole, twice", rfc="9111 §3.4", larder_only=True, rows=UPSTREAMS)
def middle_then_whole(t, _, make, ranges):
    for control in (None, "max-age=3600"):
        t.upstream(unconditional(make(ranges=ranges, cache_control=control)))
        path = f"/{control}.mp4"
        t.expect(t.get(path=path, range="bytes=1000000-1000999"), 206, body=t.bytes(1_000_000, 1_001_000))
        for _ in range(2):
            t.expect(t.get(path=path), 200, body=t.bytes(0, SIZE))


@table("a job, again when it is stale", rfc="9111 §4.3.3", larder_only=True, rows=UPSTREAMS)
def stale_job(t, _, make, ranges):
    t.upstream(unconditional(make(ranges=ranges)))
    for _ in range(3):
        if job(t)["bytesDone"] != SIZE:
            t.fail("not all bytes")
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table("a 304 to each request", rfc="9110 §15.4.5", larder_only=True, rows=UPSTREAMS)
def always_304(t, _, make, ranges):
    """Missing bytes with a weak validator cannot be fetched: the read fails after few requests."""
    t.upstream(make(ranges=ranges, cache_control="no-cache"))
    t.expect(t.get(range="bytes=0-1"), (200, 206))
    t.upstream(Answer(304, [("ETag", 'W/"w"')], b""))
    asked = len(t.requests)
    t.expect_honest(t.attempt_get(), SIZE)
    if len(t.requests) > asked + 3:
        t.fail(f"{len(t.requests) - asked} requests")


@check("a failed job leaves a complete asset", rfc="9111 §4.3.3", larder_only=True)
def failed_job(t):
    t.upstream(bare())
    job(t)
    t.origin(retries=0)
    cut = bare(seed=1)
    t.upstream(Answer(503))
    job(t, "failed")
    t.upstream(lambda request, connection: connection.answer(dataclasses.replace(cut.answer(request), cut=1_000_000)))
    job(t, "failed")
    found = asset_of(t, stored(t)[0]["assetId"])
    if not found["complete"] or found["cachedBytes"] != SIZE:
        t.fail(f"the asset is no longer complete: {found}")
    t.upstream(bare(SIZE + 5, seed=2))
    job(t)
    found = asset_of(t, stored(t)[0]["assetId"])
    if not found["complete"] or found["cachedBytes"] != SIZE + 5:
        t.fail(f"the new generation is not complete: {found}")
    t.expect(t.get(), 200, body=t.bytes(0, SIZE + 5, 2))


@check("concurrent clients without a validator", rfc="9111 §4.3.3", larder_only=True)
def together(t):
    t.upstream(unconditional(bare(ranges=False)))
    t.get()
    for response in t.together(*[t.get] * 6):
        t.expect(response, 200, body=t.bytes(0, SIZE))


# A stale response

@table(
    "a stale read costs one request", rfc="9111 §4.3.3", larder_only=True,
    rows=[
        ("no validators", bare, {}), ("a weak tag, no 304", weak, {}), ("a date", recent, {}),
        ("a strong tag, changed", asset, {"last_modified": None}),
        ("a strong tag, changed, no ranges", asset, {"last_modified": None, "ranges": False}),
    ],
)  # fmt: skip
def one_request(t, kind, make, options):
    for seed in range(4):
        more = {"etag": f'"v{seed}"'} if "changed" in kind else {}
        t.upstream(unconditional(make(SMALL, seed=seed, cache_control="no-cache", **options, **more)))
        asked = len(t.requests)
        t.expect(t.get(), 200, body=t.bytes(0, SMALL, seed))
        if len(t.requests) != asked + 1:
            t.fail(f"read {seed}: {len(t.requests) - asked} requests")
        last = t.requests[-1]
        if kind == "no validators" and seed and (last.range or last.get("If-None-Match") or last.get("If-Modified-Since")):
            t.fail("no plain GET")


@table("a new tag on each response", rfc="9111 §4.3.3", larder_only=True, rows=["ranges", "no ranges"])
def new_tag(t, kind):
    t.upstream(lambda request, connection: asset(
        SMALL, etag=f'"{request.number}"', last_modified=None, cache_control=None, ranges=kind == "ranges",
    )(request, connection))  # fmt: skip
    for number in range(5):
        t.expect(t.get(), 200, body=t.bytes(0, SMALL))
        t.expect_requests(number + 1)


@table("nodes with different tags for the same bytes", rfc="9110 §8.8.1", larder_only=True, rows=["read", "job"])
def nodes(t, kind):
    t.upstream(lambda request, connection: asset(SIZE, etag=f'"node-{request.number % 2}"')(request, connection))
    if kind == "job":
        job(t)
    for _ in range(3):
        t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("a new tag on each response, and a range at a time", rfc="9110 §8.8.1", larder_only=True)
def new_tag_of_a_large_asset(t):
    t.upstream(lambda request, connection: asset(
        SIZE, etag=f'"{request.number}"', last_modified=None, cache_control=None)(request, connection)
    )  # fmt: skip
    for _ in range(3):
        t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table("a body without a validator that breaks", rfc="9112 §8", larder_only=True, rows=["same bytes", "other bytes"])
def broken(t, kind):
    """The next transfer completes the response if it begins with the sent bytes; otherwise the response is cut."""

    def handler(request, connection):
        seed = 0 if kind == "same bytes" else request.number
        answer = bare(ranges=False, seed=seed).answer(request)
        if request.number == 1:
            answer.cut = 1_000_000
        connection.answer(answer)

    t.upstream(handler)
    response = t.attempt_get()
    if kind == "same bytes":
        t.expect(response, 200, body=t.bytes(0, SIZE))
    elif response.complete:  # the first transfer broke before its first byte was sent
        t.expect(response, 200, body=t.bytes(0, SIZE, 2))
    elif response.body != t.bytes(0, len(response.body), 1):
        t.fail(f"{response}: two generations MIXED")


# Variants

@table("a variant without the Vary that selected it", rfc="9111 §4.1", larder_only=True, rows=[None, "X-Other"])
def variant(t, own):
    def handler(request, connection):
        language = request.get("Accept-Language")
        vary = own if language else "Accept-Language"
        seed = {"de": 1, "en": 2}.get(language, 0)
        asset(SMALL, seed=seed, headers={"Vary": vary} if vary else {})(request, connection)

    t.upstream(handler)
    t.expect(t.get(), 200, body=t.bytes(0, SMALL))
    for _ in range(2):
        for language, seed in (("de", 1), ("en", 2)):
            response = t.get(headers={"Accept-Language": language, "X-Other": "1"})
            t.expect(response, 200, body=t.bytes(0, SMALL, seed))
    asked = len(t.requests)
    t.expect(t.get(headers={"Accept-Language": "de", "X-Other": "1"}), 200, body=t.bytes(0, SMALL, 1))
    t.expect_requests(asked)


# Origins and errors

@table("a changed baseURL makes assets stale", rfc="9111 §4.2", larder_only=True, rows=["PUT", "DELETE, then PUT"])
def moved(t, kind):
    t.upstream(asset(SMALL, seed=1))
    t.expect(t.get(), 200, body=t.bytes(0, SMALL, 1))
    other = t.other_upstream(asset(SMALL, seed=2, etag='"v2"'), host="127.0.0.1")
    t.expect(t.get(path="/other.mp4"), 200, body=t.bytes(0, SMALL, 1))
    assets = [found["assetId"] for found in stored(t, 2)]
    if kind != "PUT":
        t.api("DELETE", f"/v1/origins/{t.label}")
    t.origin(baseURL=f"{other.url}/base")
    if any(found["freshUntilAt"] is not None for found in stored(t, 2)):
        t.fail("an asset is reported as fresh")
    t.expect(t.get(), 200, body=t.bytes(0, SMALL, 2))
    for asset_id in assets:
        t.expect(t.api("GET", f"/v1/assets/{asset_id}/content"), 200, body=t.bytes(0, SMALL, 2))


@check("many clients of one error cost one request", rfc="9111 §4", larder_only=True)
def crowd(t):
    t.upstream(Answer(404, [("Cache-Control", "max-age=60")], b"no"))
    for number in range(20):
        path = f"/{number}.mp4"
        for response in t.together(*[lambda: t.get(path=path)] * 8):
            t.expect(response, 404)
        t.expect_requests(number + 1)


# Probes

@check("a HEAD without a response leaves half the time for a GET", rfc="9110 §9.3.2", larder_only=True)
def silent_head(t):
    gone = t.event()

    def handler(request, connection):
        if request.method == "HEAD":
            return connection.wait(gone)
        asset(SMALL)(request, connection)

    t.upstream(handler)
    found = probe(t, timeoutSeconds=2)
    gone.set()
    if found["contentLength"] != SMALL:
        t.fail(f"{found}")


@check("HEAD and bytes=0-0 refused: a plain GET", rfc="9110 §14.2", larder_only=True)
def plain_probe(t):
    def handler(request, connection):
        is_refused = request.method == "HEAD" or request.range
        (Answer(403) if is_refused else asset(SIZE))(request, connection)

    t.upstream(handler)
    if probe(t)["contentLength"] != SIZE:
        t.fail("another length")
    t.expect_requests(3)


# Targeted and qualified Cache-Control

@table(
    "a targeted field overrides Cache-Control", rfc="9213 §2.2", larder_only=True,
    rows=[
        ("CDN-Cache-Control", "max-age=60", "no-store", True), ("Larder-Cache-Control", "max-age=60", "no-store", True),
        ("CDN-Cache-Control", "no-store", "max-age=60", False), ("CDN-Cache-Control", "max-age=", "max-age=60", True),
    ],
)  # fmt: skip
def targeted(t, name, value, control, is_stored):
    t.upstream(asset(SMALL, cache_control=control, headers={name: value}))
    t.expect(t.get(), 200, body=t.bytes(0, SMALL))
    response = t.get()
    passed_on = None if name.startswith("Larder") else value
    t.expect(response, 200, body=t.bytes(0, SMALL), headers={name: passed_on, "Cache-Control": control})
    t.expect_requests(1 if is_stored else 2)


@table("qualified fields stay in the first response", rfc="9111 §5.2.2.4", larder_only=True, rows=["no-cache", "private"])
def qualified(t, directive):
    t.upstream(asset(SMALL, cache_control=f'max-age=60, {directive}="X-Once"', headers={"X-Once": "1"}))
    t.expect(t.get(), 200, body=t.bytes(0, SMALL), headers={"X-Once": "1"})
    t.expect(t.get(), 200, body=t.bytes(0, SMALL), headers={"X-Once": None})
    t.expect_requests(1)


@check("an empty file is a miss, then a hit", rfc="9211 §2.2", larder_only=True)
def empty(t):
    t.upstream(asset(0, ranges=False))
    t.expect_cache_status(t.get(), hit=False, fwd="miss")
    t.expect_cache_status(t.get(), hit=True)
    t.upstream(asset(0, cache_control="no-cache", ranges=False))
    t.expect_cache_status(t.get(path="/stale.mp4"), hit=False, fwd="miss")
    t.expect_cache_status(t.get(path="/stale.mp4"), hit=False, fwd="stale")


@table(
    "an upstream without ranges sends a file once", rfc="9110 §14.2", larder_only=True,
    rows=[(f"{kind}, {order}", kind, order) for kind in ("strong validator", "no validator")
          for order in ("in parallel", "one after another")],
)  # fmt: skip
def without_ranges(t, _, kind, order):
    size = 20_000_000
    etag = '"v1"' if kind == "strong validator" else None
    t.upstream(asset(size, ranges=False, etag=etag, last_modified=None, cache_control="max-age=3600"))
    runs = [(0, 100), (10_000_000, 10_000_100), (19_000_000, size), (0, 100), (5_000_000, 5_000_100), (0, size)]

    def read(run):
        t.expect(t.get(range=f"bytes={run[0]}-{run[1] - 1}"), 206, body=t.bytes(*run))

    if order == "in parallel":
        t.together(*[lambda run=run: read(run) for run in runs])
    else:
        for run in runs:
            read(run)
    t.expect_requests(1)
