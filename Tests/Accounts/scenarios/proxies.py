"""Clients behind nginx and HAProxy: their addresses in the log, in limits and in statements that must not count."""

import contextlib
import json
import socket

from harness import certificates
from mocks.base import Mock, content, serve
from harness.process import Nginx, Process, found, free_port
from harness.http import send

from . import scenario

SIZE = 5000
#: Addresses of clients; all of 127.0.0.0/8 is this machine.
CLIENT, OTHER = "127.0.0.5", "127.0.0.6"
TARGETS = ("/v1/access", "/o/m/a.bin")


class Files(Mock):
    def answer(self, request):
        return serve(request, content(request.name, SIZE))


def get(service, port, source, target, fields=None, context=None):
    """A reply to a request with a token from an address of this machine."""
    sent = {"Authorization": f"Bearer {service.token}", **(fields or {})}
    return service.remember(send(port, "GET", target, sent, source=source, tls=context))


def logged(t, service, identifier):
    """The address of the client in the log entry of a request."""
    t.eventually(lambda: f'"{identifier}"' in service.text(), f"no log entry of {identifier}")
    lines = [json.loads(line) for line in service.text().splitlines() if f'"{identifier}"' in line]
    return next((line["client"] for line in lines if "client" in line), None)


def shows(t, service, port, source, expected, subject, fields=None, context=None):
    """Checks the address in the log of a request to the API and of a cold and a cached read."""
    for index, target in enumerate((*TARGETS, TARGETS[-1])):
        identifier = f"{subject.replace(' ', '-')}-{index}"
        reply = get(service, port, source, target, {"X-Request-Id": identifier, **(fields or {})}, context)
        t.equal(reply.status, 200, f"{subject}: {target}")
        t.equal(logged(t, service, identifier), expected, f"{subject}: the client of {target}")


def proxied(t, service, fields):
    """The port of an nginx in front of a service, which sets these fields."""
    directory = t.directory / f"nginx{free_port()}"
    directory.mkdir()
    nginx = Nginx(directory, f"""
        proxy_http_version 1.1; proxy_set_header Connection "";
        server {{
            listen 127.0.0.1:{{port}}; access_log off;
            location / {{ {fields} proxy_set_header Host localhost; proxy_pass http://127.0.0.1:{service.port}; }}
        }}
    """)  # fmt: skip
    t.processes.append(nginx)
    return nginx.port


@scenario(needs=["nginx"])
def proxies_nginx(t):
    """nginx states the addresses; those that a client has invented, and those of other machines, do not count."""
    upstream = t.mock(Files())
    trusted = {"listen.trustedProxies": ["127.0.0.1", "10.0.0.0/8"]}
    service = t.service(t.origin("m", upstream.url, access="public") | trusted | {"listen.clientAddressFrom": "xForwardedFor"})
    port = proxied(t, service, "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;")
    shows(t, service, port, CLIENT, CLIENT, "nginx")
    shows(t, service, port, CLIENT, CLIENT, "an invented address", {"X-Forwarded-For": "192.0.2.66"})
    shows(t, service, service.port, CLIENT, CLIENT, "a direct request", {"X-Forwarded-For": "192.0.2.66"})
    shows(t, service, service.port, "127.0.0.1", "192.0.2.66", "a request of the proxy", {"X-Forwarded-For": "192.0.2.66, 10.1.1.1"})
    refusal = get(service, service.port, "127.0.0.1", "/v1/access", {"X-Forwarded-For": "nobody"})
    t.refused(refusal, "an invalid statement", (400,), ("malformedRequest",), "X-Forwarded-For.*nobody")

    service = t.service(t.origin("m", upstream.url, access="public") | trusted | {"listen.clientAddressFrom": "forwarded"})
    port = proxied(t, service, 'proxy_set_header Forwarded "$http_forwarded, for=$remote_addr;proto=https;host=a.example";')
    shows(t, service, port, CLIENT, CLIENT, "Forwarded")
    shows(t, service, port, CLIENT, CLIENT, "an invented Forwarded", {"Forwarded": "for=192.0.2.66"})


@scenario(needs=["nginx"])
def proxies_limits(t):
    """The limits for each address concern the clients behind a proxy, not the proxy."""
    upstream = t.mock(Files())
    limits = {"limits.perAddress.connections": 2, "limits.perAddress.streams": 1, "limits.perAddress.requestsPerSecond": 2}
    service = t.service(
        t.origin("m", upstream.url, access="public") | {"listen.trustedProxies": ["127.0.0.1"]} | limits
        | {"listen.clientAddressFrom": "xForwardedFor"}
    )  # fmt: skip
    port = proxied(t, service, "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;")
    statuses = [get(service, port, CLIENT, TARGETS[index % 2]).status for index in range(200)]
    t.equal(set(statuses), {200, 429}, "the statuses of a client with many requests")
    t.equal(get(service, port, OTHER, TARGETS[0]).status, 200, "another client")
    lines = [socket.create_connection(("127.0.0.1", service.port), 10, (OTHER, 0)) for _ in range(3)]
    lines[2].sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    t.check(lines[2].recv(100).startswith(b"HTTP/1.1 429"), "a third connection of one address is not refused")
    for line in lines:
        line.close()
    t.check(service.metric("larder_requests_rejected_total", reason="addresses") > 1, "the metrics show no refusal")


def relay(t, address, option):
    """The port of an HAProxy that forwards connections to an address with a PROXY header."""
    port = free_port()
    file = t.directory / f"haproxy{port}.cfg"
    file.write_text(f"""
defaults
    mode tcp
    timeout connect 10s
    timeout client 60s
    timeout server 60s
listen relay
    bind 127.0.0.1:{port}
    server larder {address} {option}
""")
    t.processes.append(Process([found("haproxy"), "-db", "-f", file], file.with_suffix(".log"), port).start())
    return port


@scenario(needs=["haproxy"])
def proxies_haproxy(t):
    """HAProxy states the addresses by both versions of the PROXY protocol, also before TLS. Other connections are closed."""
    upstream, authority = t.mock(Files()), certificates.Authority()
    certificate, key = authority.issue("service")
    tls = {"listen.tls.certificateFile": str(certificate), "listen.tls.keyFile": str(key)}
    for name, settings, context in (("http", {}, None), ("https", tls, certificates.client_context(authority.file))):
        service = t.service(
            t.origin("m", upstream.url, access="public") | settings
            | {"listen.proxyProtocol": "required", "listen.trustedProxies": ["127.0.0.1"]},
            is_started=False,
        )  # fmt: skip
        address, direct = f"127.0.0.1:{service.port}", service.port
        service.port, service.tls = relay(t, address, "send-proxy"), context
        second = relay(t, address, "send-proxy-v2")
        service.start()
        shows(t, service, service.port, CLIENT, CLIENT, f"{name} v1", context=context)
        shows(t, service, second, OTHER, OTHER, f"{name} v2", context=context)
        status, _, errors = service.run("healthcheck", "--config", service.file)
        t.equal(status, 0, f"larder healthcheck: {errors}")
        for source, text in (("127.0.0.1", b"GET / HTTP/1.1\r\n\r\n"), (CLIENT, b"PROXY UNKNOWN\r\n"), ("127.0.0.1", b"PROXY TCP4")):
            with contextlib.closing(socket.create_connection(("127.0.0.1", direct), 10, (source, 0))) as line:
                line.sendall(text)
                with contextlib.suppress(ConnectionError):
                    t.equal(line.recv(10), b"", f"{name}: a connection of {source} with {text}")
        t.check("does not begin with a PROXY header" in service.text(), f"{name}: no log entry of a closed connection")


@scenario()
def proxies_settings(t):
    """Statements of proxies require the addresses of the proxies."""
    for setting, value in (("listen.proxyProtocol", "required"), ("listen.clientAddressFrom", "forwarded")):
        code, output = t.service({setting: value}, is_started=False).refusal()
        t.check(code == 78 and "listen.trustedProxies" in output and setting in output, f"{setting}: {code} {output[:200]}")
    code, output = t.service({"listen.trustedProxies": ["10.0.0.1/8"]}, is_started=False).refusal()
    t.check(code == 78 and "10.0.0.0/8" in output, f"a network with further bits: {code} {output[:200]}")
