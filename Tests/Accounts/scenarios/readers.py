"""Permissions of readers: the tokens file, JSON Web Tokens, and the figures of each token."""

import base64
import contextlib
import csv
import datetime
import hashlib
import io
import json
import time

import jose
from jose import SigningKey
from mocks.base import Answer, Mock, content, serve
from harness.http import Reply

from . import scenario

SIZE = 300_000
ISSUER, AUDIENCE = "https://issuer.example", "larder-test"


class Files(Mock):
    """Public files; each name exists."""

    def answer(self, request):
        if request.name.endswith("title.m3u8"):
            variants = "".join(f"#EXT-X-STREAM-INF:BANDWIDTH=1\n../{name}/list.m3u8\n" for name in ("private", "public"))
            return serve(request, f"#EXTM3U\n{variants}".encode(), fields={"Cache-Control": "max-age=600"})
        if request.name.endswith(".m3u8"):
            segments = "".join(f"#EXTINF:4,\n{name}.ts\n" for name in ("one", "two"))
            body = f"#EXTM3U\n#EXT-X-TARGETDURATION:4\n{segments}#EXT-X-ENDLIST\n".encode()
            return serve(request, body, fields={"Content-Type": "application/vnd.apple.mpegurl"})
        name = request.name.lstrip("/")
        return serve(request, content(name, SIZE), fields={"Cache-Control": "max-age=600"})


def after(seconds):
    """A time in RFC 3339."""
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


class Tokens:
    """A tokens file; `add` returns the secret of a new token."""

    def __init__(self, t):
        self.t, self.file, self.entries = t, t.directory / "tokens.json", []

    def add(self, identity, scope, **members):
        secret = self.t.vault.new("readerToken")
        digest = hashlib.sha256(secret.encode()).hexdigest()
        self.entries.append({"id": identity, "sha256": digest, "scope": scope, **members})
        return secret

    def write(self, text=None):
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"tokens": self.entries}, indent=2) if text is None else text)
        part.replace(self.file)
        return str(self.file)


def stage(t, tokens, settings=None, **options):
    """Two origins whose content needs a token."""
    upstream = t.mock(Files())
    origins = t.origin("media", f"{upstream.url}/media", access="token") | t.origin(
        "other", f"{upstream.url}/other", access="token"
    )
    access = {"access.tokensFile": tokens.write()} if tokens else {}
    return upstream, t.service({**origins, **access, **(settings or {})}, **options)


@scenario()
def tokens_scopes(t):
    """Scopes: `read` for content and views, `write` for jobs and purges, `admin` for everything else."""
    tokens = Tokens(t)
    secrets = {scope: tokens.add(f"{scope}-token", scope) for scope in ("read", "write", "admin")}
    _, service = stage(t, tokens)
    item = {"items": [{"origin": "media", "path": "job.bin"}]}
    origin = {"baseURL": "http://127.0.0.1:9/x", "allowPrivateAddresses": True}
    cases = [
        ("GET", "/o/media/a.bin", None, "read"), ("GET", "/v1/stats", None, "read"), ("GET", "/metrics", None, "read"),
        ("GET", "/v1/assets", None, "read"), ("POST", "/v1/jobs", item, "write"),
        ("POST", "/v1/purges", {"origin": "other", "soft": True}, "write"), ("PUT", "/v1/origins/new", origin, "admin"),
        ("PATCH", "/v1/policy", {"maxIdleSeconds": 1000}, "admin"), ("GET", "/v1/configuration", None, "admin"),
        ("DELETE", "/v1/origins/new", None, "admin"),
    ]  # fmt: skip
    order = ["read", "write", "admin"]
    for method, path, value, needed in cases:
        for scope in order:
            merge = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None
            reply = service.api(method, path, value, secrets[scope], merge)
            subject = f"{method} {path} with {scope}"
            if order.index(scope) >= order.index(needed):
                t.check(reply.status < 300, f"{subject}: the answer is {reply}")
            else:
                t.refused(reply, subject, (403,), ("tokenScope", "forbidden"), needed)
    reply = service.api("GET", "/v1/stats", token=t.vault.new("readerToken"))
    t.refused(reply, "an unknown token", (401,), ("unauthorized",))
    t.refused(service.send("GET", "/o/media/a.bin"), "no token", (401,), ("unauthorized",), "read")
    for field in (
        "Bearer",
        "Bearer ",
        f"Basic {secrets['admin']}",
        f"Bearer {secrets['admin'][:-1]}",
        f"Bearer {secrets['admin']}x",
    ):
        reply = service.send("GET", "/v1/stats", {"Authorization": field})
        t.check(reply.status == 401, f"a malformed Authorization: the answer is {reply}")


@scenario()
def tokens_places(t):
    """Origins and prefixes of tokens; cached content, HEAD, other routes and spellings of paths obey them, too."""
    tokens = Tokens(t)
    origin = tokens.add("one-origin", "read", origins=["media"])
    prefix = tokens.add("one-prefix", "read", prefixes=["/o/media/public/"])
    upstream, service = stage(t, tokens, {"upstream.allowPrivateAddresses": True})
    service.settings["upstream.allowedHosts"] = [f"127.0.0.1:{upstream.port}"]
    for path in ("/o/media/private.bin", "/o/media/public/a.bin", "/o/other/a.bin", "/o/media/publicity.bin"):
        t.equal(service.read(path).status, 200, f"the status of {path} with the admin token")
    t.equal(service.read("/o/media/private.bin", token=origin).status, 200, "a read of the permitted origin")
    reply = service.read("/o/media/public/a.bin", token=prefix)
    t.bytes(reply, content("media/public/a.bin", SIZE), "a read below the prefix")
    t.equal(service.read("/o/media/public/new.bin", "0-9", token=prefix).status, 206, "a range of new content below the prefix")
    forbidden = [
        ("/o/other/a.bin", origin), ("/o/other/new.bin", origin), ("/o/media/private.bin", prefix), ("/o/other/a.bin", prefix),
        ("/o/media/publicity.bin", prefix), ("/o/media/public/../private.bin", prefix), ("/o/media/public", prefix),
        ("/o/media/public/%2e%2e/private.bin", prefix), ("/o/media/public/..%2Fprivate.bin", prefix),
        ("/o/media/public%2F..%2Fprivate.bin", prefix), ("/o/media//public/../private.bin", prefix),
        ("/o/media/PUBLIC/a.bin", prefix), ("/o/./media/private.bin", prefix),
    ]  # fmt: skip
    for path, token in forbidden:
        for method in ("GET", "HEAD"):
            reply = service.read(path, token=token, method=method)
            t.check(reply.status in (400, 403, 404), f"{method} {path} outside the permission: the answer is {reply}")
            t.check(content("media/private.bin", SIZE)[:32] not in reply.body, f"{path}: bytes outside the permission were sent")
            if reply.status == 403 and method == "GET":
                t.equal(reply.code, "tokenScope", f"the problem of {path}")
    for asset in service.api("GET", "/v1/assets").json.get("items", []):
        path = f"/v1/assets/{asset['assetId']}/content"
        reply = service.read(path, token=prefix)
        is_permitted = asset.get("key", "").startswith("/o/media/public/")
        t.check((reply.status == 200) == is_permitted, f"{asset.get('key')} by its identifier: the answer is {reply}")
    # Two tokens on one connection: an answer for the first must not serve the second.
    with contextlib.closing(service.connection()) as connection:
        for token, status in ((service.token, 200), (prefix, 403)) * 3:
            connection.request("GET", "/o/media/private.bin", None, {"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            body = response.read()
            t.equal(response.status, status, "the status on a shared connection")
            t.check(status == 200 or len(body) < 2000, "bytes were sent for the other token of a connection")
    refused = service.api("POST", "/v1/jobs", {"items": [{"origin": "media", "path": "x.bin"}]}, prefix)
    t.refused(refused, "a job with a read token", (403,), ("tokenScope", "forbidden"), "write")


@scenario()
def tokens_names(t):
    """Upstream URLs name mounted assets with the rights of their origin and path; lists stay inside the permission."""
    tokens = Tokens(t)
    prefix = tokens.add("one-prefix", "write", prefixes=["/o/media/public/"])
    upstream, service = stage(t, tokens)
    inside, outside = (f"{upstream.url}/media/{name}/new.bin" for name in ("public", "private"))

    def job(item, **members):
        return service.api("POST", "/v1/jobs", {"items": [item], **members}, prefix, fields={"Prefer": "wait=30"})

    for item in ({"url": inside}, {"url": f"{upstream.url}/%6Dedia/public/other.bin"}):
        reply = job(item)
        t.equal((reply.status, reply.json.get("state")), (200, "succeeded"), f"a job by URL inside the permission ({reply})")
    reply = service.read("/o/media/public/new.bin", token=prefix)
    t.bytes(reply, content("media/public/new.bin", SIZE), "a read of the mounted asset")
    t.equal(len(upstream.of("public/new.bin")), 1, "the requests for the asset of a job by URL")
    t.equal(service.api("POST", "/v1/probe", {"url": inside}, prefix).status, 200, "a probe by URL inside the permission")
    foreign = {
        "the permission": outside, "it by dots": f"{upstream.url}/media/public/../private/new.bin",
        "the origin": f"{upstream.url}/other/new.bin", "all origins": f"{upstream.url}/new.bin",
    }  # fmt: skip
    for name, url in foreign.items():
        for reply in (job({"url": url}), job({"url": url}, dryRun=True), service.api("POST", "/v1/probe", {"url": url}, prefix)):
            t.equal((reply.status, reply.code), (403, "tokenScope"), f"a URL outside {name}")
    t.check(not upstream.of("private"), "a file outside the permission was fetched")
    absolute = service.api("POST", "/v1/jobs", {"items": [{"url": foreign["all origins"]}]})
    t.equal((absolute.status, absolute.code), (403, "upstreamForbidden"), "a URL below no origin with the admin token")

    # A multivariant playlist names a playlist outside the permission.
    item = {"origin": "media", "path": "public/title.m3u8", "list": {}}
    plan = job(item, dryRun=True).json
    paths = {entry["path"] for entry in plan.get("entries", [])}
    t.equal(paths, {f"public/{name}" for name in ("title.m3u8", "list.m3u8", "one.ts", "two.ts")}, "the files of a playlist")
    t.equal(plan.get("skippedEntries"), 1, "the playlist outside the permission")
    t.equal(job({**item, "path": "private/list.m3u8"}, dryRun=True).code, "tokenScope", "a list outside the permission")
    ended = job(item)
    items = service.api("GET", f"/v1/jobs/{ended.json['jobId']}/items", token=prefix).json["items"]
    errors = {entry["path"]: entry["error"]["code"] for entry in items if entry["error"]}
    t.equal(errors, {"private/list.m3u8": "tokenScope"}, "the errors of a job with the list")
    t.check(not upstream.of("private"), "a playlist outside the permission was fetched")


@scenario()
def tokens_titles(t):
    """A title names files outside the permission: nothing of them is fetched for the token or shown to it."""
    tokens = Tokens(t)
    prefix = tokens.add("one-prefix", "read", prefixes=["/o/media/public/"])
    upstream, service = stage(t, tokens)
    explain = "/v1/explain?origin=media&path=public/title.m3u8&startSeconds=0&seconds=8&renditions=all"
    cold = service.api("GET", explain, token=prefix).json
    t.check(not upstream.of("private"), "a file outside the permission was fetched")
    for path in ("private/list.m3u8", "private/one.ts", "private/two.ts", "public/one.ts"):
        t.equal(service.read(f"/o/media/{path}").status, 200, f"the status of {path} with the admin token")
    media = f"/v1/assets/{cold['assetId']}/media"
    map_ = f"/v1/assets/{cold['assetId']}/map?by=time&buckets=2"
    warm = service.api("GET", explain, token=prefix).json
    for plan in (cold, warm):
        errors = [(file["error"] or {}).get("code") for file in plan["files"]]
        t.equal(errors[0], "tokenScope", "the error of the file outside the permission")
        t.equal(plan["files"][0]["read"], None, "the plan of the file outside the permission")
        t.equal(errors[1:], [None, None, None], "the errors of the permitted files")
    own, other = service.api("GET", media, token=prefix).json, service.api("GET", media).json
    t.equal([(r["error"] or {}).get("code") for r in own["renditions"]], ["tokenScope", None], "errors of the renditions")
    t.equal((own["renditions"][0]["segments"], own["renditions"][0]["playable"]), (None, []), "the hidden rendition")
    t.equal(own["playable"], [{"startSeconds": 0, "endSeconds": 4}], "the playable time for the token")
    t.equal(other["playable"], [{"startSeconds": 0, "endSeconds": 8}], "the playable time for the administrator")
    shares = [[part["cached"] for part in service.api("GET", map_, token=token).json["buckets"]] for token in (prefix, None)]
    t.equal(shares, [[1, 0], [1, 1]], "the shares for the token and for the administrator")


@scenario()
def tokens_expiry(t):
    """A refusal says that a token has expired; one that expires while the service runs stops working."""
    tokens = Tokens(t)
    past = tokens.add("past", "read", expiresAt=after(-60))
    _, service = stage(t, tokens)
    for path in ("/o/media/a.bin", "/v1/stats"):
        subject = f"{path} with an expired token"
        t.refused(service.read(path, token=past), subject, (401, 403), ("tokenExpired", "unauthorized"), "expired")
    soon = tokens.add("soon", "read", expiresAt=after(8))
    tokens.write()
    t.eventually(lambda: service.read("/o/media/a.bin", token=soon).status == 200, "a token is not accepted before its end")
    t.eventually(lambda: service.read("/o/media/a.bin", token=soon).status in (401, 403), "the token never expires")


def fields_with(token):
    """Header fields with a token in many spellings."""
    return {
        "plain": [f"Bearer {token}"], "lower case": [f"bearer {token}"], "a tab": [f"Bearer\t{token}"],
        "two spaces": [f"Bearer  {token}"], "two fields": ["Basic eDp5", f"Bearer {token}"],
        "two fields, in turn": [f"Bearer {token}", "Basic eDp5"], "a list": [f"Basic eDp5, Bearer {token}"],
        "a list without blanks": [f"Bearer {token},Basic eDp5"], "another scheme": [f"Token {token}"],
        "a parameter": [f'Bearer token="{token}"'], "no scheme": [token],
        "a password": ["Basic " + base64.b64encode(f":{token}".encode()).decode()],
    }  # fmt: skip


def send_fields(service, path, values):
    """A reply to a request with several `Authorization` fields."""
    with contextlib.closing(service.connection()) as connection:
        connection.putrequest("GET", path)
        for value in values:
            connection.putheader("Authorization", value)
        connection.endheaders()
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return service.remember(Reply(response.status, fields, response.read()))


@scenario()
def tokens_revoked(t):
    """A token of Larder that was removed, also while it was stopped, gets 401 and never reaches an upstream."""
    tokens = Tokens(t)
    gone, stays = tokens.add("gone", "read"), tokens.add("stays", "read")
    upstream = t.mock(Files())
    forwarding = t.origin("login", upstream.url, access="public", forward=["Authorization"])
    read = t.vault.new("readerToken")
    _, service = stage(t, tokens, {**forwarding, "access.readToken": read})
    t.equal(service.read("/o/media/a.bin", token=gone).status, 200, "the status before the removal")
    later = tokens.add("later", "read")
    tokens.write()
    t.eventually(lambda: service.read("/o/media/a.bin", token=later).status == 200, "a new token is not accepted")
    tokens.entries = [entry for entry in tokens.entries if entry["id"] != "later"]
    tokens.write()
    t.eventually(lambda: service.read("/o/media/a.bin", token=later).status == 401, "a removed token is accepted")
    service.stop()
    tokens.entries = [entry for entry in tokens.entries if entry["id"] == "stays"]
    tokens.write()
    service.configure({key: value for key, value in service.settings.items() if key != "access.readToken"})
    service.start()
    for token, name in ((gone, "a removed token"), (later, "one removed before"), (read, "the old read token")):
        for spelling, values in fields_with(token).items():
            reply = send_fields(service, "/o/login/media/a.bin", values)
            t.refused(reply, f"{name}, {spelling}", (401,), ("unauthorized",))
        challenge = send_fields(service, "/v1/stats", [f"Bearer {token}"]).fields.get("www-authenticate", "")
        t.check('error="invalid_token"' in challenge, f"{name}: the challenge is {challenge}")
    t.equal(upstream.requests, [], "the requests with tokens of Larder")
    for spelling, values in fields_with(stays).items():
        reply = send_fields(service, f"/o/login/media/{spelling.replace(' ', '-').replace(',', '')}.bin", values)
        t.check(reply.status in (200, 401), f"a valid token, {spelling}: the answer is {reply}")
    t.check(not any("authorization" in request.fields for request in upstream.requests), "a valid token is at the upstream")
    for value in ("Basic eDp5", "Bearer of-the-upstream", 'Digest username="x", response="y"', "Negotiate YII="):
        before = len(upstream.requests)
        t.equal(send_fields(service, f"/o/login/media/{before}.bin", [value]).status, 200, f"the status with {value}")
        sent = [request.fields.get("authorization") for request in upstream.requests[before:]]
        t.equal(set(sent), {value}, f"the fields at the upstream with {value}")
    anonymous = service.send("GET", "/o/media/a.bin").fields.get("www-authenticate", "")
    t.check(anonymous.startswith("Bearer") and "error" not in anonymous, f"without a token the challenge is {anonymous}")


@scenario()
def tokens_rate(t):
    """`maxBytesPerSecond` limits the bytes of one token, over all its connections; others are not limited."""
    tokens = Tokens(t)
    slow, other = tokens.add("slow", "read", maxBytesPerSecond=200_000), tokens.add("other", "read")
    _, service = stage(t, tokens)
    service.read("/o/media/a.bin")
    began = time.monotonic()
    t.bytes(service.read("/o/media/a.bin", token=other), content("media/a.bin", SIZE), "an unlimited read")
    free = time.monotonic() - began
    began = time.monotonic()
    replies = t.together(3, lambda _: service.read("/o/media/a.bin", token=slow))
    seconds = time.monotonic() - began
    for reply in replies:
        t.bytes(reply, content("media/a.bin", SIZE), "a limited read")
    t.check(seconds > 1.5, f"three reads of {SIZE} bytes at 200 kB/s take {seconds:.2f} s only")
    t.check(seconds < 15, f"three reads of {SIZE} bytes at 200 kB/s take {seconds:.2f} s")
    t.check(free < 1, f"an unlimited read takes {free:.2f} s")


@scenario(brief=False)
def tokens_reload(t):
    """The tokens file is read again after a change; a broken file keeps the last good one."""
    tokens = Tokens(t)
    first = tokens.add("first", "read")
    _, service = stage(t, tokens)
    t.equal(service.read("/o/media/a.bin", token=first).status, 200, "the status with the first token")
    second = tokens.add("second", "read")
    tokens.write()
    t.eventually(lambda: service.read("/o/media/a.bin", token=second).status == 200, "a new token is not accepted")
    broken = ("{", '{"tokens":[{"id":"x","sha256":"12","scope":"read"}]}', '{"tokens":[{"id":"x"}]}', '{"tokens":7}', "")
    for text in broken[: 2 if t.is_brief else None]:
        tokens.write(text)
        before = len(service.text())
        t.eventually(lambda before=before: "oken" in service.text()[before:], "a broken tokens file is not logged", 15)
        t.equal(service.read("/o/media/a.bin", token=second).status, 200, f"the status with the broken file {text}")
    tokens.entries = [entry for entry in tokens.entries if entry["id"] != "first"]
    tokens.write()
    t.eventually(lambda: service.read("/o/media/a.bin", token=first).status == 401, "a removed token still works")
    t.equal(service.read("/o/media/a.bin", token=second).status, 200, "the status with the kept token")


@scenario()
def tokens_figures(t):
    """Requests and bytes of each token, in statistics, metrics, CSV and access log."""
    tokens = Tokens(t)
    secrets = {name: tokens.add(name, "read") for name in ("studio-a", "studio-b")}
    _, service = stage(t, tokens, {"upstream.pricePerGigabyte": 0.08})
    for number in range(3):
        service.read("/o/media/a.bin", token=secrets["studio-a"])
        service.read(f"/o/media/b{number}.bin", "0-999", token=secrets["studio-b"])
    expected = {"studio-a": (3, 3 * SIZE, 2 * SIZE), "studio-b": (3, 3000, 0)}
    shown = {}

    def are_counted():
        # A request counts after its response was sent.
        shown.update({entry.get("token"): entry for entry in service.stats().get("readers", [])})
        return all(shown.get(name, {}).get("requests") == figures[0] for name, figures in expected.items())

    t.eventually(are_counted, "the requests do not count")
    for name, (requests, count, cached) in expected.items():
        entry = shown.get(name, {})
        t.equal((entry.get("requests"), entry.get("bytes")), (requests, count), f"requests and bytes of {name}")
        t.equal(entry.get("bytesFromCache"), cached, f"bytesFromCache of {name}")
        t.equal(entry.get("errors"), 0, f"errors of {name}")
        t.check("savedCost" in entry, f"savedCost of {name} is missing")
        for metric, value in (("requests", requests), ("bytes", count), ("bytes_saved", cached)):
            found = service.metric(f"larder_reader_{metric}_total", token=name)
            t.equal(found, value, f"the metric larder_reader_{metric}_total of {name}")
    reply = service.api("GET", "/v1/stats", fields={"Accept": "text/csv"})
    rows = list(csv.reader(io.StringIO(reply.body.decode(errors="replace"))))
    named = [row for row in rows if "studio-a" in row]
    t.check(reply.fields.get("content-type", "").startswith("text/csv") and named, f"no CSV row names the token: {rows[:3]}")
    lines = lambda: [json.loads(line) for line in service.text().splitlines() if '"larder.access"' in line]  # noqa: E731
    t.eventually(lambda: any(line.get("token") == "studio-a" for line in lines()), "the access log does not name the token")


@scenario()
def tokens_command(t):
    """`larder token new` adds a token to the file and prints its secret once; the file has the digest only."""
    tokens = Tokens(t)
    tokens.add("present", "read")
    _, service = stage(t, tokens)
    code, output, errors = service.run(
        "token", "new", "--id", "made", "--scope", "read", "--origin", "media", "--prefix", "/o/media/public/",
        "--expires", "30d",
        "--max-bytes-per-second", "10000000", "--file", tokens.file,
    )  # fmt: skip
    if not t.equal(code, 0, f"the exit code ({errors[:200]})"):
        return
    words = [word.strip('",') for word in (output + errors).split()]
    document = json.loads(tokens.file.read_text())
    entry = next((entry for entry in document["tokens"] if entry["id"] == "made"), {})
    secret = next((word for word in words if hashlib.sha256(word.encode()).hexdigest() == entry.get("sha256")), None)
    if not t.check(secret, f"no printed word has the digest of the file: {entry}"):
        return
    t.vault.keep("readerToken", secret)
    t.check(secret not in tokens.file.read_text(), "the file contains the secret")
    t.equal([entry["id"] for entry in document["tokens"]], ["present", "made"], "the tokens of the file")
    members = (entry.get("scope"), entry.get("origins"), entry.get("prefixes"), entry.get("maxBytesPerSecond"))
    t.equal(members, ("read", ["media"], ["/o/media/public/"], 10_000_000), "the members of the token")
    t.eventually(lambda: service.read("/o/media/public/a.bin", token=secret).status == 200, "the new token is not accepted")
    t.equal(service.read("/o/media/private.bin", token=secret).status, 403, "the status outside the prefix")
    code, output, errors = service.run("token", "new", "--id", "made", "--scope", "read", "--file", tokens.file)
    t.check(code != 0 and "made" in output + errors, f"a second token with the same id: exit code {code}, {errors[:200]}")
    t.equal(len(json.loads(tokens.file.read_text())["tokens"]), 2, "the number of tokens after the refusal")


# JSON Web Tokens


class KeyServer(Mock):
    """A JWK set at `/keys`; `failing` is a status for all requests."""

    def __init__(self, keys):
        self.keys, self.failing = keys, None
        super().__init__()

    def answer(self, request):
        if self.failing:
            return Answer(self.failing)
        return Answer(200, {"Content-Type": "application/jwk-set+json"}, key_set(self.keys))


def key_set(keys):
    return json.dumps({"keys": [key.jwk for key in keys]}).encode()


def mint(t, key, header=None, **members):
    seconds = members.pop("seconds", 600)
    claims = {**jose.claims(members.pop("iss", ISSUER), members.pop("aud", AUDIENCE), seconds), "scope": "read", **members}
    return t.vault.keep("readerJWT", key.sign({k: v for k, v in claims.items() if v is not None}, header))


def jwt_settings(**members):
    return {"access.jwt.issuer": ISSUER, "access.jwt.audience": AUDIENCE, **{f"access.jwt.{k}": v for k, v in members.items()}}


@scenario(needs=["openssl"])
def jwt_file(t):
    """Tokens that are signed with a key of a JWK set file: scopes, audiences, expiry."""
    key = SigningKey(t.directory, "key-1")
    file = t.directory / "jwks.json"
    file.write_bytes(key_set([key]))
    _, service = stage(t, None, jwt_settings(jwksFile=str(file)))
    read = lambda token, path="/o/media/a.bin": service.read(path, token=token)  # noqa: E731
    t.bytes(read(mint(t, key)), content("media/a.bin", SIZE), "a read with a JWT")
    t.equal(read(mint(t, key, aud=["x", AUDIENCE])).status, 200, "the status with several audiences")
    t.equal(read(mint(t, key, scope="openid read profile")).status, 200, "the status with several scopes")
    t.equal(read(mint(t, key, scope="write"), "/v1/stats").status, 200, "a view with the scope write")
    job = service.api("POST", "/v1/jobs", {"items": [{"origin": "media", "path": "j.bin"}]}, mint(t, key, scope="write"))
    t.equal(job.status, 202, f"the status of a job with the scope write ({job})")
    refused = service.api("POST", "/v1/jobs", {"items": [{"origin": "media", "path": "j.bin"}]}, mint(t, key))
    t.refused(refused, "a job with the scope read", (403,), ("tokenScope", "forbidden"), "write")
    t.refused(read(mint(t, key, scope="openid")), "a read without a scope", (403,), ("tokenScope", "forbidden"), "read")
    t.refused(
        read(mint(t, key, seconds=-120)), "a read with an expired JWT", (401, 403), ("tokenExpired", "unauthorized"), "expired"
    )
    second = SigningKey(t.directory, "key-2")
    part = file.with_suffix(".part")
    part.write_bytes(key_set([key, second]))
    part.replace(file)
    t.eventually(lambda: read(mint(t, second)).status == 200, "a key that was added to the file is not used")
    figures = lambda: [entry.get("token") for entry in service.stats().get("readers", [])]  # noqa: E731
    t.eventually(lambda: any("player-7" in str(name) for name in figures()), "the statistics do not name the subject")


@scenario(needs=["openssl"])
def jwt_hostile(t):
    """Forged, altered and confused tokens are refused, and none reaches the content."""
    key, foreign = SigningKey(t.directory, "key-1"), SigningKey(t.directory, "key-1-foreign")
    file = t.directory / "jwks.json"
    file.write_bytes(key_set([key]))
    _, service = stage(t, None, jwt_settings(jwksFile=str(file)))
    claims = {**jose.claims(ISSUER, AUDIENCE), "scope": "admin"}
    good = mint(t, key, scope="admin")
    t.equal(service.read("/o/media/a.bin", token=good).status, 200, "the status with a good token")
    head, body, tail = good.split(".")
    altered = jose.base64url(json.dumps({**claims, "sub": "administrator"}).encode())
    doubled = json.dumps(claims)[:-1].encode() + b', "scope": "admin"}'
    public = key.public_pem.encode()
    hostile = {
        "alg none": jose.unsigned(claims), "alg NONE": jose.unsigned(claims, "NONE"), "empty alg": jose.unsigned(claims, ""),
        "HS256 with the public key": jose.hs256(public, claims, {"kid": "key-1"}),
        "HS256 with the stripped public key": jose.hs256(public.strip(), claims, {"kid": "key-1"}),
        "HS256 with the modulus": jose.hs256(key.jwk["n"].encode(), claims, {"kid": "key-1"}),
        "HS256 with an empty key": jose.hs256(b"", claims, {"kid": "key-1"}),
        "a foreign key with the same kid": foreign.sign(claims, {"kid": "key-1"}),
        "a foreign key in the header": foreign.sign(claims, {"kid": None, "jwk": foreign.jwk}),
        "a URL of keys in the header": foreign.sign(claims, {"jku": "http://127.0.0.1:9/keys", "kid": "other"}),
        "an unknown kid": key.sign(claims, {"kid": "unknown"}), "a path as kid": key.sign(claims, {"kid": "../../etc/passwd"}),
        "RS512 in the header": key.sign(claims, {"alg": "RS512"}), "PS256 in the header": key.sign(claims, {"alg": "PS256"}),
        "a critical extension": key.sign(claims, {"crit": ["exp"], "exp": 1}),
        "b64 false": key.sign(claims, {"b64": False, "crit": ["b64"]}),
        "another issuer": key.sign({**claims, "iss": "https://other.example"}), "no issuer": key.sign({**claims, "iss": None}),
        "another audience": key.sign({**claims, "aud": "other"}), "an empty list of audiences": key.sign({**claims, "aud": []}),
        "no expiry": key.sign({name: value for name, value in claims.items() if name != "exp"}),
        "a text as expiry": key.sign({**claims, "exp": "never"}), "a negative expiry": key.sign({**claims, "exp": -1}),
        "not yet valid": key.sign({**claims, "nbf": int(time.time()) + 3600}),
        "altered claims": f"{head}.{altered}.{tail}", "a cut signature": good[:-8], "no signature": f"{head}.{body}.",
        "a fourth part": good + ".x", "two parts": f"{head}.{body}", "padding": good + "==", "blanks": f"{head}. {body}.{tail}",
        "claims that are a list": key.sign([1, 2]), "deep nesting": f"{head}.{jose.base64url(b'[' * 4000)}.{tail}",
        "a duplicate member": f"{head}.{jose.base64url(doubled)}.{tail}",
        "60 KiB": key.sign({**claims, "filler": "x" * 20_000}), "dots": "...", "not base64": "%%%.%%%.%%%",
    }  # fmt: skip
    for name, token in hostile.items():
        reply = service.send("GET", "/o/media/a.bin", {"Authorization": f"Bearer {token}"})
        permitted = (400, 401, 403, 431) if name == "60 KiB" else (401, 403)
        t.check(reply.status in permitted, f"a token with {name}: the answer is {reply}")
        t.check(len(reply.body) < 2000, f"bytes were sent for a token with {name}")
    t.equal(service.read("/o/media/a.bin", token=good).status, 200, "the status with a good token after the hostile ones")


@scenario(needs=["openssl"])
def jwt_foreign(t):
    """Tokens of other services reach their upstream; those of Larder do not, valid or not."""
    key, foreign = SigningKey(t.directory, "key-1"), SigningKey(t.directory, "key-2")
    file = t.directory / "jwks.json"
    file.write_bytes(key_set([key]))
    upstream = t.mock(Files())
    forwarding = t.origin("login", upstream.url, access="public", forward=["Authorization"])
    _, service = stage(t, None, {**forwarding, **jwt_settings(jwksFile=str(file))})
    own = {
        "an expired token": mint(t, key, seconds=-120), "a forged token": mint(t, foreign, {"kid": "key-1"}),
        "an unknown key": mint(t, foreign), "no signature": t.vault.keep("readerJWT", jose.unsigned(jose.claims(ISSUER, AUDIENCE))),
        "a cut signature": mint(t, key)[:-8], "a fourth part": mint(t, key) + ".x", "padding": mint(t, key) + "==",
        "two parts": mint(t, key).rpartition(".")[0],
    }  # fmt: skip
    for name, token in own.items():
        for spelling, values in fields_with(token).items():
            reply = send_fields(service, "/o/login/media/a.bin", values)
            t.refused(reply, f"{name}, {spelling}", (401,), ("unauthorized",))
    t.equal(upstream.requests, [], "the requests with tokens of Larder")
    t.equal(send_fields(service, "/o/login/media/b.bin", [f"Bearer {mint(t, key)}"]).status, 200, "the status with a valid token")
    others = {
        "another issuer": foreign.sign(jose.claims("https://other.example", AUDIENCE)),
        "another audience": key.sign(jose.claims(ISSUER, "other")), "three parts": "a.b.c",
    }  # fmt: skip
    for name, token in others.items():
        before = len(upstream.requests)
        t.equal(send_fields(service, f"/o/login/media/{before}.bin", [f"Bearer {token}"]).status, 200, f"{name}: the status")
        sent = {request.fields.get("authorization") for request in upstream.requests[before:]}
        t.equal(sent, {f"Bearer {token}"}, f"{name}: the field at the upstream")
    client = mint(t, key, sub=None, client_id="machine-3")
    t.equal(service.read("/o/media/c.bin", token=client).status, 200, "the status without sub")
    admin = mint(t, key, scope="admin")
    names = [entry.get("token") for entry in service.api("GET", "/v1/stats", token=admin).json.get("readers", [])]
    t.check("jwt:machine-3" in names, f"the reader without sub is not named: {names}")


@scenario(needs=["openssl"], brief=False)
def jwt_rotation(t):
    """Keys from a URL: an unknown kid causes one refetch a minute, a failing key server keeps the keys in use."""
    first, second, unknown = (SigningKey(t.directory, f"key-{number}") for number in (1, 2, 3))
    server = t.mock(KeyServer([first]))
    _, service = stage(t, None, jwt_settings(jwksURL=f"{server.url}/keys"))
    t.eventually(lambda: service.read("/o/media/a.bin", token=mint(t, first)).status == 200, "the first key is not used")
    t.equal(len(server.requests), 1, "the number of requests for keys")
    for _ in range(10):
        reply = service.read("/o/media/a.bin", token=mint(t, unknown))
        t.check(reply.status in (401, 403), f"an unknown key: the answer is {reply}")
    t.check(len(server.requests) <= 2, f"{len(server.requests)} requests for keys after ten unknown ones")
    server.keys = [first, second]
    token, began = mint(t, second), time.monotonic()
    t.eventually(lambda: service.read("/o/media/a.bin", token=token).status == 200, "a new key is not used", 75)
    t.note(f"a new key is in use after {time.monotonic() - began:.1f} s")
    t.check(len(server.requests) <= 3, f"{len(server.requests)} requests for keys after the rotation")
    server.failing = 500
    t.equal(service.read("/o/media/a.bin", token=mint(t, second)).status, 200, "the status while the key server fails")


@scenario(needs=["openssl"], brief=False)
def jwt_url(t):
    """Keys from a URL: the first token of a reader is accepted directly after the start."""
    key = SigningKey(t.directory, "key-1")
    server = t.mock(KeyServer([key]))
    _, service = stage(t, None, jwt_settings(jwksURL=f"{server.url}/keys"))
    replies = t.together(20, lambda _: service.read("/o/media/a.bin", token=mint(t, key)))
    t.equal({reply.status for reply in replies}, {200}, "the statuses of the first reads")
    t.equal(len(server.requests), 1, "the number of requests for keys")


@scenario(needs=["oidc", "pyjwt"], brief=False)
def jwt_provider(t):
    """Tokens of an OpenID provider, and tokens of PyJWT with ES256."""
    provider = t.tools.OpenIDProvider(t)
    settings = {
        "access.jwt.issuer": provider.discovery["issuer"], "access.jwt.audience": "larder-client",
        "access.jwt.jwksURL": provider.discovery["jwks_uri"], "access.jwt.scopeClaim": "permission",
    }  # fmt: skip
    _, service = stage(t, None, settings)
    token = t.vault.keep("readerJWT", provider.token("larder-client"))
    reply = service.read("/o/media/a.bin", token=token)
    t.bytes(reply, content("media/a.bin", SIZE), "a read with a token of the provider")
    other = t.vault.keep("readerJWT", provider.token("other-client"))
    t.check(service.read("/o/media/a.bin", token=other).status in (401, 403), "a token for another audience is accepted")
    check_es256(t)


def check_es256(t):
    import jwt
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    jwk = {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(private.public_key())), "kid": "curve", "alg": "ES256", "use": "sig"}
    file = t.directory / "curve.json"
    file.write_text(json.dumps({"keys": [jwk]}))
    _, service = stage(t, None, jwt_settings(jwksFile=str(file)))
    claims = {**jose.claims(ISSUER, AUDIENCE), "scope": "read"}
    token = t.vault.keep("readerJWT", jwt.encode(claims, private, "ES256", {"kid": "curve"}))
    t.equal(service.read("/o/media/a.bin", token=token).status, 200, "the status with ES256")
    forged = jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), "ES256", {"kid": "curve"})
    t.check(service.read("/o/media/a.bin", token=forged).status in (401, 403), "a forged ES256 token is accepted")
    zero = ".".join([*token.split(".")[:2], jose.base64url(bytes(64))])
    t.check(service.read("/o/media/a.bin", token=zero).status in (401, 403), "a signature of zeros is accepted")
