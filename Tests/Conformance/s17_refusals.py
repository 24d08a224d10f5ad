"""Upstream errors: RFC 9110 §15.5 and §15.6 (4xx, 5xx), §10.2.3 (Retry-After), RFC 9111 §4.2.2."""

import json
import math
import time

from suite import Answer, asset, check, http_date, table

SECTION = (17, "Upstream errors")
SIZE = 3000
BODY = b"<html>no: c0nfidential-detail</html>"
#: Another cache may use a heuristic lifetime for these (RFC 9110 §15.1); Larder requires an explicit one.
GUESSED = (404, 405, 410, 414, 501)
READS = [None, "bytes=0-9", "bytes=-10", "bytes=0-9,20-29"]


@table(
    "is passed on with its status, and not stored as data", rfc="9110 §15.5, §15.6; 9111 §3",
    rows=[400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 413, 414, 415, 418, 422, 423, 425, 428, 429, 451, 499,
          500, 501, 502, 503, 504, 505, 507, 508, 520, 599],
)  # fmt: skip
def passed_on(t, status):
    """Recovery is immediate: an error without a lifetime is not repeated."""
    t.upstream(Answer(status, [("Content-Type", "text/html")], BODY))
    for value in READS:
        response = t.get(range=value)
        t.expect(response, status, headers={"Content-Range": None, "ETag": None})
        if t.is_larder and BODY in response.body:
            t.fail(f"{response}: the upstream's own body")
    if t.is_larder or status not in GUESSED:
        t.expect_recovery(SIZE)


@table(
    "caused by our request, not by the reader's: 502", rfc="9110 §15.6.3", larder_only=True,
    rows=[407, 412, 417, 421, 426, 431, 511],
)  # fmt: skip
def not_passed_on(t, status):
    t.upstream(Answer(status, body=BODY))
    for value in (None, "bytes=0-9"):
        t.expect_problem(t.get(range=value), "upstreamRefused", 502, upstreamStatus=status)
    t.expect_recovery(SIZE)


@table(
    "is a problem document that names the upstream's status", rfc="9457 §3", larder_only=True,
    rows=[404, 403, 500, 503],
)  # fmt: skip
def problem(t, status):
    t.upstream(Answer(status, body=BODY))
    response = t.get()
    t.expect_problem(response, "upstreamRefused", status, upstreamStatus=status)
    t.expect(response, headers={"Cache-Control": "no-store"})
    t.expect_cache_status(response, fwd="miss", fwd_status=status, stored=None)


@table("HEAD gets the same status, without a body", rfc="9110 §9.3.2", rows=[404, 403, 410, 500, 503])
def head(t, status):
    t.upstream(Answer(status, body=BODY))
    t.expect(t.head(), status, body=b"")
    t.expect(t.get(), status)
    if t.is_larder or status not in GUESSED:
        t.expect_recovery(SIZE)


@table(
    "does not reveal the credentials", rfc="9110 §11.6.1, §15.5.2", rows=[401, 403],
    origin={"headers": {"Authorization": "Bearer c0nfidential-origin"}, "access": "public"},
)  # fmt: skip
def no_details(t, status):
    """The challenge is for Larder; a reader cannot use it."""
    t.secret("Bearer c0nfidential-origin", "c0nfidential-realm")
    t.upstream(Answer(status, [("WWW-Authenticate", 'Bearer realm="c0nfidential-realm"')], BODY))
    response = t.get()
    t.expect(response, status)
    if "c0nfidential" in str(response.headers) or b"c0nfidential" in response.body:
        t.fail(f"{response}: reveals the credentials: {response.headers} {response.body}")
    if status == 401:
        t.expect(response, headers={"WWW-Authenticate": "Upstream"})


@check("a 401 has a challenge, as required", rfc="9110 §15.5.2", larder_only=True)
def challenge(t):
    t.upstream(Answer(401, [("WWW-Authenticate", 'Basic realm="c0nfidential"')], BODY))
    t.expect(t.get(), 401, headers={"WWW-Authenticate": "Upstream"})


@table(
    "a Retry-After beyond the read's time is not awaited", rfc="9110 §10.2.3", rows=[429, 503],
    larder_only=True,
)  # fmt: skip
def long_wait(t, status):
    """Passed on immediately, with the Retry-After."""
    t.upstream(Answer(status, [("Retry-After", "3600")], BODY))
    response = t.get()
    t.expect(response, status, headers={"Retry-After": "3600"})
    t.expect_requests(1)
    if response.seconds > 2:
        t.fail(f"{response}: after {response.seconds:.1f} s")
    t.expect_recovery(SIZE)


@table(
    "a Retry-After within the read's time is awaited", rfc="9110 §10.2.3", rows=[429, 503],
    larder_only=True,
)  # fmt: skip
def short_wait(t, status):
    t.upstream([Answer(status, [("Retry-After", "1")], BODY), asset(SIZE)])
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect_requests(2)
    waited = t.requests[1].time - t.requests[0].time
    if waited < 0.95:
        t.fail(f"retried after {waited:.2f} s, Retry-After was 1 s")


@check("Retry-After as a date", rfc="9110 §10.2.3, §5.6.7", larder_only=True)
def date_wait(t):
    due = math.floor(time.time() + 2)  # a date has whole seconds
    t.upstream([Answer(503, [("Retry-After", http_date(2))], BODY), asset(SIZE)])
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    if t.requests[1].time < due:
        t.fail(f"retried {due - t.requests[1].time:.2f} s before the date")


@check("a Retry-After date far in the future", rfc="9110 §10.2.3", larder_only=True)
def far_date(t):
    t.upstream(Answer(503, [("Retry-After", http_date(3600))], BODY))
    response = t.get()
    t.expect(response, 503)
    if not response.get("Retry-After"):
        t.fail(f"{response}: no Retry-After")
    t.expect_requests(1)
    t.expect_recovery(SIZE)


@table(
    "an invalid Retry-After is not awaited", rfc="9110 §10.2.3", larder_only=True,
    rows=["soon", "-5", "1.5", "", "99999999999999999999"],
)  # fmt: skip
def garbled_wait(t, value):
    t.upstream(Answer(503, [("Retry-After", value)], BODY))
    response = t.get()
    t.expect(response, 503)
    if response.seconds > 5:
        t.fail(f"{response}: after {response.seconds:.1f} s")
    t.expect_recovery(SIZE)


@table(
    "is retried once", rfc="9110 §9.2.2", larder_only=True, rows=[429, 500, 502, 503, 504],
)  # fmt: skip
def tried_again(t, status):
    t.upstream([Answer(status, body=BODY), asset(SIZE)])
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table(
    "is not retried, but once without Range if the range may be the cause", rfc="9110 §14.2, §15.5", larder_only=True,
    rows=[(str(status), status, 1) for status in (401, 404, 410, 451)]
    + [(str(status), status, 2) for status in (400, 403, 406, 501)],
)  # fmt: skip
def not_tried_again(t, _, status, requests):
    t.upstream(Answer(status, body=BODY))
    t.expect(t.get(), status)
    t.expect_requests(requests)


@table(
    "may be caused by the range: retried once without it", rfc="9110 §14.2", larder_only=True,
    rows=[400, 403, 406, 501],
)  # fmt: skip
def asked_plainly(t, status):
    """Not a retry: the request differs, so `retries: 0` permits it. After three assets the next one of the origin is
    requested without a range."""

    def handler(request, connection):
        (Answer(status, body=BODY) if request.range else asset(SIZE))(request, connection)

    t.upstream(handler)
    t.origin(retries=0)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect_requests(2)
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))
    t.expect_requests(2)
    for count, path in ((4, "/second.mp4"), (6, "/third.mp4"), (7, "/fourth.mp4")):
        t.expect(t.get(path=path, range="bytes=5-9"), (200, 206))
        t.expect_requests(count)


@table(
    "for one request changes nothing for the next asset", rfc="9110 §14.2, §15.5.4", larder_only=True,
    rows=[400, 403, 406, 501],
)  # fmt: skip
def refused_once(t, status):
    """Rate limits answer 403, and S3 answers 400 `RequestTimeout`. 100 bytes of another asset cost 100 bytes."""
    size = 3_000_000
    t.upstream([Answer(status, body=BODY), asset(size)])
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))
    t.expect_requests(2)
    t.expect(t.get(path="/second.mp4", range="bytes=2000000-2000099"), 206, body=t.bytes(2_000_000, 2_000_100))
    t.expect_requests(3)
    if t.requests[-1].range != "bytes=2000000-2000099":
        t.fail(f"Range of the second asset: {t.requests[-1].range}")


@table(
    "observations of an origin are listed and forgotten", rfc="9110 §14.2", larder_only=True, rows=[400, 403],
)  # fmt: skip
def observations(t, status):
    def handler(request, connection):
        (Answer(status, body=BODY) if request.range else asset(SIZE))(request, connection)

    t.upstream(handler)
    for path in ("/a.mp4", "/b.mp4", "/c.mp4"):
        t.expect(t.get(path=path), 200)
    name = t.mount.split("/")[2]

    def listed():
        return json.loads(t.api("GET", f"/v1/origins/{name}").body)["observations"]

    found = [(item["kind"], item["scope"], item["assetId"] is None) for item in listed()]
    if sorted(found) != [("rangesRefused", "asset", False)] * 3 + [("rangesRefused", "origin", True)]:
        t.fail(f"observations: {found}")
    t.expect(t.api("DELETE", f"/v1/origins/{name}/observations"), 204)
    if listed():
        t.fail(f"observations after DELETE: {listed()}")
    asked = len(t.requests)
    t.expect(t.get(path="/d.mp4"), 200)
    t.expect_requests(asked + 2)


@table(
    "errorBodies: the upstream's body with its status", rfc="9110 §15.5", larder_only=True,
    rows=[400, 403, 404, 410, 429, 500, 503],
)  # fmt: skip
def error_bodies(t, status):
    t.upstream(Answer(status, [("Content-Type", "text/plain")], BODY))
    for bodies in ("problem", "upstream"):
        t.origin(errorBodies=bodies, retries=1)
        kind = "text/plain" if bodies == "upstream" else "application/problem+json"
        for range in (None, "bytes=0-4"):
            response = t.get(range=range, path=f"/{bodies}{range or ''}.mp4")
            t.expect(response, status, headers={"Content-Type": kind, "Content-Range": None})
            if bodies == "upstream":
                t.expect(response, status, body=BODY)
            t.expect_cache_status(response, hit=False)
    t.upstream(asset(SIZE))
    t.expect(t.get(path="/upstream.mp4"), 200, body=t.bytes(0, SIZE))


@table(
    "errorBodies: a refusal with a lifetime is repeated with the upstream's body", rfc="9111 §3, §4", larder_only=True,
    rows=[403, 404, 405, 410, 414, 451],
)  # fmt: skip
def error_bodies_are_kept(t, status):
    """RFC 9111 §4: a cache may reuse a stored response without validation while it is fresh."""
    fields = [("Content-Type", "text/html"), ("Cache-Control", "max-age=60"), ("X-Reason", "gone"), ("ETag", '"e"')]
    t.upstream(Answer(status, fields, BODY))
    t.origin(errorBodies="upstream")
    first = t.get()
    t.expect(first, status, body=BODY)
    asked = len(t.requests)
    same = {name: first.get(name) for name in ("Content-Type", "Cache-Control", "X-Reason", "ETag", "Date")}
    for range in (None, "bytes=0-4", "bytes=900-"):
        response = t.get(range=range)
        t.expect(response, status, body=BODY, headers={**same, "Content-Length": str(len(BODY))})
        t.expect_cache_status(response, hit=True, detail="negative", ttl=lambda ttl: ttl is not None and 0 < ttl <= 60)
        if response.get("Age") is None:
            t.fail(f"{response}: no Age")
    t.expect(t.head(), status, body=b"", headers={**same, "Content-Length": str(len(BODY))})
    t.expect_requests(asked)


@check("errorBodies: a refusal of a HEAD is repeated with the upstream's fields", rfc="9110 §9.3.2", larder_only=True)
def error_bodies_of_head(t):
    t.upstream(Answer(404, [("Content-Type", "text/html"), ("Cache-Control", "max-age=60")], BODY))
    t.origin(errorBodies="upstream")
    for _ in range(3):
        t.expect(t.head(), 404, body=b"", headers={"Content-Type": "text/html", "Content-Length": str(len(BODY))})
    t.expect_requests(1)


@check("errorBodies: a long body is not stored, but the refusal is", rfc="9111 §3", larder_only=True)
def error_bodies_too_long(t):
    body = b"x" * 65_537
    t.upstream(Answer(404, [("Content-Type", "text/html"), ("Cache-Control", "max-age=60")], body))
    t.origin(errorBodies="upstream")
    t.expect(t.get(), 404, body=body)
    t.expect(t.get(), 404, headers={"Content-Type": "application/problem+json"})
    t.expect_requests(1)


@table("errorBodies: a stored asset remains", rfc="9111 §4.3.3", larder_only=True, rows=[404, 503])
def error_bodies_of_stored(t, status):
    t.origin(errorBodies="upstream", retries=0)
    t.upstream(asset(SIZE, cache_control="no-cache"))
    t.expect(t.get(), 200)
    t.upstream(Answer(status, [("Content-Type", "text/plain")], BODY))
    t.expect(t.get(), status, body=BODY if status == 404 else None)
    t.upstream(asset(SIZE, cache_control="no-cache"))
    asked = len(t.requests)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect_requests(asked + 1)
    if not t.requests[-1].get("If-None-Match"):
        t.fail("the stored asset was removed")


@table("in the middle of a read truncates it", rfc="9112 §8", rows=[404, 403, 410, 500, 503])
def in_the_middle(t, status):
    """A head that was sent cannot become an error: the body is truncated, and received bytes are stored."""
    size = 3_000_000
    t.upstream([asset(size), Answer(status, body=BODY)])
    response = t.get()
    t.expect_honest(response, size)
    if BODY in response.body:
        t.fail(f"{response}: an error's body among the asset's bytes")
    t.expect_recovery(size)


@table("of a window does not change cached bytes", rfc="9111 §4", rows=[404, 403, 500, 503])
def window(t, status):
    size = 3_000_000
    t.upstream(asset(size))
    t.expect(t.get(range="bytes=0-999"), 206, body=t.bytes(0, 1000))
    t.upstream(Answer(status, body=BODY))
    response = t.get(range="bytes=2000000-2000999")
    t.expect_honest(response, size, run=(2_000_000, 2_001_000))
    t.upstream(asset(size))
    t.expect(t.get(range="bytes=2000000-2000999"), 206, body=t.bytes(2_000_000, 2_001_000))
    t.expect_recovery(size)


@table(
    "of a revalidation is never a 200 with the error's body", rfc="9111 §4.3.3", states=("warm",),
    rows=[404, 410, 401, 403, 500, 503],
)  # fmt: skip
def revalidation(t, status):
    t.upstream(asset(SIZE, cache_control="max-age=0"))
    t.own.serve(Answer(status, body=BODY))
    response = t.get()
    if t.is_larder:  # no directive permits stale use
        t.expect(response, status)
    elif response.status == 200:
        t.expect(response, body=t.bytes(0, SIZE))
    if t.is_larder or status not in GUESSED:
        t.expect_recovery(SIZE)


@check("an error page with status 200 is handled as the asset", rfc="9110 §15.3.1")
def soft_error(t):
    """The error cannot be detected; the page is stored for its own lifetime, and with its own type."""
    t.upstream(Answer(200, [("Content-Type", "text/html"), ("Cache-Control", "no-store")], BODY))
    t.expect(t.get(), 200, body=BODY, headers={"Content-Type": "text/html"})
    t.expect_recovery(SIZE)


@table("with header fields of an asset is not an asset", rfc="9111 §3, 9110 §15.6", rows=[500, 502, 503, 504])
def disguised(t, status):
    """An error with a lifetime, validators and a range is still an error, and a 5xx is not stored."""
    fields = [("ETag", '"v1"'), ("Cache-Control", "max-age=3600, public"), ("Accept-Ranges", "bytes"),
              ("Content-Range", "bytes 0-9/3000"), ("Content-Type", "video/mp4")]  # fmt: skip
    t.upstream(Answer(status, fields, b"x" * 10))
    for value in READS:
        t.expect(t.get(range=value), status if t.is_larder else None)
    if t.is_larder:
        t.expect_recovery(SIZE)


@check("a long or broken body of an error has no effect", rfc="9112 §8")
def long_error(t):
    def handler(request, connection):
        connection.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 200_000)
        connection.reset()

    t.upstream(handler)
    response = t.get()
    if t.is_larder:
        t.expect(response, 404)
        json.loads(response.body)
        t.expect_recovery(SIZE)


@check("many readers of a failing asset cause few requests", rfc="9111 §4", larder_only=True)
def many(t):
    gate = t.event()

    def handler(request, connection):
        connection.wait(gate)
        connection.answer(Answer(404, body=BODY))

    t.upstream(handler)
    handles = [t.spawn(lambda: t.get()) for _ in range(8)]
    t.await_requests(1)
    gate.set()
    for handle in handles:
        t.expect(handle(), 404)
    if len(t.requests) > 8:
        t.fail(f"{len(t.requests)} upstream requests")
    t.expect_recovery(SIZE)
