"""Tokens that are made, changed and revoked over the API."""

import json
import socket
import time

from . import scenario
from .readers import Tokens, after, stage
from .streams import Streams

ALL = {"origins": ["media"], "prefixes": ["/o/media/a/"], "expiresAt": after(3600), "maxBytesPerSecond": 1 << 24}


class Maker:
    """Makes tokens at a service."""

    def __init__(self, t, service):
        self.t, self.service = t, service

    def ask(self, method, path="", value=None, token=None, fields=None):
        return self.service.api(method, f"/v1/tokens{path}", value, token, fields=fields)

    def make(self, identity, scope="read", token=None, **members):
        """The secret of a new token."""
        reply = self.ask("POST", "", {"id": identity, "scope": scope, **members}, token)
        self.t.equal(reply.status, 201, f"the status of the new token {identity}")
        return self.t.vault.keep("readerToken", reply.json["token"])

    def listed(self, token=None):
        return {item["id"]: item for item in self.ask("GET", token=token).json["items"]}

    def refused(self, what, status, code, method="POST", path="", value=None, token=None, fields=None):
        reply = self.ask(method, path, value, token, fields)
        self.t.equal((reply.status, reply.code), (status, code), f"the answer to {what}")
        return reply


@scenario()
def issued_use(t):
    """A token of the API is valid at once and after a kill; its secret is shown once and stored nowhere."""
    _, service = stage(t, None)
    maker = Maker(t, service)
    secret = maker.make("player", prefixes=["/o/media/a/"])
    t.equal(service.read("/o/media/a/1.bin", token=secret).status, 200, "the status inside the limits")
    t.equal(service.read("/o/media/b/1.bin", token=secret).status, 403, "the status outside the limits")
    t.equal(service.api("POST", "/v1/jobs", {"items": []}, secret).status, 403, "the status of a job with the scope read")
    shown = maker.ask("GET", "/player")
    t.check("token" not in shown.json and secret.encode() not in shown.body, "the secret is shown again")
    t.equal((shown.json["source"], shown.json["state"], shown.json["createdBy"]), ("api", "active", "admin"), "the document")
    service.kill()
    service.start()
    t.equal(service.read("/o/media/a/1.bin", token=secret).status, 200, "the status after a kill")
    t.equal(maker.listed()["player"], shown.json, "the document after a kill")
    changed = maker.ask("PATCH", "/player", {"prefixes": ["/o/media/b/"], "maxBytesPerSecond": 1 << 30})
    t.equal((changed.status, changed.json["prefixes"]), (200, ["/o/media/b/"]), "the answer to a change")
    t.equal(service.read("/o/media/a/1.bin", token=secret).status, 403, "the status outside the new limits")
    t.equal(service.read("/o/media/b/1.bin", token=secret).status, 200, "the status inside the new limits")
    tag = changed.fields["etag"]
    maker.refused("an old tag", 412, "preconditionFailed", "PATCH", "/player", {"scope": "write"}, fields={"If-Match": '"1"'})
    t.equal(maker.ask("PATCH", "/player", {"scope": "write"}, fields={"If-Match": tag}).status, 200, "the status with the tag")


@scenario()
def issued_revoked(t):
    """A deleted token is refused at once on all paths: content, API, streams, tickets and schedules, also after a kill."""
    upstream, service = stage(t, None)
    maker = Maker(t, service)
    secret, kept = maker.make("gone", "write"), maker.make("kept", "write")
    for token in (secret, kept):
        t.equal(service.read("/o/media/a.bin", token=token).status, 200, "the status before")
    order = {"repeat": "daily", "job": {"items": [{"origin": "media", "path": "a.bin"}]}}
    t.equal(service.api("PUT", "/v1/schedules/nightly", order, secret).status, 201, "the status of a schedule")
    upstream.gate.clear()
    job = service.api("POST", "/v1/jobs", {"items": [{"origin": "media", "path": "job.bin"}]}, kept).json["jobId"]
    streams = Streams(t, service)
    streams.add("kept", "/v1/stats/live", kept)
    streams.add_all("gone", secret, job)
    t.equal(maker.ask("DELETE", "/gone").status, 204, "the status of the removal")
    ended_at = time.time()
    reply = service.read("/o/media/a.bin", token=secret)
    t.refused(reply, "content after the removal", (401,), ("unauthorized",))
    t.check("revoked" in reply.json["detail"], f"the reason is {reply.json['detail']}")
    t.refused(service.api("GET", "/v1/jobs", None, secret), "a call after the removal", (401,), ("unauthorized",))
    streams.check_ends(ended_at, ("gone",))
    streams.check_open()
    state = service.api("GET", "/v1/schedules/nightly").json
    t.equal(state["state"], "suspended", "the state of the schedule")
    upstream.gate.set()
    t.eventually(lambda: service.api("GET", f"/v1/jobs/{job}").json["finishedAt"], "the job does not end")
    service.kill()
    service.start()
    t.equal(service.read("/o/media/a.bin", token=secret).status, 401, "the status after a kill")
    t.equal(service.read("/o/media/a.bin", token=kept).status, 200, "that of another token after a kill")
    t.equal(maker.ask("DELETE", "/gone").status, 404, "the status of a second removal")


class Pending:
    """A request whose head is authorized, and whose body arrives later."""

    def __init__(self, service, method, path, value, token, kind="application/json"):
        self.body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.connection = socket.create_connection(("127.0.0.1", service.port), 60)
        self.connection.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(self.body)}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n".encode()
        )
        self.interim = self.connection.recv(4096)
        self.connection.sendall(self.body[:5])

    def status(self):
        """Sends the rest; returns the status."""
        try:
            self.connection.sendall(self.body[5:])
        except OSError:
            pass  # refused before its end
        received = b""
        while part := self.connection.recv(65536):
            received += part
        self.connection.close()
        return int(received.split(b" ", 2)[1])


@scenario()
def issued_pending(t):
    """A request whose body arrives after the end of its token, or after a loss of rights, is refused and changes nothing."""
    upstream, service = stage(t, None)
    maker = Maker(t, service)
    lines = b'{"origin":"media","path":"late.bin"}\n'
    for name, end, wanted in (("gone", lambda path: maker.ask("DELETE", path), 204),
                              ("less", lambda path: maker.ask("PATCH", path, {"scope": "read"}), 200)):  # fmt: skip
        secret = maker.make(name, "admin")
        pending = {
            "a token": Pending(service, "POST", "/v1/tokens", {"id": "late", "scope": "admin"}, secret),
            "its own rights": Pending(service, "PATCH", f"/v1/tokens/{name}", {"scope": "admin"}, secret),
            "an origin": Pending(service, "PUT", "/v1/origins/late", {"baseURL": upstream.url}, secret),
            "a job": Pending(service, "POST", "/v1/jobs", {"items": [{"origin": "media", "path": "late.bin"}]}, secret),
            "a job in lines": Pending(service, "POST", "/v1/jobs", lines, secret, "application/x-ndjson"),
        }
        for what, request in pending.items():
            t.check(request.interim.startswith(b"HTTP/1.1 100"), f"{what}: the answer to the head is {request.interim}")
        t.equal(end(f"/{name}").status, wanted, f"the status of the end of {name}")
        for what, request in pending.items():
            t.check(request.status() in (401, 403), f"{name}: {what} is accepted")
    t.equal(set(maker.listed()), {"admin", "less"}, "the tokens")
    t.equal(service.api("GET", "/v1/origins/late").status, 404, "the status of the origin")
    t.equal(service.api("GET", "/v1/jobs").json["items"], [], "the jobs")
    t.check(not any("late" in request.target for request in upstream.requests), "the upstream got a request")
    kept = Pending(service, "POST", "/v1/tokens", {"id": "kept", "scope": "read"}, service.token)
    t.equal(maker.ask("PATCH", "/less", {"scope": "write"}).status, 200, "a change of another token meanwhile")
    t.equal(kept.status(), 201, "the status of a request whose token stays")


@scenario()
def issued_rights(t):
    """A token makes, changes and sees no token with more rights than its own."""
    _, service = stage(t, None)
    maker = Maker(t, service)
    boss = maker.make("boss", "admin", **ALL)
    maker.make("other", prefixes=["/o/media/b/"])
    maker.make("inside", token=boss, **{**ALL, "prefixes": ["/o/media/a/b/"], "maxBytesPerSecond": 1})
    for name, value in (
        ("origins and prefixes", {"origins": None, "prefixes": None}), ("prefixes", {"prefixes": ["/o/media/"]}),
        ("prefixes", {"prefixes": ["/o/media/a/", "/o/media/b/"]}), ("expiresAt", {"expiresAt": None}),
        ("expiresAt", {"expiresAt": after(7200)}), ("maxBytesPerSecond", {"maxBytesPerSecond": None}),
        ("maxBytesPerSecond", {"maxBytesPerSecond": 1 << 25}), ("sharedCache", {"sharedCache": True}),
    ):  # fmt: skip
        more = {member: each for member, each in {**ALL, **value}.items() if each is not None}
        maker.refused(f"more {name}", 403, "tokenScope", value={"id": "more", "scope": "read", **more}, token=boss)
        maker.refused(f"a change to more {name}", 403, "tokenScope", "PATCH", "/inside", value, boss)
    t.equal(set(maker.listed(boss)), {"boss", "inside"}, "the tokens that a limited one sees")
    for method, value in (("GET", None), ("PATCH", {"scope": "read"}), ("DELETE", None)):
        maker.refused(f"{method} of a foreign token", 403, "tokenScope", method, "/other", value, boss)
        maker.refused(f"{method} of an unknown token", 403, "tokenScope", method, "/unknown", value, boss)
    t.equal(set(maker.listed()), {"admin", "boss", "inside", "other"}, "the tokens that the administrator sees")
    t.equal(maker.ask("DELETE", "/inside", token=boss).status, 204, "the status of a removal by a limited token")


@scenario()
def issued_places(t):
    """The configuration wins over the tokens file, and both over the API; an invalid token is refused with its member."""
    tokens = Tokens(t)
    filed = tokens.add("filed", "read")
    _, service = stage(t, tokens)
    maker = Maker(t, service)
    late = maker.make("late", "write")
    for identity in ("admin", "filed", "late"):
        maker.refused(f"a second {identity}", 409, "conflict", value={"id": identity, "scope": "read"})
    for identity in ("admin", "filed"):
        for method, value in (("PATCH", {"scope": "read"}), ("DELETE", None)):
            reply = maker.refused(f"{method} of {identity}", 409, "conflict", method, f"/{identity}", value)
            t.check("change it there" in reply.json["detail"], f"the detail is {reply.json['detail']}")
    for field, value in (
        ("id", {"id": "a b"}), ("id", {"id": ".."}), ("scope", {"scope": None}), ("sha256", {"sha256": "0" * 64}), ("subjects", {"subjects": ["CN=a"]}),
        ("expiresAt", {"expiresAt": after(-5)}), ("prefixes[0]", {"prefixes": ["media"]}), ("maxBytesPerSecond", {"maxBytesPerSecond": 0}),
        ("colour", {"colour": "red"}),
    ):  # fmt: skip
        reply = maker.refused(f"a wrong {field}", 422, "invalidField", value={"id": "new", "scope": "read", **value})
        t.equal(reply.json["field"], field, "the field")
    own = tokens.add("late", "read")
    tokens.write()
    t.eventually(lambda: service.read("/o/media/a.bin", token=own).status == 200, "the token of the file is not accepted")
    t.equal(service.read("/o/media/a.bin", token=late).status, 401, "the status with the overridden token")
    states = [(item["source"], item["state"]) for item in maker.ask("GET").json["items"] if item["id"] == "late"]
    t.equal(states, [("file", "active"), ("api", "overridden")], "the states of both")
    tokens.entries = [entry for entry in tokens.entries if entry["id"] != "late"]
    tokens.write()
    t.eventually(lambda: service.read("/o/media/a.bin", token=late).status == 200, "the token of the API does not return")
    t.equal(service.read("/o/media/a.bin", token=filed).status, 200, "the status with a token of the file")
    pages, cursor = [], ""
    while True:
        page = maker.ask("GET", f"?limit=1{cursor}").json
        pages += [item["id"] for item in page["items"]]
        if not page["nextCursor"]:
            break
        cursor = f"&cursor={page['nextCursor']}"
    t.equal(pages, ["admin", "filed", "late"], "the tokens by page")


@scenario()
def issued_open(t):
    """A service that requires no token makes none; one with tokens of the API requires a token, whatever is configured."""
    _, service = stage(t, None, is_started=False)
    configured = service.environment.pop("LARDER_TOKEN")
    service.start()
    reply = service.send("POST", "/v1/tokens", {"Content-Type": "application/json"}, b'{"id":"a","scope":"admin"}')
    t.equal((reply.status, reply.code), (409, "conflict"), "the answer of an open service")
    service.stop()
    service.environment["LARDER_TOKEN"] = configured
    service.start()
    made = Maker(t, service).make("a", "admin")
    service.stop()
    del service.environment["LARDER_TOKEN"]
    service.start()
    t.equal(service.send("GET", "/v1/jobs").status, 401, "the status without a token")
    t.equal(service.api("GET", "/v1/jobs", None, made).status, 200, "the status with a token of the API")
    t.equal(service.api("DELETE", "/v1/tokens/a", None, made).status, 204, "the status of the removal of the last token")
    t.equal(service.send("GET", "/v1/jobs").status, 401, "the status without a token after it")
