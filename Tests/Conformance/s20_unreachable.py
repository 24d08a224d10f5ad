"""Unreachable upstreams: RFC 9110 §15.6.3 (502), §15.6.5 (504), §4.3.4 (certificates), 9112 §9.8."""

import re
import socket
import ssl
import struct
import threading

from suite import Answer, asset, certificates, check, isolation, table

SECTION = (20, "Unreachable: names, addresses, TLS")
SIZE = 3000


def expect_unreachable(t, response, pattern):
    """Expects a 502 with a sentence that states the cause, with the host's name."""
    t.expect_problem(response, "upstreamUnreachable", 502)
    detail = response.document["detail"] if hasattr(response, "document") else response.body.decode()
    if not re.search(pattern, detail, re.IGNORECASE):
        t.fail(f"{response}: the detail must match {pattern}: {detail}")


# Addresses

@check("a refused connection", rfc="9110 §15.6.3")
def refused(t):
    t.upstream(asset(SIZE))
    t.stop_upstream()
    for value in (None, "bytes=0-9"):
        response = t.get(range=value)
        t.expect(response, (502, 503) if not t.is_larder else 502)
        if t.is_larder:
            expect_unreachable(t, response, r"127\.0\.0\.1:\d+ refused the connection")


@check("a HEAD to a refused connection", rfc="9110 §9.3.2, §15.6.3")
def refused_head(t):
    t.upstream(asset(SIZE))
    t.stop_upstream()
    t.expect(t.head(), 502 if t.is_larder else (502, 503), body=b"")


@check("fresh cached bytes are served while the upstream is gone", rfc="9111 §4", states=("warm",))
def gone(t):
    t.upstream(asset(SIZE))
    t.stop_upstream()
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))


@check("missing bytes are a 502, cached bytes are served", rfc="9111 §4", larder_only=True)
def partly_gone(t):
    t.upstream(asset(3_000_000))
    t.expect(t.get(range="bytes=0-999"), 206)
    t.stop_upstream()
    t.expect(t.get(range="bytes=0-999"), 206, body=t.bytes(0, 1000))
    t.expect(t.get(range="bytes=2000000-2000999"), 502)
    response = t.get()
    t.expect_honest(response, 3_000_000)


@check("an upstream that returns is used immediately", rfc="9110 §15.6.3", larder_only=True)
def comes_back(t):
    t.upstream(asset(SIZE))
    with socket.socket() as holder:  # a port without a listener, reserved until it is listened on
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        t.origin(baseURL=f"http://127.0.0.1:{port}/base")
        t.expect(t.get(), 502)
    t.origin(baseURL="http://127.0.0.1:{port}/base")
    t.expect_recovery(SIZE)


@check("no route to the upstream", rfc="9110 §15.6.3", larder_only=True)
def no_route(t):
    with isolation.Isolated(t):
        t.upstream(asset(SIZE))
        t.origin(baseURL="http://203.0.113.7/base")
        expect_unreachable(t, t.get(), r"route to 203\.0\.113\.7")
        t.origin(baseURL="http://127.0.0.1:{port}/base")
        t.expect_recovery(SIZE)


@table(
    "a forbidden address", rfc="9110 §17", larder_only=True,
    rows=["http://127.0.0.1:{port}/base", "http://127.1:{port}/base", "http://[::ffff:127.0.0.1]:{port}/base",
          "http://localhost:{port}/base", "http://0x7f000001:{port}/base"],
)  # fmt: skip
def not_allowed(t, url):
    t.upstream(asset(SIZE))
    t.origin(baseURL=url, allowPrivateAddresses=False)
    t.expect_problem(t.get(), "upstreamForbidden", 403)
    t.expect_requests(0)


# Names

@table(
    "a name that cannot be resolved", rfc="9110 §15.6.3", larder_only=True,
    rows=[("does not exist", "nx.example"), ("the name server fails", "fail.example")],
)  # fmt: skip
def unresolved(t, _, name):
    with isolation.Isolated(t):
        t.upstream(asset(SIZE))
        t.origin(baseURL=f"http://{name}:{t.own.port}/base")
        expect_unreachable(t, t.get(), rf"{re.escape(name)}.*resolved.*DNS")
        t.origin(baseURL=f"http://good.example:{t.own.port}/base")
        t.expect_recovery(SIZE)


@check("a hanging resolver is a 504 in time", rfc="9110 §15.6.5", larder_only=True)
def hanging(t):
    with isolation.Isolated(t):
        t.upstream(asset(SIZE))
        t.origin(baseURL=f"http://hang.example:{t.own.port}/base", retries=0)
        response = t.get()
        t.expect_problem(response, "upstreamTimedOut", 504, timeout="connect")
        if response.seconds > 4:
            t.fail(f"{response}: after {response.seconds:.1f} s, 2 s were set")


@check("a hanging resolver does not delay other transfers of the worker", rfc="9110 §15.6.5", larder_only=True)
def hanging_beside_others(t):
    """One worker for all; hanging names before, beside and after working transfers."""
    with isolation.Isolated(t, ["upstream.workers=1"]):
        size = 3_000_000
        t.upstream(asset(size))
        good = t.target()
        t.label, label = t.label + "h", t.label
        t.origin(baseURL=f"http://hang.example:{t.own.port}/base", retries=0)
        hanging = t.target()
        t.label = label
        done = threading.Event()

        def ask(target, timeout=10):
            with t.connect(timeout) as connection:
                connection.request("GET", target)
                return connection.response(asked=f"GET {target}")

        waiting = [t.spawn(lambda at=at: ask(f"{hanging}-{at}")) for at in range(8)]
        slowest = 0
        for at in range(40):
            response = ask(f"{good}-{at}")
            t.expect(response, 200, body=t.bytes(0, size))
            slowest = max(slowest, response.seconds)
        done.set()
        if slowest > 1:
            t.fail(f"a transfer beside hanging names took {slowest:.2f} s")
        for handle in waiting:
            t.expect(handle(), 504)
        t.expect(ask(f"{good}-after"), 200, body=t.bytes(0, size))


@check("a hanging resolver does not delay the shutdown", rfc="9110 §15.6.5", larder_only=True)
def hanging_at_the_end(t):
    with isolation.Isolated(t, ["limits.shutdownDelay=10ms", "limits.drainTimeout=1s"]):
        t.upstream(asset(SIZE))
        waits = {"connectSeconds": 9, "readSeconds": 15, "totalSeconds": 20}
        t.origin(baseURL=f"http://hang.example:{t.own.port}/base", retries=0, timeouts=waits)

        def ask():
            try:
                t.get(timeout=15)
            except Exception:
                pass  # cut off by the shutdown

        waiting = t.spawn(ask)
        t.eventually(lambda: t.api("GET", "/v1/stats").status == 200, "a response while a name hangs")
    waiting()


# TLS

def over_tls(t, context, **settings):
    t.upstream(asset(SIZE), tls=context)
    tls = {"caFile": str(certificates.authority().file), **settings}
    tls = {name: value for name, value in tls.items() if value is not None}
    t.origin(baseURL=f"https://127.0.0.1:{t.own.port}/base", tls=tls)


def need_openssl(t):
    if not certificates.available():
        t.skip("the openssl command makes the certificates")


@check("a certificate of the origin's own authority", rfc="9110 §4.3.4", larder_only=True)
def good(t):
    need_openssl(t)
    over_tls(t, certificates.server())
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table(
    "an invalid certificate", rfc="9110 §4.3.4", larder_only=True,
    rows=[
        ("self-signed", "self-signed", "certificate.*(self-signed|not trusted)"),
        ("expired", "expired", "certificate.*expired"),
        ("not yet valid", "future", "certificate.*not yet valid"),
        ("for another host", "wrong host", "certificate.*(another name|not for|does not name)"),
        ("of an unknown authority", "good", "certificate.*(not trusted|authority)"),
    ],
)  # fmt: skip
def bad_certificate(t, name, kind, pattern):
    need_openssl(t)
    over_tls(t, certificates.server(kind), **({"caFile": None} if name.startswith("of an") else {}))
    for value in (None, "bytes=0-9"):
        expect_unreachable(t, t.get(range=value), pattern)
    t.expect_requests(0)
    over_tls(t, certificates.server())
    t.expect_recovery(SIZE)


@check("verify: false accepts any certificate", rfc="9110 §4.3.4", larder_only=True)
def unverified(t):
    need_openssl(t)
    over_tls(t, certificates.server("self-signed"), verify=False, caFile=None)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("revoked trust is not used again on an idle connection", rfc="9110 §4.3.4", larder_only=True)
def trust_withdrawn(t):
    need_openssl(t)
    over_tls(t, certificates.server("self-signed"), verify=False, caFile=None)
    t.expect(t.get(range="bytes=0-9"), 206, body=t.bytes(0, 10))
    over_tls(t, certificates.server("self-signed"), verify=True)
    expect_unreachable(t, t.get(path="/other.mp4"), "certificate")


@table("an old protocol", rfc="8996", larder_only=True, rows=["TLS 1.0", "TLS 1.1"])
def old_protocol(t, name):
    need_openssl(t)
    version = {"TLS 1.0": ssl.TLSVersion.TLSv1, "TLS 1.1": ssl.TLSVersion.TLSv1_1}[name]
    over_tls(t, certificates.server(version=version))
    expect_unreachable(t, t.get(), "TLS")
    t.expect_requests(0)


@table("a current protocol", rfc="8446", larder_only=True, rows=["TLS 1.2", "TLS 1.3"])
def current_protocol(t, name):
    need_openssl(t)
    version = {"TLS 1.2": ssl.TLSVersion.TLSv1_2, "TLS 1.3": ssl.TLSVersion.TLSv1_3}[name]
    context = certificates.server()
    context.minimum_version = context.maximum_version = version
    over_tls(t, context)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


class Rough:
    """In place of an `SSLContext`: runs this on the connection instead of the handshake."""

    def __init__(self, behave):
        self.behave, self.ended = behave, threading.Event()

    def wrap_socket(self, peer, server_side):
        self.behave(peer, self.ended)
        peer.close()
        raise OSError("no handshake")


ALERT = b"\x15\x03\x03\x00\x02\x02"


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@table(
    "no handshake", rfc="8446 §6.2", larder_only=True,
    rows=[
        ("not TLS at all", lambda peer, ended: (peer.recv(99), peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))),
        ("SSH", lambda peer, ended: (peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), peer.recv(99))),
        ("closed at once", lambda peer, ended: None),
        ("closed after the hello", lambda peer, ended: peer.recv(4096)),
        ("reset after the hello", lambda peer, ended: (peer.recv(4096), reset(peer))),
        ("an alert", lambda peer, ended: (peer.recv(4096), peer.sendall(ALERT + b"\x28"))),
        ("an alert: a certificate is asked for", lambda peer, ended: (peer.recv(4096), peer.sendall(ALERT + b"\x74"))),
        ("half a hello", lambda peer, ended: (peer.recv(4096), peer.sendall(b"\x16\x03\x03\x00\x7a\x02\x00"))),
        ("noise", lambda peer, ended: (peer.recv(4096), peer.sendall(b"\x00\xff" * 500))),
    ],
)  # fmt: skip
def no_handshake(t, _, behave):
    need_openssl(t)
    over_tls(t, Rough(behave))
    expect_unreachable(t, t.get(), "TLS|ended the connection")
    over_tls(t, certificates.server())
    t.expect_recovery(SIZE)


@check("a stalled handshake is a connect timeout: 504", rfc="9110 §15.6.5", larder_only=True)
def handshake_stalls(t):
    need_openssl(t)
    rough = Rough(lambda peer, ended: ended.wait(10))
    t.settings["retries"] = 0
    over_tls(t, rough)
    response = t.get()
    rough.ended.set()
    t.expect_problem(response, "upstreamTimedOut", 504, timeout="connect")


@check("TLS where plain HTTP is expected", rfc="9112 §2.2", larder_only=True)
def tls_unexpected(t):
    need_openssl(t)
    t.upstream(asset(SIZE), tls=certificates.server())
    t.origin(baseURL=f"http://127.0.0.1:{t.own.port}/base")
    t.expect(t.get(), 502)


@check("an invalid caFile", rfc="9110 §4.3.4", larder_only=True)
def no_ca_file(t):
    need_openssl(t)
    t.upstream(asset(SIZE), tls=certificates.server())
    try:
        t.origin(baseURL=f"https://127.0.0.1:{t.own.port}/base", tls={"caFile": "/nonexistent/authority.pem"})
    except Exception as refusal:
        if "422" not in str(refusal) or "caFile" not in str(refusal):
            raise
        return
    expect_unreachable(t, t.get(), "caFile")


@table(
    "an end of TLS without its close_notify", rfc="9112 §9.8, 8446 §6.1", larder_only=True,
    rows=["until the end", "with length", "chunked"],
)  # fmt: skip
def truncated(t, framing):
    """Anyone on the path can end a connection: a body delimited by the end alone is then not known to be complete."""
    need_openssl(t)
    good = asset(SIZE, ranges=False, chunked=framing == "chunked", length=framing != "until the end")

    def handler(request, connection):
        answer = good.answer(request)
        body = answer.encoded_body() if request.method == "GET" else b""
        connection.send(answer.head() + body[: 2000])
        connection.close()  # the end of TCP only

    over_tls(t, certificates.server())
    t.own.serve(handler)
    response = t.get()
    if response.status == 200 and response.complete:
        t.fail(f"{response}: a CLEAN END on a body that may have been cut")
    t.expect_honest(response, SIZE)
    t.expect_recovery(SIZE)


@table(
    "a body over TLS that ends with the connection", rfc="9112 §9.8, 8446 §6.1", larder_only=True,
    rows=[
        (f"HTTP/{version}, {'with' if is_closed else 'without'} a closure alert", version, is_closed)
        for version in ("1.0", "1.1") for is_closed in (True, False)
    ],
)  # fmt: skip
def ended_by_connection(t, _, version, is_closed):
    """Only the alert proves that the body is complete. Without it the bytes are passed on, and nothing is complete."""
    need_openssl(t)

    def handler(request, connection):
        body = t.bytes(0, SIZE) if request.method == "GET" else b""
        fields = [("ETag", '"v1"'), ("Cache-Control", "max-age=3600"), ("Connection", "close")]
        connection.send(Answer(200, fields, http=version, length=False).head() + body)
        if is_closed:
            connection.socket.unwrap()
        connection.close()

    over_tls(t, certificates.server())
    t.own.serve(handler)
    first, second = t.get(), t.get()
    if is_closed:
        t.expect(first, 200, body=t.bytes(0, SIZE))
        t.expect(second, 200, body=t.bytes(0, SIZE))
        t.expect_cache_status(second, hit=True)
        t.expect_requests(1)
    else:
        for response in (first, second):
            t.expect_honest(response, SIZE)
            if response.complete and response.status < 400:
                t.fail(f"{response}: a clean end on a body that may have been cut")
        if first.body != t.bytes(0, SIZE):
            t.fail(f"{first}: {len(first.body)} of {SIZE} bytes were passed on")
    t.expect_recovery(SIZE)


@check("HTTP/2 is not used when the upstream does not offer it", rfc="9113 §3.2", larder_only=True)
def http_1_over_tls(t):
    need_openssl(t)
    context = certificates.server()
    context.set_alpn_protocols(["http/1.1"])
    over_tls(t, context)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    if t.requests[0].version != "HTTP/1.1":
        t.fail(t.requests[0].version)
