"""Methods and messages: RFC 9110 §9 (methods), §10.2.1 (Allow), §15.5.6 (405); RFC 9112 §3 and §9; empty assets."""

from suite import LAST_MODIFIED, Answer, asset, check, table

SECTION = (4, "HEAD, OPTIONS, other methods, the empty asset")
BOTH = ("cold", "warm")
SIZE = 1000


def expect_whole(t, response):
    t.expect(response, 200, body=t.bytes(0, SIZE), headers={"Content-Length": SIZE, "Content-Range": None})


@check("HEAD has GET's headers and no body", rfc="9110 §9.3.2", states=BOTH)
def head(t):
    t.upstream(asset(SIZE, headers={"Content-Language": "mi", "X-Kept": "yes"}))
    response = t.head()
    t.expect(response, 200, body=b"", headers={
        "Content-Length": SIZE, "ETag": '"v1"', "Last-Modified": LAST_MODIFIED, "Content-Type": "video/mp4",
        "Cache-Control": "max-age=3600", "Accept-Ranges": "bytes", "Content-Language": "mi", "X-Kept": "yes",
    })  # fmt: skip


@table(
    "HEAD ignores Range", rfc="9110 §14.2", states=BOTH,
    rows=["bytes=0-9", "bytes=-5", "bytes=5000-", "bytes=0-9,20-29", "bytes=5-2"],
)  # fmt: skip
def head_with_range(t, value):
    t.upstream(asset(SIZE))
    t.expect(t.head(range=value), 200, body=b"", headers={"Content-Length": SIZE, "Content-Range": None})


@check("HEAD with If-Range ignores both", rfc="9110 §14.2, §13.1.5", states=BOTH)
def head_with_if_range(t):
    t.upstream(asset(SIZE))
    t.expect(t.head(range="bytes=0-9", headers={"If-Range": '"v1"'}), 200, body=b"", headers={"Content-Range": None})


@check("a HEAD before a GET never empties the GET", rfc="9110 §9.3.2, 9111 §4", states=BOTH)
def head_then_get(t):
    t.upstream(asset(SIZE))
    for _ in range(2):
        t.expect(t.head(), 200, body=b"")
        t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))
        expect_whole(t, t.get())


@check("HEAD, then GET on one connection", rfc="9112 §6.3, §9.3", states=BOTH)
def head_then_get_on_one_connection(t):
    t.upstream(asset(SIZE))
    with t.connect() as connection:
        for method in ("HEAD", "GET", "HEAD", "HEAD", "GET"):
            connection.request(method, t.target())
            response = connection.response(method, asked=f"{method} on one connection")
            t.expect(response, 200, body=t.bytes(0, SIZE) if method == "GET" else b"", headers={"Content-Length": SIZE})


@check("an upstream HEAD of 0 bytes does not empty the GET", rfc="9110 §9.3.2")
def wrong_head(t):
    def handler(request, connection):
        if request.method == "HEAD":
            fields = [("ETag", '"v1"'), ("Cache-Control", "max-age=3600"), ("Content-Length", "0")]
            connection.answer(Answer(200, fields))
        else:
            asset(SIZE)(request, connection)

    t.upstream(handler)
    t.expect(t.head(), 200, body=b"")
    expect_whole(t, t.get())
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))


@table(
    "an upstream that rejects HEAD does not break the GET", rfc="9110 §9.3.2",
    rows=["403", "404", "405", "500", "501"],
)  # fmt: skip
def refused_head(t, status):
    def handler(request, connection):
        if request.method == "HEAD":
            connection.answer(Answer(int(status), [("Allow", "GET")], b"no"))
        else:
            asset(SIZE)(request, connection)

    t.upstream(handler)
    t.expect(t.head(), body=b"")
    expect_whole(t, t.get())


@check("HEAD of an asset of unknown length has no Content-Length", rfc="9110 §8.6")
def head_without_length(t):
    t.upstream(asset(SIZE, chunked=True, ranges=False))
    response = t.head()
    t.expect(response, 200, body=b"")
    if response.get("Content-Length") not in (None, str(SIZE)):
        t.fail(f"{response}: Content-Length")
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect(t.head(), 200, body=b"")


@check("HEAD of a missing asset is a 404 without a body", rfc="9110 §9.3.2")
def head_of_nothing(t):
    t.upstream(Answer(404, body=b"no such film"))
    t.expect(t.head(), 404, body=b"")
    t.expect(t.get(), 404)


@check(
    "OPTIONS lists the methods and sends no upstream request", rfc="9110 §9.3.7, §10.2.1", larder_only=True,
    states=BOTH,
)  # fmt: skip
def options(t):
    t.upstream(asset(SIZE))
    response = t.get(method="OPTIONS")
    t.expect(response, (200, 204))
    expect_allow(t, response)
    t.expect_requests(0)


def expect_allow(t, response):
    methods = {method.strip() for method in (response.get("Allow") or "").split(",")}
    if not {"GET", "HEAD", "OPTIONS"} <= methods or methods & {"POST", "PUT", "PATCH", "DELETE", "TRACE"}:
        t.fail(f"{response}: Allow")


@table(
    "another method is a 405 with Allow and sends no upstream request", rfc="9110 §15.5.6, §10.2.1", larder_only=True,
    states=BOTH, rows=["POST", "PUT", "DELETE", "PATCH"],
)  # fmt: skip
def other_methods(t, method):
    t.upstream(asset(SIZE))
    response = t.get(method=method, headers={"Content-Length": "0"} if method in ("POST", "PUT", "PATCH") else {})
    t.expect(response, 405)
    expect_allow(t, response)
    t.expect_requests(0)
    expect_whole(t, t.get())


@table(
    "an unknown method is a 501 and sends no upstream request", rfc="9110 §9.1, §15.6.2", larder_only=True,
    rows=["BREW", "get", "GETX", "X-Y", "TRACE", "PROPFIND", "PURGE", "MOVE", "QUERY"],
)  # fmt: skip
def unknown_methods(t, method):
    t.upstream(asset(SIZE))
    t.expect(t.get(method=method), 501)
    t.expect_requests(0)


@check("the body of a rejected POST is not parsed as a request", rfc="9112 §9.3, §11.2", larder_only=True)
def smuggled(t):
    t.upstream(asset(SIZE))
    inner = f"GET {t.target()} HTTP/1.1\r\nHost: inner\r\n\r\n".encode()
    with t.connect(timeout=3) as connection:
        head = f"POST {t.target()} HTTP/1.1\r\nHost: {connection.host}\r\nContent-Length: {len(inner)}\r\n\r\n"
        connection.send(head.encode() + inner)
        response = connection.response(asked="POST with a body")
        t.expect(response, 405)
        connection.finish(response)
    t.expect_requests(0)


@check("a rejected method does not change cached data", rfc="9111 §4.4", larder_only=True, states=("warm",))
def nothing_invalidated(t):
    t.upstream(asset(SIZE))
    for method in ("POST", "PUT", "DELETE"):
        t.get(method=method, headers={"Content-Length": "0"})
    response = t.get()
    expect_whole(t, response)
    t.expect_cache_status(response, hit=True)
    t.expect_requests(0)


@table("an empty asset", rfc="9110 §8.6, §15.3.1", states=BOTH, rows=["GET", "HEAD"])
def empty(t, method):
    t.upstream(asset(0))
    expected = {"Content-Length": 0, "ETag": '"v1"', "Content-Range": None}
    for _ in range(2):
        t.expect(t.get(method=method), 200, body=b"", headers=expected)


@table(
    "a range of an empty asset", rfc="9110 §14.1.2, §15.5.17", states=BOTH,
    rows=[
        ("bytes=0-", (416,)),
        ("bytes=0-0", (416,)),
        ("bytes=0-9", (416,)),
        ("bytes=5-9", (416,)),
        ("bytes=-0", (416,)),
        ("bytes=0-0,5-9", (416,)),
        # A suffix is satisfiable, but no Content-Range can describe zero bytes: RFC 9110 leaves the status open.
        ("bytes=-5", (200, 416)),
        ("bytes=-99999999999999999999", (200, 416)),
        ("bytes=5-2", (200,)),
    ],
)  # fmt: skip
def empty_range(t, value, statuses):
    t.upstream(asset(0))
    for _ in range(2):
        response = t.get(range=value)
        t.expect(response, statuses if t.is_larder else statuses + (200, 416))
        t.expect(response, headers={"Content-Range": "bytes */0" if response.status == 416 else None})
        if response.status == 200:
            t.expect(response, body=b"")
    t.expect(t.get(), 200, body=b"", headers={"Content-Length": 0})


@table(
    "an empty asset of an upstream without ranges", rfc="9110 §15.5.17", states=BOTH,
    rows=["with length", "chunked"],
)  # fmt: skip
def empty_without_ranges(t, kind):
    t.upstream(asset(0, ranges=False, chunked=kind == "chunked"))
    t.expect(t.get(), 200, body=b"")
    response = t.get(range="bytes=0-9")
    t.expect(response, (200, 416))
    if response.status == 200:
        t.expect(response, body=b"", headers={"Content-Range": None})
    t.expect(t.get(), 200, body=b"")


@table(
    "conditions on an empty asset", rfc="9110 §13.2.2", states=BOTH,
    rows=[
        ("If-None-Match same", {"If-None-Match": '"v1"'}, 304),
        ("If-None-Match other", {"If-None-Match": '"v2"'}, 200),
        ("If-Range other", {"If-Range": '"v2"', "Range": "bytes=0-9"}, 200),
    ],
)  # fmt: skip
def empty_conditions(t, _, headers, status):
    t.upstream(asset(0))
    t.expect(t.get(headers=headers), status, body=b"")


@check("a request of HTTP/1.0 gets no chunked response", rfc="9112 §6.1, §9.3", states=BOTH)
def http_1_0(t):
    t.upstream(asset(SIZE))
    t.expect(t.get(http="1.0"), 200, body=t.bytes(0, SIZE), headers={"Transfer-Encoding": None, "Content-Length": SIZE})
    t.expect(t.get(http="1.0", range="bytes=5-9"), 206, body=t.bytes(5, 10), headers={"Transfer-Encoding": None})


@check("a request of HTTP/1.0 gets no chunked response when the length is unknown", rfc="9112 §6.1, §6.3")
def http_1_0_without_length(t):
    head_was_read = t.event()

    def handler(request, connection):
        head = 'HTTP/1.1 200 OK\r\nETag: "v1"\r\nCache-Control: max-age=3600\r\nTransfer-Encoding: chunked\r\n\r\n'
        connection.send(head.encode() + b"64\r\n" + t.bytes(0, 100) + b"\r\n")
        connection.wait(head_was_read, limit=0.8)
        connection.send(b"64\r\n" + t.bytes(100, 200) + b"\r\n0\r\n\r\n")

    t.upstream(handler)
    with t.connect() as connection:
        connection.request("GET", t.target(), http="1.0")
        response = connection.read_head(asked="GET of HTTP/1.0")
        head_was_read.set()
        connection.read_body(response)
    t.expect(response, 200, body=t.bytes(0, 200), headers={"Transfer-Encoding": None})


@check("a request without Host is a 400", rfc="9112 §3.2", larder_only=True)
def no_host(t):
    t.upstream(asset(SIZE))
    t.expect(t.raw(b"GET {mount}/media.mp4 HTTP/1.1\r\n\r\n"), 400)
    t.expect_requests(0)


@check("a request with two Host fields is a 400", rfc="9112 §3.2", larder_only=True)
def two_hosts(t):
    t.upstream(asset(SIZE))
    t.expect(t.raw(b"GET {mount}/media.mp4 HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.2\r\n\r\n"), 400)
    t.expect_requests(0)


@table(
    "a malformed request is a 400, and no later request is read", rfc="9112 §2.2, §3.2, §5.1, §5.2, §6.1, §6.3",
    larder_only=True, states=BOTH,
    rows=[
        ("white space before the colon", "Range : bytes=0-1"),
        ("a folded field", "X-One: 1\r\n 2"),
        ("a field without a colon", "X-One"),
        ("a space in a name", "X One: 1"),
        ("NUL in a value", "X-One: a\0b"),
        ("CR in a value", "X-One: a\rRange: bytes=0-1"),
        ("an empty name", ": 1"),
        ("two Content-Lengths that differ", "Content-Length: 0\r\nContent-Length: 5"),
        ("a Content-Length that is no number", "Content-Length: x"),
        ("a Content-Length below 0", "Content-Length: -1"),
        ("a Content-Length with a sign", "Content-Length: +0"),
        ("an unknown Transfer-Encoding", "Transfer-Encoding: rot13"),
        ("chunked that is not the last", "Transfer-Encoding: chunked, gzip"),
        ("Transfer-Encoding and Content-Length", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
        ("an empty Host", "Host:"),
    ],
)  # fmt: skip
def malformed(t, name, line):
    t.upstream(asset(SIZE))
    host = "" if name.endswith("Host") else "Host: 127.0.0.1\r\n"
    with t.connect(timeout=3) as connection:
        behind = f"GET {t.target()} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        head = f"GET {t.target()} HTTP/1.1\r\n{host}{line}\r\n\r\n"
        connection.send((head + "0\r\n\r\n" + behind).encode("latin-1"))
        response = connection.response(asked=name)
        t.expect(response, 400, headers={"Connection": "close"})
        connection.finish(response)
    t.expect_requests(0)


@check("the chunked body of a GET is discarded", rfc="9112 §6.3, §7.1, §9.3", larder_only=True, states=BOTH)
def chunked_get(t):
    t.upstream(asset(SIZE))
    body = "Transfer-Encoding: chunked\r\n\r\n3\r\nGET\r\n0\r\n\r\n"
    with t.connect() as connection:
        head = f"GET {t.target()} HTTP/1.1\r\nHost: {connection.host}\r\n"
        connection.send((head + body + head + "Range: bytes=5-9\r\n\r\n").encode())
        expect_whole(t, connection.response(asked="GET with a chunked body"))
        t.expect(connection.response(asked="the next one"), 206, body=t.bytes(5, 10))
    for request in t.requests:
        if request.body or request.get("Transfer-Encoding"):
            t.fail("the body reached the upstream")


@table("the client ends the connection: Connection: close", rfc="9112 §9.6", larder_only=True, states=BOTH,
       rows=["GET", "HEAD", "a range", "a refusal"])  # fmt: skip
def closing(t, kind):
    t.upstream(asset(SIZE))
    method = {"HEAD": "HEAD", "a refusal": "POST"}.get(kind, "GET")
    fields = {"Connection": "close", "Content-Length": "0"} if method == "POST" else {"Connection": "close"}
    if kind == "a range":
        fields["Range"] = "bytes=5-9"
    with t.connect(timeout=3) as connection:
        connection.request(method, t.target(), fields)
        response = connection.response(method, asked=f"{kind} with Connection: close")
        t.expect(response, {"GET": 200, "HEAD": 200, "a range": 206, "a refusal": 405}[kind],
                 headers={"Connection": "close"})  # fmt: skip
        if connection.fill():
            t.fail(f"{response}: bytes behind the last response")


@check("Expect: 100-continue without a body causes no wait", rfc="9110 §10.1.1", states=BOTH)
def expecting(t):
    t.upstream(asset(SIZE))
    expect_whole(t, t.get(headers={"Expect": "100-continue"}, timeout=5))


@check("a target of 8000 octets is accepted", rfc="9112 §3")
def long_target(t):
    t.upstream(asset(SIZE))
    query = "x" * (8000 - len(t.target(query="x")) + 1)
    t.expect(t.get(query=query, range="bytes=5-9"), 206, body=t.bytes(5, 10))


@check("a target beyond the limit is a 414", rfc="9110 §15.5.15", larder_only=True)
def too_long_target(t):
    t.upstream(asset(SIZE))
    t.expect(t.get(query="x" * 20_000), (414, 431))
    t.expect_requests(0)


@check("HEAD of an asset that may not be stored", rfc="9110 §9.3.2, 9111 §3")
def head_no_store(t):
    t.upstream(asset(SIZE, cache_control="no-store"))
    for _ in range(2):
        t.expect(t.head(), 200, body=b"", headers={"Content-Length": SIZE, "ETag": '"v1"'})
        expect_whole(t, t.get())


@check("HEAD of a partly cached asset", rfc="9110 §9.3.2")
def head_partly_cached(t):
    t.upstream(asset(SIZE))
    t.expect(t.get(range="bytes=500-599"), 206, body=t.bytes(500, 600))
    t.expect(t.head(), 200, body=b"", headers={"Content-Length": SIZE, "Content-Range": None})
    expect_whole(t, t.get())


@check("an absolute target is accepted", rfc="9112 §3.2.2", states=BOTH)
def absolute_form(t):
    t.upstream(asset(SIZE))
    with t.connect() as connection:
        connection.request("GET", f"http://{connection.host}{t.target()}", {"Range": "bytes=5-9"})
        t.expect(connection.response(asked="absolute target"), 206, body=t.bytes(5, 10))


@check("pipelined requests are answered in order", rfc="9112 §9.3.2", states=BOTH)
def pipelined(t):
    t.upstream(asset(SIZE))
    with t.connect() as connection:
        requests = [
            f"GET {t.target()} HTTP/1.1\r\nHost: {connection.host}\r\nRange: bytes={first}-{first + 9}\r\n\r\n"
            for first in range(0, 100, 10)
        ]
        connection.send("".join(requests).encode())
        for first in range(0, 100, 10):
            t.expect(connection.response(asked=f"pipelined {first}"), 206, body=t.bytes(first, first + 10))
