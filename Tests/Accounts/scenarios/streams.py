"""Event streams end with the token that opened them; content is sent to its end."""

import contextlib
import hashlib
import http.client
import time

from jose import SigningKey
from mocks.base import Mock, content, serve

from . import scenario
from .readers import Tokens, after, jwt_settings, key_set, mint, stage

#: Seconds after the end of a token within which its streams end, with some time for a busy machine.
LIMIT = 3
PATHS = ("/v1/events", "/v1/stats/live")
LARGE = 48 << 20


class Streams:
    """Open event streams of a service."""

    def __init__(self, t, service):
        self.t, self.service, self.open = t, service, {}

    def add(self, name, target, token=None):
        connection = self.service.connection()
        fields = {"Accept": "text/event-stream", **({"Authorization": f"Bearer {token}"} if token else {})}
        connection.request("GET", target, None, fields)
        response = connection.getresponse()
        self.t.equal(response.status, 200, f"{name}: the status of {target.partition('?')[0]}")
        self.open[f"{name} {target.partition('?')[0]}"] = (connection, response)

    def add_all(self, name, token, job=None):
        for path in PATHS + ((f"/v1/jobs/{job}/events",) if job else ()):
            self.add(name, path, token)
        ticket = self.service.api("POST", "/v1/events/tickets", None, token).json["ticket"]
        self.add(f"{name} with a ticket", f"/v1/events?ticket={ticket}")

    def check_ends(self, ended_at, names):
        """Checks that the streams whose names begin so end in time."""
        for name in [name for name in self.open if name.startswith(names)]:
            connection, response = self.open.pop(name)
            connection.sock and connection.sock.settimeout(20)
            with contextlib.suppress(OSError, http.client.HTTPException):
                while response.read1(65536):
                    pass
            seconds = time.time() - ended_at
            self.t.check(-1.1 < seconds < LIMIT, f"{name}: the stream ends {seconds:.1f} s after its token")
            connection.close()

    def check_open(self):
        """Checks that the other streams still send."""
        for name, (connection, response) in self.open.items():
            connection.sock and connection.sock.settimeout(20)
            self.t.check(response.read1(65536), f"{name}: the stream has ended")
            connection.close()


@scenario(needs=["openssl"])
def streams_end(t):
    """Streams end within two seconds after their token: expired, removed, with a revoked key, and opened by a ticket."""
    tokens, key = Tokens(t), SigningKey(t.directory, "key-1")
    file = t.directory / "jwks.json"
    file.write_bytes(key_set([key]))
    removed, kept = tokens.add("removed", "read"), tokens.add("kept", "read")
    narrowed = tokens.add("narrowed", "read")
    upstream, service = stage(t, tokens, jwt_settings(jwksFile=str(file)))
    upstream.gate.clear()
    job = service.api("POST", "/v1/jobs", {"items": [{"origin": "media", "path": "job.bin"}]}).json["jobId"]
    streams = Streams(t, service)
    streams.add("kept", PATHS[1], kept)
    streams.add_all("removed", removed, job)
    streams.add_all("narrowed", narrowed, job)
    streams.add_all("revoked", mint(t, key), job)
    tokens.entries[:] = [entry for entry in tokens.entries if entry["id"] != "removed"]
    tokens.entries[-1]["prefixes"] = ["/o/media/other/"]
    tokens.write()
    streams.check_ends(time.time(), ("removed", "narrowed"))
    file.write_bytes(key_set([]))
    streams.check_ends(time.time(), ("revoked",))
    # Long enough for a busy machine to open all streams; the ends of the streams are compared with `end`.
    end = int(time.time()) + 10
    short = tokens.add("short", "read", expiresAt=after(end - time.time()))
    tokens.write()
    t.eventually(lambda: service.api("GET", "/v1/stats", None, short).status == 200, "a new token is not used")
    streams.add_all("short", short, job)
    ticket = service.api("POST", "/v1/events/tickets", None, short).json["ticket"]
    streams.check_ends(end, ("short",))
    t.equal(service.send("GET", f"/v1/events?ticket={ticket}").status, 401, "the status with a ticket of an expired token")
    upstream.gate.set()
    streams.check_open()


class Large(Mock):
    def answer(self, request):
        return serve(request, content("large", LARGE))


@scenario(brief=False)
def streams_content(t):
    """A reader whose token ends during a response gets the content to its end."""
    tokens = Tokens(t)
    end = int(time.time()) + 4
    short = tokens.add("short", "read", expiresAt=after(end - time.time()))
    upstream = t.mock(Large())
    service = t.service({**t.origin("media", upstream.url, access="token"), "access.tokensFile": tokens.write()})
    with service.stream("/o/media/large", {"Authorization": f"Bearer {short}"}) as stream:
        t.equal(stream.status, 200, "the status of the read")
        stream.take(1 << 20)
        time.sleep(max(0, end + 2 - time.time()))
        t.equal(stream.take(LARGE), LARGE - (1 << 20), "the number of bytes after the end of the token")
        t.equal(stream.digest, hashlib.sha256(content("large", LARGE)).hexdigest(), "the digest of the content")
    t.equal(service.read("/o/media/large", token=short).status, 401, "the status of the next read")
