"""Clients with certificates (mTLS): required and optional, with subjects and alternative names."""

import http.client
import json
import ssl

from harness import certificates
from jose import openssl
from mocks.base import content

from . import scenario
from .readers import SIZE, Files

SUBJECTS = {
    "by-subject": ["CN=studio-a"], "by-uri": ["URI:spiffe://example.org/studio-b"], "by-dns": ["DNS:studio-c.example"],
}  # fmt: skip
HOSTS = {
    "studio-a": "IP:127.0.0.1", "studio-b": "URI:spiffe://example.org/studio-b", "studio-c": "DNS:studio-c.example",
    "stranger": "DNS:stranger.example",
}  # fmt: skip


class Stage:
    """A service with TLS whose clients have certificates of an authority of their own."""

    def __init__(self, t, authentication=None):
        self.t, self.authority, self.foreign = t, certificates.Authority(), certificates.Authority()
        upstream = t.mock(Files())
        certificate, key = self.authority.issue("service")
        self.clients = {name: self.authority.issue(name, host) for name, host in HOSTS.items()}
        self.clients["foreign"] = self.foreign.issue("studio-a")
        self.clients["expired"] = self.authority.issue("studio-a-old", days=(-9, -2))
        tokens = [{"id": identity, "subjects": subjects, "scope": "read"} for identity, subjects in SUBJECTS.items()]
        tokens[1]["sharedCache"], tokens[2]["origins"] = True, ["media"]
        file = t.directory / "tokens.json"
        file.write_text(json.dumps({"tokens": tokens}))
        origins = t.origin("media", f"{upstream.url}/media", access="token")
        origins |= t.origin("other", f"{upstream.url}/other", access="token")
        settings = {
            "listen.tls.certificateFile": str(certificate), "listen.tls.keyFile": str(key),
            "listen.tls.clientCAFile": str(self.authority.file), "access.tokensFile": str(file),
        }  # fmt: skip
        if authentication:
            settings["listen.tls.clientAuthentication"] = authentication
        self.service = t.service({**origins, **settings}, is_started=False)
        self.service.tls = self.context("stranger")
        self.service.start()

    def context(self, client=None):
        return certificates.client_context(self.authority.file, self.clients[client] if client else None)

    def get(self, path, client=None, fields=None):
        """A reply, or the name of the error of the handshake."""
        try:
            return self.service.send("GET", path, fields, context=self.context(client))
        except (ssl.SSLError, ConnectionError, http.client.HTTPException) as error:
            return type(error).__name__

    def is_rejected(self, client):
        """Whether the connection ends without a response."""
        return isinstance(self.get("/o/media/a.bin", client, {"Authorization": f"Bearer {self.service.token}"}), str)

    def requests(self, token):
        """The requests of a token; a request counts after its response was sent."""
        shown = {entry.get("token"): entry.get("requests") for entry in self.service.stats().get("readers", [])}
        return shown.get(token)

    def check_identities(self):
        t = self.t
        for client, identity in (("studio-a", "by-subject"), ("studio-b", "by-uri"), ("studio-c", "by-dns")):
            reply = self.get("/o/media/a.bin", client)
            if t.check(not isinstance(reply, str), f"{client}: the connection ends with {reply}"):
                t.bytes(reply, content("media/a.bin", SIZE), f"a read with the certificate of {client}")
                stated = "max-age=600" if client == "studio-b" else "private, max-age=600"
                t.equal(reply.fields.get("cache-control"), stated, f"Cache-Control with the certificate of {client}")
            t.eventually(lambda name=identity: self.requests(name), f"the statistics do not name {identity}")
        t.refused(self.get("/o/other/a.bin", "studio-c"), "another origin", (403,), ("tokenScope",))
        admin = self.get("/v1/stats", "studio-a", {"Authorization": f"Bearer {self.service.token}"})
        t.check(not isinstance(admin, str) and admin.status == 200, f"certificate and token together: the answer is {admin}")
        stranger = self.get("/o/media/a.bin", "stranger")
        t.check(not isinstance(stranger, str) and stranger.status in (401, 403), f"an unknown subject: the answer is {stranger}")
        for client in ("foreign", "expired"):
            t.check(self.is_rejected(client), f"a connection with a certificate that is {client} is served")


@scenario(needs=["openssl"])
def mtls_required(t):
    """Certificates are required by default with an authority for clients; subject, URI and DNS name select the token."""
    stage = Stage(t)
    stage.check_identities()
    t.check(stage.is_rejected(None), "a connection without a certificate is served")


@scenario(needs=["openssl"])
def mtls_optional(t):
    """With `optional`, clients without a certificate need a token, and a certificate of another authority is refused."""
    stage = Stage(t, "optional")
    stage.check_identities()
    t.refused(stage.get("/o/media/a.bin"), "neither certificate nor token", (401,), ("unauthorized",))
    reply = stage.get("/o/media/a.bin", None, {"Authorization": f"Bearer {stage.service.token}"})
    t.check(not isinstance(reply, str) and reply.status == 200, f"a token without a certificate: the answer is {reply}")


@scenario(needs=["openssl"], brief=False)
def mtls_forged(t):
    """Names in certificates that the authority did not sign, and names that only look like a subject, give no token."""
    stage = Stage(t, "optional")
    for name in ("studio-a,O=x", "CN=studio-a", "studio-a.example", "STUDIO-A", "studio-a "):
        reply = stage.get("/o/media/a.bin", issue(stage, name))
        t.check(not isinstance(reply, str) and reply.status in (401, 403), f"the subject {name!r}: the answer is {reply}")


def issue(stage, name):
    """A certificate of the authority with this common name; returns the key of `clients`."""
    number = len(stage.clients)
    directory = stage.authority.directory
    key, request, certificate = (directory / f"forged{number}.{kind}" for kind in ("key", "csr", "pem"))
    subject = "/CN=" + name.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+")
    openssl("req", "-new", *certificates.NEW_KEY, "-keyout", key, "-out", request, "-subj", subject)
    openssl(
        "x509", "-req", "-in", request, "-CA", stage.authority.file, "-CAkey", stage.authority.key, "-set_serial", number + 100,
        "-days", "2", "-out", certificate,
    )  # fmt: skip
    stage.clients[f"forged{number}"] = (certificate, key)
    return f"forged{number}"
