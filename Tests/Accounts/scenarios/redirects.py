"""Redirects: credentials stay with the servers of the origin, and `redirectHosts` limits the targets."""

import ssl

from harness import certificates
from mocks.base import Answer, Mock, content, serve

from . import scenario

SIZE = 200_000


class Gate(Mock):
    """Redirects each request to the same path at `target`; serves the files itself without one. Status 503 with
    `is_down`."""

    def __init__(self, target=None):
        self.target, self.is_down = target, False
        super().__init__()

    def answer(self, request):
        if self.is_down:
            return Answer(503)
        if self.target:
            return Answer(307, {"Location": f"{self.target}{request.path}", "Cache-Control": "max-age=600"})
        return serve(request, content(request.name, SIZE), fields={"Vary": "X-User-Key"})


def kinds(t):
    """By name: settings of an origin, files, fields of the reader, and the secret in its requests."""
    secrets = {kind: t.vault.new(f"{kind}Secret") for kind in ("headers", "file", "static", "sas", "forward", "field")}
    keys = f"[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = {secrets['static']}\n"
    return {
        "headers": ({"headers.X-Api-Key": secrets["headers"]}, {}, {}, secrets["headers"]),
        "file": ({"credentialsFile": "fields"}, {"fields": f"X-Api-Key: {secrets['file']}\n"}, {}, secrets["file"]),
        "s3": (
            {"auth_type": "s3", "auth_credentials": "file", "auth_file": "keys"}, {"keys": keys}, {},
            "AWS4-HMAC-SHA256",
        ),
        "sas": ({"auth_type": "sas", "auth_file": "sas"}, {"sas": f"sv=1&sig={secrets['sas']}\n"}, {}, secrets["sas"]),
        "forward": (
            {"forward": ["Authorization", "Cookie"]}, {}, {"Authorization": f"Bearer {secrets['forward']}", "Cookie": "a=b"},
            secrets["forward"],
        ),
        "vary": ({"forward": ["X-User-Key"]}, {}, {"X-User-Key": secrets["field"]}, secrets["field"]),
    }  # fmt: skip


def has(request, secret):
    return secret in request.target or any(secret in value for value in request.fields.values())


@scenario(needs=["openssl"])
def redirects_credentials(t):
    """No kind of credentials reaches the target of a redirect to another port or scheme, from a mirror neither."""
    authority = certificates.Authority()
    certificate, key = authority.issue("target")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    credentials, origins, files, servers = kinds(t), {}, {}, {}
    for kind, (settings, own, _, _) in credentials.items():
        base, mirror = servers[kind] = t.mock(Gate()), t.mock(Gate())
        origins |= t.origin(
            kind, base.url, mirrors=[mirror.url], access="public", tls_caFile=str(authority.file), retries=1, **settings
        )
        files |= own
    service = t.service(origins, files=files)
    plain, secure = t.mock(Gate()), t.mock(Gate())
    secure.tls = context
    targets = {"port": (plain, plain.url), "scheme": (secure, f"https://127.0.0.1:{secure.port}")}
    for kind, (_, _, fields, secret) in credentials.items():
        for subject, (target, url) in targets.items():
            for server in servers[kind]:
                base, mirror = servers[kind]
                base.is_down, base.target, mirror.target = server is mirror, url, url
                way = f"{kind}, another {subject} by way of {'a mirror' if server is mirror else 'the base URL'}"
                path = f"/{kind}-{subject}-{server.port}.bin"
                for part in ((0, 999), (150_000, 150_999)):
                    reply = service.send("GET", f"/o/{kind}{path}", {**fields, "Range": f"bytes={part[0]}-{part[1]}"})
                    t.bytes(reply, content(path, SIZE)[part[0] : part[1] + 1], f"{way}: bytes {part}", 206)
                t.check(any(has(request, secret) for request in server.of(path)), f"{way}: the server gets no credentials")
                t.check(target.of(path), f"{way}: nothing was requested from the target")
                leaks = [request for request in target.of(path) if has(request, secret) or "cookie" in request.fields]
                t.check(not leaks, f"{way}: credentials are sent to the target of the redirect")


@scenario()
def redirects_hosts(t):
    """`redirectHosts` refuses redirects to other hosts with a sentence; the hosts of the origin are always permitted."""
    target = t.mock(Gate())
    port = f"127.0.0.1:{target.port}"
    cases = {
        "none": (None, True), "port": ([port], True), "any": (["127.0.0.1:*"], True), "default": (["127.0.0.1"], False),
        "suffix": (["*.example"], False), "other": ([f"127.0.0.1:{target.port + 1}"], False),
    }  # fmt: skip
    gate, mirror = t.mock(Gate(target.url)), t.mock(Gate())
    origins = t.origin("own", gate.url, access="public", mirrors=[mirror.url], redirectHosts=["*.example"])
    for name, (hosts, _) in cases.items():
        settings = {"redirectHosts": hosts} if hosts else {}
        origins |= t.origin(name, t.mock(Gate(target.url)).url, access="public", **settings)
    service = t.service(origins)
    for name, (_, is_permitted) in cases.items():
        target.forget()
        reply = service.send("GET", f"/o/{name}/{name}.bin")
        if is_permitted:
            t.bytes(reply, content(f"/{name}.bin", SIZE), f"{name}: a redirect to a permitted host")
        else:
            t.refused(reply, f"{name}: a redirect to another host", (403,), ("upstreamForbidden",), "redirectHosts")
            t.equal(len(target.requests), 0, f"{name}: the number of requests to the target")
    gate.target = mirror.url
    t.bytes(service.send("GET", "/o/own/own.bin"), content("/own.bin", SIZE), "a redirect to a mirror")
    gate.target = target.url
    patched = service.api("PATCH", "/v1/origins/own", {"redirectHosts": [port]})
    t.equal(patched.json.get("redirectHosts"), [port], "redirectHosts of the origin")
    t.bytes(service.send("GET", "/o/own/later.bin"), content("/later.bin", SIZE), "a redirect after a change of the setting")
