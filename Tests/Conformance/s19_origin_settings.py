"""Origin settings that change responses: fallback, credentialsFile, trustValidators, staleIfErrorSeconds,
negativeCaching, requestDirectives. RFC 9111 §4.2.4, §5.2.1; RFC 5861 §4; RFC 9110 §15.5.2."""

from suite import LAST_MODIFIED, Answer, asset, check, http_date, table

SECTION = (19, "Origin settings")
SIZE = 3000


# Validation of settings

@table(
    "an invalid setting is a 422 that names it", rfc="9457 §3.1", larder_only=True,
    rows=[
        ("trustValidators", "weak"), ("trustValidators", 1), ("staleIfErrorSeconds", -1),
        ("staleIfErrorSeconds", "long"), ("negativeCaching", True), ("negativeCaching", {"maxSeconds": -5}),
        ("negativeCaching", {"maxSeconds": 0}), ("negativeCaching", {"seconds": 5}),
        ("requestDirectives", "yes"), ("unknownLength", "both"), ("freshness", "always"), ("ignoreVary", "Origin"),
        ("credentialsFile", "/etc/passwd"), ("credentialsFile", "../store/secret.key"),
        ("credentialsFile", "a/../../b"), ("credentialsFile", ""),
        ("fallback", {"file": "/etc/passwd"}), ("fallback", {"file": "../store/secret.key"}),
        ("fallback", {"file": ""}), ("fallback", {"assetId": "none"}), ("fallback", {}), ("fallback", "page.html"),
        ("fallback", {"file": "a", "assetId": "0" * 32}), ("anything", 1),
    ],
)  # fmt: skip
def invalid(t, name, value):
    settings = {"baseURL": "http://127.0.0.1:9/", "allowPrivateAddresses": True, name: value}
    response = t.api("PUT", f"/v1/origins/{t.label}-x", settings)
    if response.status != 422 or not response.document.get("field", "").startswith(name):
        t.api("DELETE", f"/v1/origins/{t.label}-x")
        t.fail(f"{response}: {response.document}")


@check("settings are returned as set", rfc="9110 §9.3.4", larder_only=True)
def read_back(t):
    settings = {
        "trustValidators": "lengthAndLastModified", "staleIfErrorSeconds": 60, "negativeCaching": {"maxSeconds": 30},
        "requestDirectives": True, "unknownLength": "partial", "ignoreVary": ["Origin"], "freshness": "explicit",
        "fallback": {"file": "page.html"},
    }  # fmt: skip
    t.upstream(asset(SIZE))
    t.origin(**settings)
    document = t.api("GET", f"/v1/origins/{t.label}").document
    for name, value in settings.items():
        if document.get(name) != value:
            t.fail(f"{name} is returned as {document.get(name)}")


# fallback

PAGE = b"instead of a film " * 50


def stall(request, connection):
    connection.stall()


def cut_in_the_head(request, connection):
    connection.send(b"HTTP/1.1 200 OK\r\nCont")
    connection.reset()


FAILURES = [
    ("404", Answer(404)), ("403", Answer(403)), ("401", Answer(401)), ("410", Answer(410)), ("429", Answer(429)),
    ("500", Answer(500)), ("503", Answer(503)), ("503 with Retry-After", Answer(503, [("Retry-After", "3600")])),
    ("a status that is not passed on", Answer(407)),
    ("noise", lambda request, connection: connection.send(b"SSH-2.0\r\n")),
    ("a stall", stall), ("a break in the head", cut_in_the_head), ("refused", None),
    ("an unsolicited 304", Answer(304)), ("a wrong 206", Answer(206, [], b"x")),
    ("a redirect loop", Answer(302, [("Location", "media.mp4")])),
]  # fmt: skip


def fail_with(t, handler):
    if handler is None:
        t.upstream(asset(SIZE))
        t.target()
        t.stop_upstream()
    else:
        t.upstream(handler)


def expect_fallback(t, response, body=PAGE):
    t.expect(response, 200, body=body, headers={
        "Cache-Control": "no-store", "ETag": None, "Last-Modified": None, "Accept-Ranges": None, "Content-Range": None,
        "Content-Length": len(PAGE),
    })  # fmt: skip
    t.expect_cache_status(response, hit=False, fwd="miss", stored=None, detail="fallback")


@table("a fallback is served for", rfc="9110 §15.6", larder_only=True, rows=FAILURES)
def fallback(t, _, handler):
    """The whole fallback, for any requested range: its bytes are never mixed with the asset's."""
    fail_with(t, handler)
    t.origin(fallback={"file": t.fallback_file(PAGE)})
    for value in (None, "bytes=5-9", "bytes=-5", "bytes=900000-"):
        expect_fallback(t, t.get(range=value))


@table(
    "a HEAD gets the fallback's head for", rfc="9110 §9.3.2", larder_only=True,
    rows=[FAILURES[0], FAILURES[5], FAILURES[12]],
)  # fmt: skip
def fallback_head(t, _, handler):
    fail_with(t, handler)
    t.origin(fallback={"file": t.fallback_file(PAGE)})
    expect_fallback(t, t.head(), body=b"")


@check("a fallback is not stored as the asset: recovery is immediate", rfc="9111 §3", larder_only=True)
def fallback_not_kept(t):
    t.upstream(Answer(503))
    t.origin(fallback={"file": t.fallback_file(PAGE)})
    expect_fallback(t, t.get())
    t.expect_recovery(SIZE)


@check("another asset as fallback", rfc="9110 §15.6", larder_only=True)
def fallback_asset(t):
    other = asset(len(PAGE), data=PAGE, etag='"page"', content_type="text/plain")
    missing = Answer(404)
    t.upstream(lambda request, connection: (other if "page" in request.target else missing)(request, connection))
    kept = t.get(path="/page.txt")
    t.expect(kept, 200, body=PAGE)
    t.origin(fallback={"assetId": kept.get("Larder-Asset-Id")})
    for value in (None, "bytes=5-9"):
        response = t.get(range=value)
        expect_fallback(t, response)
        t.expect(response, headers={"Content-Type": "text/plain"})
    t.expect(t.get(path="/page.txt"), 200, body=PAGE, headers={"ETag": '"page"'})


@table("an unreadable fallback leaves the error", rfc="9110 §15.6", larder_only=True, rows=["file", "assetId"])
def no_fallback(t, kind):
    t.upstream(Answer(404))
    t.origin(fallback={kind: "missing.html" if kind == "file" else "0123456789abcdef0123456789abcdef"})
    t.expect(t.get(), 404)
    t.expect_recovery(SIZE)


@table(
    "no fallback for a client error", rfc="9110 §15.5", larder_only=True,
    rows=[
        ("unsatisfiable", {"Range": "bytes=9000-"}, 416), ("a condition that fails", {"If-Match": '"v9"'}, 412),
        ("a loop", {"CDN-Loop": None}, 508),
    ],
)  # fmt: skip
def not_for_readers(t, kind, headers, status):
    t.upstream(asset(SIZE))
    t.origin(fallback={"file": t.fallback_file(PAGE)})
    if kind == "a loop":
        t.get()
        own = [request.get("CDN-Loop") for request in t.requests if request.get("CDN-Loop")]
        if not own:
            t.fail("no CDN-Loop upstream")
        headers = {"CDN-Loop": own[0]}
    t.expect(t.get(headers=headers), status)
    t.expect(t.get(method="POST", headers={"Content-Length": "0"}), 405)


@check("no fallback after a head that was sent", rfc="9112 §8", larder_only=True)
def not_behind_the_head(t):
    size = 3_000_000
    t.upstream([asset(size), Answer(500)])
    t.origin(fallback={"file": t.fallback_file(PAGE)})
    response = t.get()
    if response.status == 200 and PAGE in response.body:
        t.fail(f"{response}: fallback bytes among the asset's")
    t.expect_honest(response, size)


@check("a fallback is not used when stored bytes can be served", rfc="9111 §4", larder_only=True, states=("warm",))
def not_when_cached(t):
    t.upstream(asset(SIZE))
    t.origin(fallback={"file": t.fallback_file(PAGE)})
    t.own.serve(Answer(500))
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))


# credentialsFile

OLD, NEW = "Bearer c0nfidential-old-token", "Bearer c0nfidential-new-token"


def guarded(t, *allowed, size=SIZE):
    """An upstream that accepts these credentials."""
    good = asset(size)

    def handler(request, connection):
        known = request.get("Authorization") in allowed
        (good if known else Answer(401, [("WWW-Authenticate", "Bearer")]))(request, connection)

    return handler


def credentials(t, token, **settings):
    file = t.credentials(f"# of the test\n\nAuthorization: {token}\nX-Account: c0nfidential-42\n")
    t.origin(credentialsFile=file, access="public", **settings)


@check("the fields of a credentials file are sent", rfc="9110 §11.6.2", larder_only=True)
def sent(t):
    t.upstream(guarded(t, OLD))
    credentials(t, OLD)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    if t.requests[0].get("X-Account") != "c0nfidential-42":
        t.fail("X-Account was not sent")
    document = t.api("GET", f"/v1/origins/{t.label}")
    if b"c0nfidential" in document.body:
        t.fail("the API reveals the credentials")


@check("a credentials file overrides the origin's headers", rfc="9110 §11.6.2", larder_only=True)
def stands_over(t):
    t.upstream(guarded(t, NEW))
    credentials(t, NEW, headers={"Authorization": OLD, "X-Other": "kept"})
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    request = t.requests[0]
    if request.all("Authorization") != [NEW] or request.get("X-Other") != "kept":
        t.fail(f"sent: {len(request.all('Authorization'))} Authorization, X-Other {request.get('X-Other')}")


@check("a changed credentials file is read again", rfc="9110 §11.6.2", larder_only=True)
def changed(t):
    t.upstream(guarded(t, OLD))
    credentials(t, OLD)
    t.expect(t.get(), 200)
    t.upstream(guarded(t, NEW))
    t.credentials(f"Authorization: {NEW}\nX-More: c0nfidential-more\n")
    t.expect(t.get(path="/other.mp4"), 200, body=t.bytes(0, SIZE))


@check("after a 401 the file is read again, and the request is repeated once", rfc="9110 §15.5.2", larder_only=True)
def read_again(t):
    """The new token arrives while the old one is rejected; its file has the same size."""
    good = guarded(t, NEW)

    def handler(request, connection):
        if request.number == 1:
            t.credentials(f"# of the test\n\nAuthorization: {NEW}\nX-Account: c0nfidential-42\n")
        good(request, connection)

    t.upstream(handler)
    credentials(t, OLD)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    if [request.get("Authorization") for request in t.requests] != [OLD, NEW]:
        t.fail(f"{len(t.requests)} requests")


@check("a repeated 401 is passed on after at most one retry", rfc="9110 §15.5.2", larder_only=True)
def stays(t):
    t.upstream(guarded(t))
    credentials(t, OLD)
    response = t.get()
    t.expect(response, 401, headers={"WWW-Authenticate": "Upstream"})
    if len(t.requests) > 2:
        t.fail(f"{len(t.requests)} requests")
    if b"c0nfidential" in response.body:
        t.fail("reveals the credentials")


@check("a 403 does not cause a reread of the credentials", rfc="9110 §15.5.4", larder_only=True)
def forbidden(t):
    t.upstream(Answer(403))
    credentials(t, OLD)
    t.expect(t.get(), 403)
    t.expect_requests(2)  # the second request is without Range


@check("credentials of a file are not sent to another host", rfc="9110 §15.4, §17.16.3", larder_only=True)
def not_elsewhere(t):
    other = t.other_upstream(asset(SIZE))
    t.upstream(Answer(302, [("Location", f"{other.url}/far.mp4")]))
    credentials(t, OLD)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    if any("c0nfidential" in str(request.headers) for request in other.requests):
        t.fail("the other host received the credentials")
    if t.requests[0].get("Authorization") != OLD:
        t.fail("the own host did not receive the credentials")


@table(
    "an unusable credentials file is rejected with the origin", rfc="9110 §11.6.2", larder_only=True,
    rows=["missing", "garbled", "a line break in a value", "too large"],
)  # fmt: skip
def unusable(t, kind):
    t.upstream(asset(SIZE))
    name = t.credentials(UNUSABLE.get(kind, "X-Account: c0nfidential-42\n"))
    settings = {
        "baseURL": t.upstream_url, "allowPrivateAddresses": True,
        "credentialsFile": name + ("-missing" if kind == "missing" else ""),
    }  # fmt: skip
    response = t.api("PUT", f"/v1/origins/{t.label}", settings)
    t.expect_problem(response, "invalidField", 422, field="credentialsFile")
    if b"c0nf" in response.body:
        t.fail(f"{response}: reveals the file's content: {response.body}")


UNUSABLE = {
    "garbled": "c0nfidential without a colon\n", "too large": "X-Large: " + "c0nfidentia1" * 9000 + "\n",
    "a line break in a value": "Authorization: c0nfidential\rX-Evil: c0nfidential-yes\n",
}  # fmt: skip


@table(
    "no request without credentials is sent when a credentials file becomes unusable", rfc="9110 §11.6.2",
    larder_only=True, rows=["missing", "garbled", "a line break in a value", "too large"],
)  # fmt: skip
def spoiled(t, kind):
    """An error, or the previous fields; a request without them may get another response."""
    t.upstream(asset(SIZE))
    credentials(t, OLD)
    t.expect(t.get(), 200)
    if kind == "missing":
        (t.peer.credentials / t.label).unlink()
    else:
        t.credentials(UNUSABLE[kind])
    response = t.get(path="/other.mp4")
    if response.status != 200 and response.status < 500 or b"c0nf" in response.body:
        t.fail(f"{response}: {response.body[:200]}")
    if any(request.get("Authorization") != OLD for request in t.requests):
        t.fail("a request without the credentials")


@check(
    "content of an origin with credentials requires a token, unless it is public", rfc="9111 §3.5",
    larder_only=True,
)  # fmt: skip
def access(t):
    t.upstream(guarded(t, OLD))
    t.origin(credentialsFile=t.credentials(f"Authorization: {OLD}\n"))
    document = t.api("GET", f"/v1/origins/{t.label}").document
    if document.get("access") != "token":
        t.fail(f"access is {document.get('access')}")


# staleIfErrorSeconds

ERRORS = [
    ("500", Answer(500)), ("502", Answer(502)), ("503", Answer(503)), ("504", Answer(504)), ("refused", None),
    ("a stall", stall), ("a break in the head", cut_in_the_head), ("noise", FAILURES[9][1]),
]  # fmt: skip


def stale(t, cache_control, age, failing, **settings):
    """The asset is cached, `age` seconds old, and the upstream fails from now on; the response to a read."""
    t.upstream(asset(SIZE, cache_control=cache_control, headers={"Age": str(age)}))
    if settings:
        t.origin(**settings)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    if failing is None:
        t.stop_upstream()
    else:
        t.own.serve(failing)
    return t.get()


@table("stale bytes are used when the upstream fails with", rfc="5861 §4", larder_only=True, rows=ERRORS)
def stale_used(t, _, failing):
    response = stale(t, "max-age=60", 100, failing, staleIfErrorSeconds=600)
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, ttl=lambda ttl: ttl is not None and ttl < 0)
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))


@table(
    "the duration of stale use", rfc="5861 §4, 9111 §4.2.4", larder_only=True,
    rows=[
        ("within the setting", "max-age=60", 100, 600, True),
        ("beyond the setting", "max-age=60", 1000, 600, False),
        ("by the response's own directive", "max-age=60, stale-if-error=600", 100, None, True),
        ("beyond the response's own directive", "max-age=60, stale-if-error=30", 100, None, False),
        ("without a directive", "max-age=60", 100, None, False),
        ("0 overrides the response's directive", "max-age=60, stale-if-error=600", 100, 0, False),
        ("the setting overrides a shorter directive", "max-age=60, stale-if-error=10", 100, 600, True),
        ("must-revalidate forbids", "max-age=60, must-revalidate", 100, 600, False),
        ("proxy-revalidate forbids", "max-age=60, proxy-revalidate", 100, 600, False),
        ("s-maxage forbids", "s-maxage=60", 100, 600, False),
        ("no-cache forbids", "no-cache", 0, 600, False),
        ("must-revalidate forbids its directive", "max-age=60, stale-if-error=600, must-revalidate", 100, None, False),
    ],
)  # fmt: skip
def how_long(t, _, cache_control, age, seconds, is_used):
    response = stale(t, cache_control, age, Answer(503), staleIfErrorSeconds=seconds)
    if is_used:
        t.expect(response, 200, body=t.bytes(0, SIZE))
    else:
        t.expect(response, 503)
    t.expect_recovery(SIZE)


@table(
    "stale bytes are not used when the upstream responds", rfc="5861 §4", larder_only=True, rows=[401, 403, 404, 410],
)  # fmt: skip
def not_an_error(t, status):
    """These are not failures: the upstream has responded."""
    response = stale(t, "max-age=60", 100, Answer(status), staleIfErrorSeconds=600)
    t.expect(response, status)
    t.expect_recovery(SIZE)


# negativeCaching

KEPT = [403, 404, 405, 410, 414, 451]


def refuse(t, status, cache_control="max-age=60", **headers):
    fields = [("Cache-Control", cache_control)] if cache_control else []
    t.upstream(Answer(status, fields + [(name.replace("_", "-"), value) for name, value in headers.items()], b"no"))


@table("an error with a lifetime is repeated without a request", rfc="9111 §3, §4.2", larder_only=True, rows=KEPT)
def kept(t, status):
    refuse(t, status)
    t.expect(t.get(), status)
    for value in (None, "bytes=0-9"):
        response = t.get(range=value)
        t.expect(response, status)
        t.expect_cache_status(response, hit=True, detail="negative", ttl=lambda ttl: ttl is not None and 0 < ttl <= 60)
        if response.get("Age") is None:
            t.fail(f"{response}: no Age")
    t.expect(t.head(), status, body=b"")
    t.expect_requests(2 if status == 403 else 1)  # a 403 may be caused by the range


@table(
    "an error is not repeated without a request", rfc="9111 §3, §4.2.2", larder_only=True,
    rows=[
        *[(f"{status}", status, "max-age=60", {}) for status in (400, 401, 407, 408, 429, 500, 502, 503, 504)],
        ("404 without a lifetime", 404, None, {}),
        ("404 with a date long past", 404, None, {"Last_Modified": LAST_MODIFIED}),
        ("404 no-store", 404, "no-store, max-age=60", {}),
        ("404 private", 404, "private, max-age=60", {}),
        ("404 no-cache", 404, "no-cache, max-age=60", {}),
        ("404 max-age=0", 404, "max-age=0", {}),
        ("404 expired", 404, None, {"Expires": "0"}),
        ("404 older than its lifetime", 404, "max-age=60", {"Age": "100"}),
        ("410 for one reader's cookies", 410, "max-age=60", {"Vary": "*"}),
    ],
)  # fmt: skip
def not_kept(t, _, status, cache_control, headers):
    refuse(t, status, cache_control, **headers)
    t.get()
    asked = len(t.requests)
    t.get()
    if len(t.requests) == asked:
        t.fail("served without a request")
    t.expect_recovery(SIZE)


@table("the lifetime of an error may be in", rfc="9111 §4.2.1", larder_only=True, rows=["s-maxage", "Expires"])
def lifetimes(t, kind):
    if kind == "Expires":
        refuse(t, 404, None, Expires=http_date(60), Date=http_date())
    else:
        refuse(t, 404, "max-age=0, s-maxage=60")
    for _ in range(2):
        t.expect(t.get(), 404)
    t.expect_requests(1)


@table("negative caching is off with", rfc="9111 §3", larder_only=True, rows=[("false", False)])
def switched_off(t, _, value):
    refuse(t, 404)
    t.origin(negativeCaching=value)
    t.expect(t.get(), 404)
    t.expect(t.get(), 404)
    t.expect_requests(2)
    t.expect_recovery(SIZE)


@check("negative caching has a cap", rfc="9111 §4.2", larder_only=True, origin={"negativeCaching": {"maxSeconds": 20}})
def capped(t):
    refuse(t, 404, "max-age=86400")
    t.expect(t.get(), 404)
    response = t.get()
    if "fwd=miss" in (response.get("Cache-Status") or ""):
        response = t.get()  # a purge by a concurrent check removes all cached errors
    t.expect(response, 404)
    t.expect_cache_status(response, hit=True, ttl=lambda ttl: ttl is not None and 0 < ttl <= 20)


@check("an error of one path does not apply to another", rfc="9111 §4", larder_only=True)
def per_path(t):
    missing, good = Answer(404, [("Cache-Control", "max-age=60")]), asset(SIZE)
    t.upstream(lambda request, connection: (missing if "gone" in request.target else good)(request, connection))
    t.expect(t.get(path="/gone.mp4"), 404)
    t.expect(t.get(path="/gone.mp4"), 404)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("a purge removes a cached error", rfc="9111 §4.4", larder_only=True)
def purged(t):
    refuse(t, 404)
    t.expect(t.get(), 404)
    t.api("POST", "/v1/purges", {"prefix": t.mount + "/"})
    t.expect_recovery(SIZE)


# requestDirectives

FRESH = {"Cache-Control": "max-age=3600"}


@table(
    "a request directive is obeyed", rfc="9111 §5.2.1, §5.4", origin={"requestDirectives": True},
    rows=[
        ("no-cache", {"Cache-Control": "no-cache"}, 0, True),
        ("max-age=0", {"Cache-Control": "max-age=0"}, 0, True),
        ("max-age above the age", {"Cache-Control": "max-age=500"}, 100, False),
        ("max-age below the age", {"Cache-Control": "max-age=50"}, 100, True),
        ("min-fresh within", {"Cache-Control": "min-fresh=100"}, 0, False),
        ("min-fresh beyond", {"Cache-Control": "min-fresh=7200"}, 0, True),
        ("max-stale", {"Cache-Control": "max-stale=600"}, 3700, False),
        ("max-stale without limit", {"Cache-Control": "max-stale"}, 9000, False),
        ("max-stale too little", {"Cache-Control": "max-stale=50"}, 3700, True),
        ("only-if-cached", {"Cache-Control": "only-if-cached"}, 0, False),
        ("Pragma: no-cache", {"Pragma": "no-cache"}, 0, True),
        ("Pragma beside Cache-Control", {"Pragma": "no-cache", "Cache-Control": "max-age=900"}, 0, False),
        ("nothing", {}, 0, False),
    ],
)  # fmt: skip
def obeyed(t, _, headers, age, is_asked):
    t.upstream(asset(SIZE, headers={"Age": str(age)}))
    t.expect(t.get(), 200)
    asked = len(t.requests)
    response = t.get(headers=headers)
    t.expect(response, 200, body=t.bytes(0, SIZE))
    if (len(t.requests) > asked) != is_asked:
        t.fail(f"{response}: {'not requested' if is_asked else 'requested'}")


@table(
    "request directives are ignored by default", rfc="9111 §5.2.1", larder_only=True, states=("warm",),
    rows=["no-cache", "max-age=0", "no-store", "min-fresh=99999"],
)  # fmt: skip
def ignored(t, value):
    t.upstream(asset(SIZE))
    response = t.get(headers={"Cache-Control": value, "Pragma": "no-cache"})
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=True)
    t.expect_requests(0)


@check("only-if-cached of a missing asset is a 504", rfc="9111 §5.2.1.7", origin={"requestDirectives": True})
def only_if_cached(t):
    t.upstream(asset(SIZE))
    t.expect_problem(t.get(headers={"Cache-Control": "only-if-cached"}), "notCached", 504)
    t.expect_requests(0)


# trustValidators

@table(
    "trustValidators with different tags for the same bytes", rfc="9110 §8.8", larder_only=True,
    rows=[
        ("strong", "strong", False), ("lengthAndLastModified", "lengthAndLastModified", True),
        ("immutable", "immutable", True),
    ],
)  # fmt: skip
def trust(t, _, value, is_combined):
    size = 3_000_000
    t.upstream(lambda request, connection: asset(size, etag=f'"{request.number}"')(request, connection))
    t.origin(trustValidators=value)
    runs = [(0, 1000), (2_000_000, 2_001_000), (0, 1000)]
    tags = set()
    for first, end in runs:
        response = t.get(range=f"bytes={first}-{end - 1}")
        t.expect_honest(response, size, run=(first, end))
        tags.add(response.get("ETag"))
        if is_combined:
            t.expect(response, 206)
    t.expect_requests(2)
    if not is_combined and len(tags) < 2:
        t.fail("bytes of two tags were combined")


@check("speculativeBytes belong to the first request, too", rfc="9110 §14.2", larder_only=True)
def speculative(t):
    t.upstream(asset(3_000_000))
    t.origin(speculativeBytes=500_000)
    t.expect(t.get(range="bytes=0-999"), 206, body=t.bytes(0, 1000))
    if t.requests[0].range != "bytes=0-500999":
        t.fail(f"the first request has Range: {t.requests[0].range}")
    t.expect(t.get(range="bytes=1000-300999"), 206, body=t.bytes(1000, 301_000))
    t.expect_requests(1)
