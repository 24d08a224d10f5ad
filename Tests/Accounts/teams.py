"""A service for two teams with all kinds of credentials, and the objects of the operations that they call."""

import contextlib
import http.client
import itertools
import json
import re
import threading
import urllib.parse
from dataclasses import dataclass

import jose
from harness import certificates
from mocks.base import Mock, content, serve
from scenarios.readers import Tokens, after, jwt_settings, key_set, mint
from harness.checks import Broken
from harness.http import Reply

SIZE = 5000
OWN, FOREIGN = "a", "b"
PREFIX = f"/o/media/{OWN}/"
ACCEPTED = range(200, 400)


class Files(Mock):
    """Files of two teams. `list-N.m3u8` names files of both directories; names with `slow` wait for `released`."""

    def __init__(self):
        self.released = threading.Event()
        super().__init__()

    def answer(self, request):
        name = request.name.rpartition("/")[2]
        if "slow" in name:
            self.released.wait(60)
        if name.endswith(".m3u8"):
            number = name.removeprefix("list").removesuffix(".m3u8")
            files = (f"part{number}.ts", f"../{FOREIGN}/part{number}.ts", f"../{FOREIGN}/kept.ts")
            lines = "".join(f"#EXTINF:4,\n{file}\n" for file in files)
            body = f"#EXTM3U\n#EXT-X-TARGETDURATION:4\n{lines}#EXT-X-ENDLIST\n".encode()
            return serve(request, body, fields={"Content-Type": "application/vnd.apple.mpegurl"})
        return serve(request, content(request.name, SIZE), fields={"Cache-Control": "max-age=6000"})

    def close(self):
        self.released.set()
        super().close()


@dataclass
class Credential:
    """A kind of credentials. `scope` is empty without a valid token."""

    name: str
    scope: str = ""
    token: str = ""
    is_limited: bool = False
    #: Whether the own objects are inside the limits.
    has_own: bool = True
    #: Whether the token has expired or was revoked.
    is_ended: bool = False
    #: The signature of a content URL; `refusal` is the code of its refusal, `is_genuine`: it is not altered.
    signature: str = ""
    refusal: str = ""
    is_genuine: bool = True
    certificate: tuple | None = None


@dataclass
class Case:
    """An object of an operation."""

    name: str
    kind: str = ""
    #: The values of the parameters in the path.
    place: dict | None = None
    query: dict | None = None
    body: object = None
    #: Whether it lies inside the limits of the limited tokens.
    is_inside: bool = True
    is_public: bool = False
    #: The scope that tokens without limits need, if it is not that of the row.
    whole: str = ""
    #: A limited token with further permissions for it: the one that made it, or one with other limits.
    also: str = ""
    #: The status for readers without limits, if it is not that of the row.
    status: int = 0
    #: Further header fields of the request.
    fields: dict | None = None


class Line:
    """A kept connection of a client."""

    def __init__(self, service, context):
        self.service, self.context, self.connection = service, context, None

    def send(self, method, target, fields, body):
        is_kept = self.connection is not None
        self.connection = self.connection or self.service.connection(self.context)
        try:
            self.connection.request(method, target, body, fields)
            response = self.connection.getresponse()
            reply = Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
            return self.service.remember(reply)
        except (http.client.HTTPException, OSError):
            self.close()
            if not is_kept:
                raise
        # The service has closed the connection after the last response.
        return self.send(method, target, fields, body)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Stage:
    """A service with two teams, all kinds of credentials, and the objects of both teams."""

    def __init__(self, t):
        self.t, self.numbers = t, itertools.count(1)
        authority = certificates.Authority()
        certificate, key = authority.issue("service")
        clients = {name: authority.issue(name, f"DNS:{name}.example") for name in ("studio-a", "stranger")}
        signing_key = jose.SigningKey(t.directory, "key-1")
        (t.directory / "jwks.json").write_bytes(key_set([signing_key]))
        (t.directory / "keys").mkdir()
        (t.directory / "keys" / "k1").write_text(t.vault.new("signingKey"))
        self.upstream = t.mock(Files())
        self.tokens = Tokens(t)
        limits = {"prefixes": [PREFIX]}
        self.credentials = [
            Credential("none"), Credential("a wrong token", token=t.vault.new("readerToken")),
            Credential("an expired token", token=self.tokens.add("past", "admin", expiresAt=after(-60)), is_ended=True),
            Credential("a revoked token", token=self.tokens.add("gone", "admin"), is_ended=True),
            *(Credential(scope, scope, self.tokens.add(scope, scope)) for scope in ("read", "write", "sign", "admin")),
            *(
                Credential(f"limited {scope}", scope, self.tokens.add(f"limited-{scope}", scope, **limits), is_limited=True)
                for scope in ("read", "write", "sign", "admin")
            ),
            Credential(
                "a limited JWT", "write", mint(t, signing_key, scope="write", larder_prefixes=[PREFIX]), is_limited=True
            ),
            Credential("an expired JWT", token=mint(t, signing_key, scope="admin", seconds=-120), is_ended=True),
            Credential("a limited certificate", "write", is_limited=True, certificate=clients["studio-a"]),
            Credential("an unknown certificate", certificate=clients["stranger"]),
        ]  # fmt: skip
        if not t.is_brief:
            secret = self.tokens.add("limited-elsewhere", "admin", origins=["open"])
            self.credentials.append(Credential("limited elsewhere", "admin", secret, is_limited=True, has_own=False))
        self.neighbour = self.tokens.add("neighbour", "write", prefixes=[f"/o/media/{FOREIGN}/"])
        # The same subject as the other JWT, with the limits of the other team.
        self.namesake = mint(t, signing_key, scope="write", larder_prefixes=[f"/o/media/{FOREIGN}/"])
        self.tokens.entries.append({"id": "studio", "subjects": ["CN=studio-a"], "scope": "write", **limits})
        origins = t.origin("media", f"{self.upstream.url}/media", access="token")
        origins |= t.origin("open", f"{self.upstream.url}/open", access="public")
        self.service = t.service(
            {
                **origins, **jwt_settings(jwksFile=str(t.directory / "jwks.json")), "access.tokensFile": self.tokens.write(),
                "access.signing.keysDirectory": str(t.directory / "keys"), "access.signing.grace": "0s",
                "listen.tls.certificateFile": str(certificate), "listen.tls.keyFile": str(key),
                "listen.tls.clientCAFile": str(authority.file), "listen.tls.clientAuthentication": "optional",
                "upstream.allowedHosts": [f"127.0.0.1:{self.upstream.port}"], "upstream.allowPrivateAddresses": True,
            },
            is_started=False,
        )  # fmt: skip
        self.service.tls = certificates.client_context(authority.file)
        self.service.start()
        contexts = {c.certificate: certificates.client_context(authority.file, c.certificate) for c in self.credentials}
        self.lines = {certificate: Line(self.service, context) for certificate, context in contexts.items()}
        self.revoke()
        self.held, self.made = [], {}
        self.credentials += self.signatures()
        self.build()

    def revoke(self):
        """Removes a token that was valid before."""
        self.ask("GET", "/version", token=self.named_credential("a revoked token").token)
        self.tokens.entries = [entry for entry in self.tokens.entries if entry["id"] != "gone"]
        self.tokens.write()

    def settle(self):
        """Waits until the revoked token is refused, and the signature of the expired URL has expired."""
        revoked = {"Authorization": f"Bearer {self.named_credential('a revoked token').token}"}
        expired = f"{PREFIX}kept.ts?{self.named_credential('an expired signed URL').signature}"
        self.t.eventually(lambda: self.send("GET", "/version", None, revoked).status == 401, "a revoked token is accepted")
        self.t.eventually(lambda: self.send("GET", expired).status == 403, "an expired signature is accepted")

    def named_credential(self, name):
        return next(credential for credential in self.credentials if credential.name == name)

    def close(self):
        for line in self.lines.values():
            line.close()
        self.release()

    # Requests

    def ask(self, method, target, value=None, token=None, fields=None, statuses=ACCEPTED):
        """A request that must succeed, by default of the administrator."""
        reply = self.send(method, target, value, {"Authorization": f"Bearer {token or self.service.token}", **(fields or {})})
        if reply.status not in statuses:
            raise Broken(f"{method} {target}: the answer is {reply}")
        return reply.json if reply.body[:1] in (b"{", b"[") else reply

    def send(self, method, target, value=None, fields=None, certificate=None):
        fields, body = dict(fields or {}), None
        if value is not None:
            body = json.dumps(value).encode()
            fields["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return self.lines[certificate].send(method, target, fields, body)

    def call(self, operation, row, credential, case):
        """The reply to an operation with a credential on an object."""
        path = re.sub(r"\{(\w+)\}", lambda match: {**row.place, **(case.place or {})}[match[1]], operation.path)
        query = [row.query, urllib.parse.urlencode(case.query or {}), credential.signature]
        target = "?".join(filter(None, [path, "&".join(filter(None, query))]))
        fields = {**row.fields, **(case.fields or {})}
        if credential.token:
            fields["Authorization"] = f"Bearer {credential.token}"
        value = case.body if case.body is not None else row.body
        return self.send(operation.method, target, value, fields, credential.certificate)

    def signatures(self):
        """Signed URLs of the own directory: a valid one, an expired one and an altered one."""

        def minted(seconds):
            value = {"path": f"{PREFIX}x", "scope": "prefix", "expiresInSeconds": seconds}
            return urllib.parse.urlsplit(self.keep_signature(self.ask("POST", "/v1/signatures", value))["url"]).query

        valid, expired = minted(600), minted(1)
        signature = re.search(r"sig=([^&]+)", valid)[1]
        altered = valid.replace(signature, self.t.vault.keep("readerSignature", signature[::-1]))
        return [
            Credential("a signed URL", signature=valid),
            Credential("an expired signed URL", signature=expired, refusal="tokenExpired"),
            Credential("an altered signed URL", signature=altered, refusal="tokenInvalid", is_genuine=False),
        ]

    def keep_signature(self, document):
        """Keeps the signature of a minted URL as a secret."""
        for secret in re.findall(r"sig=([^&]+)", document.get("url", "")):
            self.t.vault.keep("readerSignature", secret)
        return document

    # Objects

    def build(self):
        """The objects that no permitted request uses up."""
        for path in ("kept.ts", "list.m3u8"):
            for team in (OWN, FOREIGN):
                self.made[team, path] = self.stored(team, path)
        self.public = self.stored(FOREIGN, "kept.ts", "open")
        self.jobs = {name: make() for name, make in self.ended_jobs().items()}
        self.scrub = self.ask("POST", "/v1/scrubs", {})["scrubId"]
        self.t.eventually(lambda: self.ask("GET", f"/v1/scrubs/{self.scrub}")["state"] != "running", "a scrub does not end")

    def stored(self, team, path=None, origin="media"):
        """The identifier of a stored asset; without a path it is a new one."""
        path = path or f"new-{next(self.numbers)}.bin"
        self.ask("GET", f"/o/{origin}/{team}/{path}")
        items = self.ask("GET", f"/v1/assets?key=/o/{origin}/{team}/{path}")["items"]
        if not items:
            raise Broken(f"{team}/{path} is not stored")
        return items[0]["assetId"]

    def asset(self, team, row):
        return self.stored(team) if row.consumes else self.made[team, "kept.ts"]

    def job(self, teams, token=None, path="kept.ts", **item):
        """A finished job with one item for each team."""
        items = [{"origin": "media", "path": f"{team}/{path}", **item} for team in teams]
        return self.ask("POST", "/v1/jobs", {"items": items}, token, {"Prefer": "wait=60"})["jobId"]

    def running_job(self, teams, token=None):
        """A job that waits for the upstream."""
        paths = [f"{team}/slow-{next(self.numbers)}.bin" for team in teams]
        items = [{"origin": "media", "path": path} for path in paths]
        job = self.ask("POST", "/v1/jobs", {"items": items}, token)["jobId"]
        self.await_requests(paths)
        self.held.append(lambda: self.ask("DELETE", f"/v1/jobs/{job}", statuses=range(200, 500)))
        return job

    def plan(self, teams, row, token=None):
        """A dry run of a purge."""
        name = f"new-{next(self.numbers)}.bin" if row.consumes else "kept.ts"
        for team in teams:
            self.stored(team, name)
        keys = [f"/o/media/{team}/{name}" for team in teams]
        report = self.ask("POST", "/v1/purges", {"keys": keys, "dryRun": True}, token)
        if report["assets"] != len(keys):
            raise Broken(f"the plan for {keys} is {report}")
        plan = report["planId"]
        self.held.append(lambda: self.ask("DELETE", f"/v1/purges/{plan}", statuses=range(200, 500)))
        return plan

    def fill(self, team):
        """A transfer that waits for the upstream."""
        path = f"{team}/slow-{next(self.numbers)}.bin"
        connection = self.service.connection()
        connection.request("GET", f"/o/media/{path}", None, {"Authorization": f"Bearer {self.service.token}"})
        self.held.append(connection.close)
        self.await_requests([path])
        return self.ask("GET", f"/v1/fills?prefix=/o/media/{path}")["items"][0]["fillId"]

    def await_requests(self, paths):
        """Waits until the upstream has requests for all paths."""
        if not self.upstream.wait(lambda: all(self.upstream.of(path) for path in paths)):
            raise Broken(f"no requests for {paths} are at the upstream")

    def origin(self, row):
        if not row.consumes:
            return "media"
        name = f"spare-{next(self.numbers)}"
        self.ask("PUT", f"/v1/origins/{name}", {"baseURL": self.upstream.url, "allowPrivateAddresses": True})
        return name

    def release(self):
        """Removes the objects of the last row."""
        for action in self.held:
            with contextlib.suppress(http.client.HTTPException, OSError):
                action()
        self.held.clear()

    def url(self, team):
        return f"{self.upstream.url}/media/{team}/kept.ts"

    def cases(self, row):
        """The objects of a row: functions that make them."""
        return getattr(self, f"cases_{row.about}")(row)

    @staticmethod
    def of(*cases):
        return {case.name: (lambda case=case: case) for case in cases}

    def cases_service(self, row):
        return self.of(Case("the service"))

    def cases_dashboard(self, row):
        return self.of(Case("a file", place={"path": "style.css"}))

    def cases_content(self, row):
        def case(name, team, origin="media", **members):
            return Case(name, "content", {"origin": origin, "path": f"{team}/kept.ts"}, **members)

        return self.of(
            case("own", OWN), case("foreign", FOREIGN, is_inside=False),
            case("public", FOREIGN, "open", is_inside=False, is_public=True),
        )  # fmt: skip

    def cases_url(self, row):
        return self.of(Case("by URL", query={"url": self.url(OWN)}, is_inside=False))

    def in_path(self, parameter, makers, **more):
        """Cases whose object is named in the path, and an unknown one."""
        cases = {
            name: lambda name=name, make=make: Case(
                name, place={parameter: make()}, is_inside=name == "own", also="limited write" if name == "made" else ""
            )
            for name, make in makers.items()
        }
        unknown = more.get("unknown", "0123456789abcdef" * 2)
        return {**cases, **self.of(Case("unknown", place={parameter: unknown}, is_inside=False, status=404))}

    def cases_asset(self, row):
        return self.in_path("assetId", {
            "own": lambda: self.asset(OWN, row), "foreign": lambda: self.asset(FOREIGN, row),
        })  # fmt: skip

    def cases_contentOfAsset(self, row):
        # Content of a public origin is public by its path only.
        public = Case("public, by identifier", place={"assetId": self.public}, is_inside=False, also="limited elsewhere")
        return {**self.cases_asset(row), **self.of(public)}

    def cases_playlist(self, row):
        return self.in_path("assetId", {
            "own": lambda: self.made[OWN, "list.m3u8"], "foreign": lambda: self.made[FOREIGN, "list.m3u8"],
        })  # fmt: skip

    def playlist_job(self, token=None):
        path = f"list-{next(self.numbers)}.m3u8"
        return self.job([OWN], token, path, play={"seconds": 60})

    def ended_jobs(self):
        return {
            "own": lambda: self.job([OWN]), "foreign": lambda: self.job([FOREIGN], self.neighbour),
            "namesake": lambda: self.job([FOREIGN], self.namesake), "mixed": lambda: self.job([OWN, FOREIGN]),
            "playlist": lambda: self.playlist_job(),
            "made": lambda: self.playlist_job(self.named_credential("limited write").token),
        }  # fmt: skip

    def cases_job(self, row):
        return self.in_path("jobId", {name: (lambda job=job: job) for name, job in self.jobs.items()})

    def cases_endedJob(self, row):
        return self.in_path("jobId", {**self.ended_jobs(), "superseding": self.superseding_job})

    def superseding_job(self):
        value = {"items": [self.named()["own"][0]], "queue": "ended", "supersede": True}
        return self.ask("POST", "/v1/jobs", value, None, {"Prefer": "wait=60"})["jobId"]

    def cases_runningJob(self, row):
        return self.in_path("jobId", {
            "own": lambda: self.running_job([OWN]), "foreign": lambda: self.running_job([FOREIGN], self.neighbour),
            "namesake": lambda: self.running_job([FOREIGN], self.namesake),
            "mixed": lambda: self.running_job([OWN, FOREIGN]),
        })  # fmt: skip

    def schedule(self, teams, token=None):
        name, items = f"s-{next(self.numbers)}", [{"origin": "media", "path": f"{team}/kept.ts"} for team in teams]
        self.ask("PUT", f"/v1/schedules/{name}", {"repeat": "daily", "job": {"items": items}}, token)
        self.held.append(lambda: self.ask("DELETE", f"/v1/schedules/{name}", statuses=(204, 404)))
        return name

    def cases_schedules(self, row):
        return self.of(Case("all", also="limited elsewhere"))

    def cases_schedule(self, row):
        return self.in_path("name", {
            "own": lambda: self.schedule([OWN]), "foreign": lambda: self.schedule([FOREIGN], self.neighbour),
            "mixed": lambda: self.schedule([OWN, FOREIGN]),
        })  # fmt: skip

    def cases_newSchedule(self, row):
        own, foreign, url = (value for value, _ in self.named().values())

        def maker(name, items, is_inside=False, **more):
            def make():
                place = {"name": f"n-{next(self.numbers)}"}
                self.held.append(lambda: self.ask("DELETE", f"/v1/schedules/{place['name']}", statuses=(204, 404)))
                body = {"repeat": "daily", "job": {"items": items, **more}}
                return Case(name, place=place, body=body, is_inside=is_inside)

            return make

        return {
            "own": maker("own", [own], True), "foreign": maker("foreign", [foreign]),
            "own and foreign": maker("own and foreign", [own, foreign]), "by URL": maker("by URL", [url]),
            "supersede": maker("supersede", [own], queue="q", supersede=True),
        }  # fmt: skip

    def token(self, *teams):
        """A token of the API that reads content of teams."""
        name = f"t-{next(self.numbers)}"
        body = {"id": name, "scope": "read", "prefixes": [f"/o/media/{team}/" for team in teams]}
        self.t.vault.keep("readerToken", self.ask("POST", "/v1/tokens", body)["token"])
        self.held.append(lambda: self.ask("DELETE", f"/v1/tokens/{name}", statuses=(204, 404)))
        return name

    def cases_tokens(self, row):
        return self.of(Case("all", query={"limit": 1000}, also="limited elsewhere"))

    def cases_token(self, row):
        return self.in_path("tokenId", {
            "own": lambda: self.token(OWN), "foreign": lambda: self.token(FOREIGN), "mixed": lambda: self.token(OWN, FOREIGN),
        })  # fmt: skip

    def cases_newToken(self, row):
        def maker(name, is_inside=False, **limits):
            def make():
                identity = f"n-{next(self.numbers)}"
                self.held.append(lambda: self.ask("DELETE", f"/v1/tokens/{identity}", statuses=(204, 404)))
                return Case(name, body={"id": identity, "scope": "read", **limits}, is_inside=is_inside)

            return make

        return {
            "own": maker("own", True, prefixes=[PREFIX]), "foreign": maker("foreign", prefixes=[f"/o/media/{FOREIGN}/"]),
            "own and foreign": maker("own and foreign", prefixes=[PREFIX, f"/o/media/{FOREIGN}/"]),
            "of the origin": maker("of the origin", origins=["media"]), "of all content": maker("of all content"),
        }  # fmt: skip

    def cases_plan(self, row):
        return self.in_path("planId", {
            "own": lambda: self.plan([OWN], row), "foreign": lambda: self.plan([FOREIGN], row, self.neighbour),
            "namesake": lambda: self.plan([FOREIGN], row, self.namesake),
            "mixed": lambda: self.plan([OWN, FOREIGN], row),
        })  # fmt: skip

    def cases_fill(self, row):
        return self.in_path(
            "fillId", {"own": lambda: self.fill(OWN), "foreign": lambda: self.fill(FOREIGN)}, unknown="999999"
        )

    def cases_scrub(self, row):
        return self.of(Case("a scrub", place={"scrubId": self.scrub}))

    def cases_origin(self, row):
        return {"an origin": lambda: Case("an origin", place={"name": self.origin(row)})}

    def cases_newOrigin(self, row):
        body = {"baseURL": self.upstream.url, "allowPrivateAddresses": True}
        return {"a new origin": lambda: Case("a new origin", place={"name": f"fresh-{next(self.numbers)}"}, body=body)}

    def cases_assets(self, row):
        return self.of(
            Case("own", query={"prefix": PREFIX}), Case("own, by key", query={"prefix": PREFIX, "key": f"{PREFIX}kept.ts"}),
            *(
                Case(str(query), query=query, is_inside=False)
                for query in (
                    {}, {"prefix": f"/o/media/{FOREIGN}/"}, {"prefix": "/o/media/"}, {"prefix": PREFIX[:-1]},
                    {"origin": "media"}, {"key": f"/o/media/{FOREIGN}/kept.ts"}, {"url": self.url(FOREIGN)}, {"tag": "x"},
                )
            ),
        )  # fmt: skip

    def cases_usage(self, row):
        return self.of(
            Case("own", query={"by": "path", "prefix": PREFIX}),
            *(
                Case(str(query), query=query, is_inside=False)
                for query in (
                    {}, {"by": "path"}, {"by": "path", "prefix": f"/o/media/{FOREIGN}/"}, {"by": "path", "prefix": "/o/media/"}, {"by": "tag"},
                )
            ),
        )  # fmt: skip

    def cases_fills(self, row):
        return self.of(
            Case("own", query={"prefix": PREFIX}), Case("an own asset", query={"assetId": self.made[OWN, "kept.ts"]}),
            *(
                Case(str(query), query=query, is_inside=False)
                for query in (
                    {}, {"prefix": f"/o/media/{FOREIGN}/"}, {"origin": "media"},
                    {"assetId": self.made[FOREIGN, "kept.ts"]}, {"assetId": "0123456789abcdef" * 2},
                )
            ),
        )  # fmt: skip

    def cases_requests(self, row):
        return self.of(Case("all", query={"limit": 1000, "total": "true"}, also="limited elsewhere"))

    def cases_events(self, row):
        return self.of(
            Case("the usual topics", is_inside=False),
            Case("requests", query={"topics": "requests"}, whole="admin", also="limited elsewhere"),
            Case("requests and others", query={"topics": "requests,health"}, whole="admin", is_inside=False),
        )

    def cases_jobs(self, row):
        return self.of(
            Case("all", query={"limit": 1000}, also="limited elsewhere"),
            Case("the total", query={"total": "true"}, is_inside=False),
        )

    def named(self):
        """Names of assets: of a request, and whether they are inside the limits."""
        return {
            "own": ({"origin": "media", "path": f"{OWN}/kept.ts"}, True),
            "foreign": ({"origin": "media", "path": f"{FOREIGN}/kept.ts"}, False),
            "by URL": ({"url": self.url(OWN)}, False),
        }

    def cases_named(self, row):
        return self.of(*(Case(name, query=value, is_inside=inside) for name, (value, inside) in self.named().items()))

    def cases_known(self, row):
        return {
            **self.cases_named(row),
            **self.of(
                Case("an own asset", query={"assetId": self.made[OWN, "kept.ts"]}),
                Case("a foreign asset", query={"assetId": self.made[FOREIGN, "kept.ts"]}, is_inside=False),
                Case("unknown", query={"assetId": "0123456789abcdef" * 2}, is_inside=False, status=404),
            ),
        }

    def cases_probe(self, row):
        items = [value for value, _ in self.named().values()]
        return self.of(
            *(Case(name, body=value, is_inside=inside) for name, (value, inside) in self.named().items()),
            Case("own, in a list", body={"items": items[:1]}),
            Case("own and foreign", body={"items": items[:2]}, is_inside=False),
        )

    def cases_folder(self, row):
        def case(name, path, is_inside):
            return Case(name, body={"origin": "media", "path": path, "format": "html"}, is_inside=is_inside)

        return self.of(
            case("own", f"{OWN}/", True), case("foreign", f"{FOREIGN}/", False), case("the whole origin", "", False),
        )  # fmt: skip

    def cases_newJob(self, row):
        own, foreign, url = (value for value, _ in self.named().values())
        # A file that is not stored yet, so that a fetch would be seen.
        new = {"origin": "media", "path": f"{FOREIGN}/new.bin"}
        return {
            **self.of(
                Case("own", body={"items": [own]}), Case("foreign", body={"items": [foreign], "pinned": True}, is_inside=False),
                Case("own and foreign", body={"items": [own, new], "tags": ["x"]}, is_inside=False),
                Case("by URL", body={"items": [url]}, is_inside=False),
                Case("with a key", body={"items": [{**own, "key": "chosen"}]}, is_inside=False),
                Case("a foreign asset", body={"items": [{"assetId": self.made[FOREIGN, "kept.ts"]}]}, is_inside=False),
                Case("supersede", body={"items": [own], "queue": "q", "supersede": True}, is_inside=False),
                Case("after a foreign asset", body={"items": [own], "when": {**foreign, "atPercent": 50}}, is_inside=False,
                     status=202, fields={"Prefer": "wait=0"}),
                Case("a dry run", body={"items": [own], "dryRun": True}),
                Case("a foreign dry run", body={"items": [own, new], "dryRun": True}, is_inside=False),
                Case("a dry run of a foreign list", body={
                    "items": [{"origin": "media", "path": f"{FOREIGN}/", "list": {"format": "html"}}], "dryRun": True
                }, is_inside=False),
            ),
            "playlist": lambda: Case("playlist", body={
                "items": [{"origin": "media", "path": f"{OWN}/list-{next(self.numbers)}.m3u8", "play": {"seconds": 60}}],
                "pinned": True, "tags": ["playlist"],
            }),
        }  # fmt: skip

    def cases_signature(self, row):
        def case(name, path, **members):
            return Case(name, body={"path": path, "expiresInSeconds": 60, **members}, is_inside=name.startswith("own"))

        return self.of(
            case("own", f"{PREFIX}x.ts"), case("own directory", f"{PREFIX}x.ts", scope="prefix"),
            case("foreign", f"/o/media/{FOREIGN}/x.ts"), case("foreign directory", f"/o/media/{FOREIGN}/x.ts", scope="prefix"),
            case("the whole origin", "/o/media/x.ts", scope="prefix"),
        )  # fmt: skip

    def cases_purge(self, row):
        foreign = f"/o/media/{FOREIGN}/kept.ts"
        return self.of(
            Case("own", body={"prefix": f"{PREFIX}none-"}),
            Case("own, in the background", body={"prefix": f"{PREFIX}none-"}, status=202, fields={"Prefer": "respond-async"}),
            Case("own, by key", body={"keys": [f"{PREFIX}none.ts"]}),
            Case("own, by identifier", body={"assetIds": [self.made[OWN, "kept.ts"]], "soft": True}),
            *(
                Case(str(value), body={**value, "soft": True}, is_inside=False)
                for value in (
                    {"prefix": f"/o/media/{FOREIGN}/"}, {"prefix": "/o/media/"}, {"origin": "media"}, {"keys": [foreign]},
                    {"keys": [f"{PREFIX}kept.ts", foreign]}, {"patterns": ["/o/media/*/kept.ts"]}, {"tag": "x"},
                    {"assetIds": [self.made[OWN, "kept.ts"], self.made[FOREIGN, "kept.ts"]]}, {"urls": [self.url(FOREIGN)]},
                )
            ),
        )  # fmt: skip

    # State

    def state(self, cases):
        """All that a refused request must leave alone; `cases` are the objects of the requests."""
        members = ("key", "pinned", "pinnedUntilAt", "tags", "cachedBytes", "ttlSeconds", "verify", "freshUntilAt")
        places = [case.place for case in cases if case.place and not case.status]
        paths = [f"/v1/jobs/{place['jobId']}" for place in places if "jobId" in place]
        paths += [f"/v1/purges/{place['planId']}" for place in places if "planId" in place]
        parts = {
            "assets": {item["assetId"]: {name: item.get(name) for name in members} for item in self.items("/v1/assets")},
            "the newest job": {item["jobId"]: "present" for item in self.items("/v1/jobs", 1)},
            "the state of": {path: self.ask("GET", path, statuses=(200, 404)).get("state") for path in paths},
            "fills": {item["fillId"]: item["key"] for item in self.items("/v1/fills")},
            "schedules": {item["name"]: item["createdAt"] for item in self.ask("GET", "/v1/schedules")["items"]},
            "origins": {item["name"]: item for item in self.ask("GET", "/v1/origins")["items"]},
            "tokens": {item["id"]: item for item in self.items("/v1/tokens")},
            "scrubs": {item["scrubId"]: "present" for item in self.items("/v1/scrubs")},
            "policy": self.ask("GET", "/v1/policy"),
        }
        return {(part, name): value for part, values in parts.items() for name, value in values.items()}

    def settled(self, cases):
        """The state once everything has ended that earlier requests have begun: their fills, which end after the responses,
        and what follows a fill."""
        fills = lambda: [item["key"] for item in self.items("/v1/fills") if "slow" not in item["key"]]  # noqa: E731
        self.t.eventually(lambda: not fills(), "fills of earlier requests go on")
        states = [None]

        def is_stable():
            states.append(self.state(cases))
            return states[-1] == states[-2]

        self.t.eventually(is_stable, "the state changes without requests")
        return states[-1]

    def items(self, path, limit=1000):
        return self.ask("GET", f"{path}?limit={limit}")["items"]
