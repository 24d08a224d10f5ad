"""Redirects: RFC 9110 §15.4 (3xx), §10.2.2 (Location), §11.6.2 and §17.16 (credentials), RFC 9111 §4 (freshness)."""

from suite import Answer, asset, certificates, check, http_date, table

SECTION = (16, "Redirects")
SIZE = 3000
MOVED = [301, 302, 303, 307, 308]


def routes(t, places, **options):
    """`{path: handler}`; every other path is the asset."""
    good = asset(SIZE, **options)

    def handler(request, connection):
        places.get(request.target.split("?")[0], good)(request, connection)

    t.upstream(handler)


def to(location, status=302, **headers):
    more = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Answer(status, [("Location", location), *more])


def expect_reads(t, path=""):
    t.expect(t.get(range="bytes=100-199", path=path), 206, body=t.bytes(100, 200), headers={"Location": None})
    t.expect(t.get(path=path), 200, body=t.bytes(0, SIZE), headers={"Location": None})


@table("is followed", rfc="9110 §15.4", larder_only=True, rows=MOVED)
def followed(t, status):
    routes(t, {"/media.mp4": to("elsewhere.mp4", status)})
    expect_reads(t)
    if "/elsewhere.mp4" not in [request.target for request in t.requests]:
        t.fail(f"requested targets: {[request.target for request in t.requests]}")


@table(
    "a Location is resolved as a reference", rfc="9110 §10.2.2, 3986 §5", larder_only=True,
    rows=[
        ("a name", "b.mp4", "/dir/b.mp4"),
        ("./", "./b.mp4", "/dir/b.mp4"),
        ("../", "../b.mp4", "/b.mp4"),
        ("../ beyond the root", "../../../../base/b.mp4", "/b.mp4"),
        ("an absolute path", "{base}/b.mp4", "/b.mp4"),
        ("a query alone", "?q=1", "/dir/media.mp4?q=1"),
        ("with a query", "b.mp4?signature=a%2Fb&x=1", "/dir/b.mp4?signature=a%2Fb&x=1"),
        ("an absolute URL", "{url}/b.mp4", "/b.mp4"),
        ("without a scheme", "//{place}{base}/b.mp4", "/b.mp4"),
        ("a scheme in capitals", "HTTP://{place}{base}/b.mp4", "/b.mp4"),
        ("with a fragment", "b.mp4#t=10", "/dir/b.mp4"),
        ("with a space", "b c.mp4", "/dir/b%20c.mp4"),
        ("beyond ASCII", "caf\xe9.mp4", None),
    ],
)  # fmt: skip
def resolved(t, _, location, target):
    base = "/base"
    text = location.format(url=t.upstream_url, place=f"127.0.0.1:{t.own.port}", base=base)
    good = asset(SIZE)
    moved = to(text)
    t.upstream(lambda request, connection: (moved if request.target == "/dir/media.mp4" else good)(request, connection))
    expect_reads(t, "/dir/media.mp4")
    asked = {request.target for request in t.requests} - {"/dir/media.mp4"}
    if target and asked != {target}:
        t.fail(f"{text} resolved to {asked}, not to {target}")


@check("to another host", rfc="9110 §15.4", larder_only=True)
def cross_host(t):
    other = t.other_upstream(asset(SIZE))
    routes(t, {"/media.mp4": to(f"{other.url}/far.mp4?token=1")})
    expect_reads(t)
    if {request.raw_target for request in other.requests} != {"/far.mp4?token=1"}:
        t.fail(f"the other host received {[request.raw_target for request in other.requests]}")
    if other.requests[0].get("Host") != f"127.0.0.2:{other.port}":
        t.fail(f"Host: {other.requests[0].get('Host')}")


SECRETS = {
    "Authorization": "Bearer c0nfidential-origin-token", "X-Api-Key": "c0nfidential-key",
    "Cookie": "session=c0nfidential",
}  # fmt: skip


def told(request):
    return [name for name in SECRETS if request.get(name)]


@check("the origin's credentials are sent to its own host", rfc="9110 §11.6.2, §15.4", origin={
    "headers": SECRETS, "access": "public",
})  # fmt: skip
def own_credentials(t):
    t.secret(*SECRETS.values())
    routes(t, {"/media.mp4": to("elsewhere.mp4")})
    expect_reads(t)
    for request in t.requests:
        if told(request) != list(SECRETS):
            t.fail(f"{request.target} was requested with {told(request)} only")


@table("the origin's credentials are not sent to another", rfc="9110 §15.4, §17.16.3", rows=["host", "port"], origin={
    "headers": SECRETS, "access": "public",
})  # fmt: skip
def foreign_credentials(t, kind):
    t.secret(*SECRETS.values())
    other = t.other_upstream(asset(SIZE), host="127.0.0.2" if kind == "host" else "127.0.0.1")
    routes(t, {"/media.mp4": to(f"{other.url}/far.mp4")})
    expect_reads(t)
    for request in other.requests:
        if told(request) or "c0nfidential" in str(request.headers):
            t.fail(f"the other {kind} received {told(request)}")
    if not told(t.requests[0]):
        t.fail("the own host did not receive the credentials")


@check("credentials after a redirect to another host and back", rfc="9110 §15.4", origin={
    "headers": SECRETS, "access": "public",
})  # fmt: skip
def there_and_back(t):
    """A redirect to another host and back: the own host may receive the credentials, the other host never."""
    t.secret(*SECRETS.values())
    home = t.upstream_url
    other = t.other_upstream(to(f"{home}/home.mp4"))
    routes(t, {"/media.mp4": to(f"{other.url}/far")})
    expect_reads(t)
    if any(told(request) for request in other.requests):
        t.fail("the other host received the credentials")


@check("a reader's credentials are never forwarded", rfc="9110 §11.6.2, §17.16", larder_only=True)
def readers_credentials(t):
    other = t.other_upstream(asset(SIZE))
    routes(t, {"/media.mp4": to(f"{other.url}/far.mp4")})
    t.get(headers={"Cookie": "c0nfidential-reader", "Proxy-Authorization": "Basic YzBuZmlkZW50aWFs"})
    for request in t.requests + other.requests:
        if request.get("Cookie") or request.get("Authorization") or request.get("Proxy-Authorization"):
            t.fail(f"{request.raw_target} was requested with a reader's credentials")


@check("user and password in a Location are not sent", rfc="9110 §4.2.4, §17.16", larder_only=True)
def userinfo(t):
    other = t.other_upstream(asset(SIZE))
    t.secret("hunter2-in-location")
    routes(t, {"/media.mp4": to(f"http://user:hunter2-in-location@127.0.0.2:{other.port}/far.mp4")})
    response = t.get()
    t.expect_honest(response, SIZE)
    if any(request.get("Authorization") for request in other.requests):
        t.fail("sent as Authorization")
    if b"hunter2" in response.body:
        t.fail("sent to the reader")
    t.expect_recovery(SIZE)


@check("a redirect's cookies are not sent on", rfc="9110 §15.4", larder_only=True)
def cookies(t):
    routes(t, {"/media.mp4": to("elsewhere.mp4", Set_Cookie="visited=1; Path=/")})
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE), headers={"Set-Cookie": None})
    if any(request.get("Cookie") for request in t.requests):
        t.fail("a cookie was sent")


# Rejected targets

@table(
    "to a forbidden target", rfc="9110 §15.4, §17", larder_only=True,
    rows=[
        ("a link-local address", "http://169.254.169.254/latest/meta-data/", "upstreamForbidden"),
        ("the same as a number", "http://2852039166/", "upstreamForbidden"),
        ("the same in octal", "http://0251.0376.0251.0376/", "upstreamForbidden"),
        ("the same within IPv6", "http://[::ffff:169.254.169.254]/", "upstreamForbidden"),
        ("link-local IPv6", "http://[fe80::1]/", "upstreamForbidden"),
        ("the unspecified address", "http://0.0.0.0:{port}/base/x", "upstreamForbidden"),
        ("the unspecified IPv6 address", "http://[::]:{port}/base/x", "upstreamForbidden"),
        ("multicast", "http://224.0.0.1:{port}/", "upstreamForbidden"),
        ("a file", "file:///etc/passwd", "upstreamProtocol"),
        ("ftp", "ftp://127.0.0.1:{port}/x", "upstreamProtocol"),
        ("gopher", "gopher://127.0.0.1:{port}/_x", "upstreamProtocol"),
        ("a script", "javascript:alert(1)", "upstreamProtocol"),
        ("data", "data:,evil", "upstreamProtocol"),
        ("port 0", "http://127.0.0.1:0/", "upstreamProtocol"),
        ("port 99999", "http://127.0.0.1:99999/", "upstreamProtocol"),
        ("no host", "http:///x", None),
        ("garbage", "http://[", "upstreamProtocol"),
        ("a URL of 100 KB", "http://127.0.0.1:{port}/" + "x" * 100_000, "upstreamProtocol"),
    ],
)  # fmt: skip
def not_followed(t, _, location, code):
    routes(t, {"/media.mp4": to(location.format(port=t.own.port))})
    for value in (None, "bytes=0-9"):
        response = t.get(range=value)
        t.expect(response, {"upstreamForbidden": 403, "upstreamProtocol": 502}.get(code, (403, 502)))
        if code:
            t.expect_problem(response, code)
        if b"root:" in response.body or b"evil" in response.body:
            t.fail(f"{response}: followed")
    if any(request.target != "/media.mp4" for request in t.requests):
        t.fail("followed")
    t.expect_recovery(SIZE)


@check("a forbidden address is rejected after a redirect as well", rfc="9110 §17", larder_only=True, origin={
    "baseURL": "http://127.0.0.1:{port}/base", "allowPrivateAddresses": False,
})  # fmt: skip
def private(t):
    t.upstream(asset(SIZE))
    t.expect_problem(t.get(), "upstreamForbidden", 403)
    t.expect_requests(0)


@table("a redirect without a Location", rfc="9110 §15.4", larder_only=True, rows=MOVED)
def no_location(t, status):
    t.upstream(Answer(status, [("Cache-Control", "max-age=60")], b"moved"))
    t.expect(t.get(), status, body=b"moved")
    t.expect_requests(1)
    t.expect_recovery(SIZE)


@table("a loop", rfc="9110 §15.4", larder_only=True, rows=["to itself", "of two", "of two hosts"])
def loop(t, kind):
    if kind == "of two hosts":
        other = t.other_upstream(to(f"{t.upstream_url}/media.mp4"))
        t.upstream(to(f"{other.url}/x"))
    else:
        there = "media.mp4" if kind == "to itself" else "b.mp4"
        back, forth = to("media.mp4"), to(there)
        t.upstream(lambda request, connection: (back if "b.mp4" in request.target else forth)(request, connection))
    response = t.get()
    t.expect_problem(response, "upstreamProtocol", 502)
    if len(t.requests) > 12:
        t.fail(f"{len(t.requests)} requests for one read")
    t.expect_recovery(SIZE)


@table("in a row", rfc="9110 §15.4", larder_only=True, rows=[(f"{count} redirects", count) for count in (5, 6, 20)])
def in_a_row(t, _, count):
    """Five redirects are followed; more are an error."""
    def handler(request, connection):
        hop = int(request.target.removeprefix("/hop-").removesuffix(".mp4")) if "hop" in request.target else 0
        (to(f"hop-{hop + 1}.mp4") if hop < count else asset(SIZE))(request, connection)

    t.upstream(handler)
    response = t.get()
    if count <= 5:
        t.expect(response, 200, body=t.bytes(0, SIZE))
    else:
        t.expect_problem(response, "upstreamProtocol", 502)
    t.expect_recovery(SIZE)


@check("from https to http is rejected", rfc="9110 §4.2.2, §17", larder_only=True)
def downgrade(t):
    plain = t.other_upstream(asset(SIZE))
    t.upstream(to(f"{plain.url}/plain.mp4"), tls=certificates.server())
    t.origin(baseURL=f"https://127.0.0.1:{t.own.port}/base", tls={"caFile": str(certificates.authority().file)})
    response = t.get()
    t.expect_problem(response, "upstreamForbidden", 403)
    if plain.requests:
        t.fail("the plain server received a request")


@check("from http to https is followed", rfc="9110 §4.2.2", larder_only=True)
def upgrade(t):
    secure = t.other_upstream(asset(SIZE), host="127.0.0.1", tls=certificates.server())
    t.upstream(to(f"{secure.url}/secure.mp4"))
    t.origin(baseURL="http://127.0.0.1:{port}/base", tls={"caFile": str(certificates.authority().file)})
    expect_reads(t)


# Their bodies, breaks and lifetimes

@table(
    "with a body", rfc="9110 §15.4, 9112 §6.3", larder_only=True,
    rows=["of 10 bytes", "of 1 MB", "chunked", "cut", "stalled"],
)  # fmt: skip
def with_body(t, kind):
    answer = to("elsewhere.mp4")
    answer.body = b"<html>moved" * (100_000 if kind == "of 1 MB" else 1)
    answer.chunked = kind == "chunked"
    answer.cut = 3 if kind == "cut" else None

    def stalled(request, connection):
        connection.send(answer.head() + answer.body[:3])
        connection.stall()

    routes(t, {"/media.mp4": stalled if kind == "stalled" else answer})
    for value, run in (("bytes=100-199", (100, 200)), (None, None)):
        response = t.get(range=value)
        t.expect_honest(response, SIZE, run=run)
        if kind not in ("cut", "stalled"):
            t.expect(response, 206 if run else 200)
    t.expect_recovery(SIZE)


@check("to a missing asset", rfc="9110 §15.4", larder_only=True)
def to_nothing(t):
    routes(t, {"/media.mp4": to("elsewhere.mp4"), "/elsewhere.mp4": Answer(404, body=b"no")})
    t.expect(t.get(), 404)
    t.expect_recovery(SIZE)


@check("each window may be redirected elsewhere: two generations are not mixed", rfc="9110 §15.3.7.3", larder_only=True)
def to_several(t):
    size = 3_000_000

    def handler(request, connection):
        seed = 1 + len([one for one in t.requests if one.target == "/media.mp4"]) % 2
        if request.target == "/media.mp4":
            return to(f"copy-{seed}.mp4")(request, connection)
        seed = int(request.target[len("/copy-")])
        asset(size, seed=seed, etag=f'"v{seed}"', last_modified=None)(request, connection)

    t.upstream(handler)
    response = t.get()
    if response.status == 200:
        if response.body not in (t.bytes(0, len(response.body), 1), t.bytes(0, len(response.body), 2)):
            t.fail(f"{response}: WRONG BYTES, or two generations MIXED")
        if response.complete and len(response.body) != size:
            t.fail(f"{response}: a CLEAN END on a short body")


@table(
    "is reused for its own lifetime", rfc="9110 §15.4, 9111 §4", larder_only=True,
    rows=[
        ("302 without freshness", 302, {}, False),
        ("302 no-store", 302, {"Cache-Control": "no-store"}, False),
        ("302 no-cache", 302, {"Cache-Control": "no-cache"}, False),
        ("302 max-age=0", 302, {"Cache-Control": "max-age=0"}, False),
        ("302 max-age=600", 302, {"Cache-Control": "max-age=600"}, True),
        ("302 max-age=600, 700 s old", 302, {"Cache-Control": "max-age=600", "Age": "700"}, False),
        ("302 private", 302, {"Cache-Control": "private, max-age=600"}, False),
        ("307 without freshness", 307, {}, False),
        ("307 expired", 307, {"Expires": "0"}, False),
        ("307 s-maxage=600", 307, {"Cache-Control": "max-age=0, s-maxage=600"}, True),
        ("301 max-age=600", 301, {"Cache-Control": "max-age=600"}, True),
        ("308 max-age=600", 308, {"Cache-Control": "max-age=600"}, True),
        ("301 no-store", 301, {"Cache-Control": "no-store"}, False),
        ("308 max-age=0", 308, {"Cache-Control": "max-age=0"}, False),
    ],
)  # fmt: skip
def own_freshness(t, _, status, headers, is_used):
    """The asset is fresh for an hour; the redirect's own lifetime decides whether it is requested again."""
    answer = Answer(status, [("Location", "elsewhere.mp4"), ("Date", http_date()), *headers.items()])
    routes(t, {"/media.mp4": answer})
    expect_reads(t)
    asked = len([request for request in t.requests if request.target == "/media.mp4"])
    t.expect(t.get(range="bytes=0-9"), 206, body=t.bytes(0, 10))
    again = len([request for request in t.requests if request.target == "/media.mp4"])
    if is_used and again != asked:
        t.fail("requested again, though the redirect is fresh")
    if not is_used and again == asked:
        t.fail("not requested again, though the redirect is not fresh")


@check("a redirect with a new target: the new bytes, not the old ones", rfc="9111 §4", larder_only=True)
def leads_elsewhere(t):
    routes(t, {"/media.mp4": to("one.mp4"), "/two.mp4": asset(SIZE, seed=2, etag='"v2"')})
    expect_reads(t)
    routes(t, {"/media.mp4": to("two.mp4"), "/two.mp4": asset(SIZE, seed=2, etag='"v2"')})
    t.expect(t.get(), 200, body=t.bytes(0, SIZE, 2))
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10, 2))


@check("a fresh redirect does not extend the lifetime of its target", rfc="9111 §4", larder_only=True)
def no_longer_than_the_asset(t):
    routes(t, {"/media.mp4": to("elsewhere.mp4", Cache_Control="max-age=600")}, cache_control="max-age=0")
    expect_reads(t)
    asked = len(t.requests)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    if len(t.requests) == asked:
        t.fail("not requested again, though the asset is stale")


@check("the asset key is the requested target", rfc="9111 §2, 9110 §15.4", larder_only=True)
def keyed(t):
    moved = to("shared.mp4", Cache_Control="max-age=600")
    routes(t, {"/a.mp4": moved, "/b.mp4": moved})
    ids = set()
    for path in ("/a.mp4", "/b.mp4", "/shared.mp4"):
        for _ in range(2):
            response = t.get(path=path)
            t.expect(response, 200, body=t.bytes(0, SIZE))
        ids.add(response.get("Larder-Asset-Id"))
        t.expect_cache_status(response, hit=True)
        document = t.api("GET", f"/v1/assets/{response.get('Larder-Asset-Id')}").document
        if document.get("key") != t.mount + path:
            t.fail(f"the key of {path} is {document.get('key')}")
    if len(ids) != 3:
        t.fail(f"{len(ids)} assets for three paths")


@check("a plain proxy passes a redirect on, or follows it; never its body as the asset", rfc="9110 §15.4")
def for_anybody(t):
    answer = to(f"http://127.0.0.1:{t.own.port}/elsewhere")
    answer.body = b"moved"
    routes(t, {"/media.mp4": answer})
    response = t.get(range="bytes=0-2")
    if response.status in (200, 206) and response.body in (b"mov", b"moved"):
        t.fail(f"{response}: a redirect's body as the asset")
    t.expect_recovery(SIZE)
