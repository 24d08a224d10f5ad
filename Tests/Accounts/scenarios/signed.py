"""Signed content URLs: in the query, in the path and as a URI signing package (RFC 9246)."""

import re
import time
import urllib.parse

import jose
from mocks.base import content
from harness.checks import Broken

from . import scenario
from .readers import Files, Tokens

SIZE = 300_000
FORMS = ("query", "path", "uriSigning")


class Stage:
    """An origin whose content needs a token, and a directory with the signing key `k1`."""

    def __init__(self, t, **settings):
        self.t, self.keys = t, t.directory / "keys"
        self.keys.mkdir()
        self.key = self.add("k1")
        self.upstream = t.mock(Files())
        origin = t.origin("media", f"{self.upstream.url}/media", access="token") | t.origin(
            "other", f"{self.upstream.url}/other", access="token"
        )
        self.service = t.service({**origin, "access.signing.keysDirectory": str(self.keys), **settings})

    def add(self, kid):
        key = self.t.vault.new("signingKey")
        part = self.keys.parent / f"{kid}.part"
        part.write_text(key)
        part.replace(self.keys / kid)
        return key

    def mint(self, path, form="query", scope="exact", seconds=600, **members):
        """A signed path below the service; its signature is a secret of the reader."""
        value = {"path": path, "scope": scope, "form": form, "expiresInSeconds": seconds, **members}
        reply = self.service.api("POST", "/v1/signatures", value)
        if reply.status != 201:
            raise Broken(f"POST /v1/signatures {value}: the answer is {reply}")
        self.t.equal(set(reply.json), {"url", "expiresAt", "kid"}, "the members of a signature")
        return self.relative(reply.json["url"])

    def relative(self, url):
        """Path and query of a minted URL."""
        parts = urllib.parse.urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        values = urllib.parse.parse_qs(parts.query)
        for secret in [*values.get("sig", []), *values.get("URISigningPackage", []), *re.findall(r"^/t/([^/]+)/", parts.path)]:
            self.t.vault.keep("readerSignature", secret)
        return target

    def get(self, target, part=None, method="GET"):
        return self.service.send(method, target, {"Range": f"bytes={part}"} if part else {})


def name_of(path):
    return path.removeprefix("/o/")


@scenario()
def signed_forms(t):
    """The three forms give content without a token, for the whole file, a range and HEAD, and for nothing else."""
    stage = Stage(t)
    for form in FORMS:
        path = f"/o/media/{form}/film%20one.bin"
        data = content(f"media/{form}/film one.bin", SIZE)
        t.refused(stage.get(path), f"{form}: a read without a signature", (401,), ("unauthorized",))
        target = stage.mint(path, form)
        t.bytes(stage.get(target), data, f"{form}: a read")
        t.bytes(stage.get(target, "100-199"), data[100:200], f"{form}: a range", 206)
        t.bytes(stage.get(target), data, f"{form}: a repeated read")
        t.equal(stage.get(target, method="HEAD").status, 200, f"{form}: the status of HEAD")
        t.equal(stage.service.read(path).status, 200, f"{form}: the status with a token")
        t.equal(len(stage.upstream.of(f"/{form}/film", "GET")), 1, f"{form}: the number of upstream requests")
        wrong = target.replace("film%20one", "film%20two")
        t.check(wrong != target, f"{form}: the path is not in the URL {target[:60]}")
        t.refused(stage.get(wrong), f"{form}: another path", (403,), ("tokenScope", "tokenInvalid"))
        t.refused(
            stage.get(target.replace("/o/media/", "/o/other/")), f"{form}: another origin", (403,), ("tokenScope", "tokenInvalid")
        )
        check_altered(t, stage, form, target)
        for method, route in (("GET", "/v1/stats"), ("DELETE", path), ("POST", "/v1/jobs"), ("GET", "/v1/assets")):
            reply = stage.get(target.replace(path, route), method=method)
            t.check(reply.status in (401, 403, 404, 405), f"{form}: {method} {route} with a signature: the answer is {reply}")
    requests = [request.target for request in stage.upstream.requests]
    t.check(
        not any("sig=" in r or "exp=" in r or "URISigning" in r or "/t/" in r for r in requests),
        f"a signature is at the upstream: {requests}",
    )
    keys = [asset.get("key", "") for asset in stage.service.api("GET", "/v1/assets").json.get("items", [])]
    t.equal(sorted(keys), sorted(f"/o/media/{form}/film%20one.bin" for form in FORMS), "the keys of the assets")


def check_altered(t, stage, form, target):
    """Each altered character of a signature is noticed."""
    secret = max(re.findall(r"[\w.~-]{20,}", target), key=len)
    for at in (0, len(secret) // 2, len(secret) - 2):
        other = secret[:at] + ("A" if secret[at] != "A" else "B") + secret[at + 1 :]
        reply = stage.get(target.replace(secret, other))
        t.refused(reply, f"{form}: an altered signature at {at}", (401, 403), ("tokenInvalid", "tokenScope", "tokenExpired"))
    if form == "query":
        later = re.sub(r"exp=\d+", f"exp={int(time.time()) + 99_999}", target)
        t.refused(stage.get(later), "query: a later end", (403,), ("tokenInvalid",))
        t.refused(stage.get(target.replace("kid=k1", "kid=k9")), "query: an unknown key", (403,), ("tokenInvalid",))
        t.check(stage.get(re.sub(r"&?sig=[^&]*", "", target)).status in (401, 403), "query: no signature is accepted")
        t.check(stage.get(target + "&prefix=/").status in (401, 403), "query: an added prefix is accepted")
        t.check(stage.get(target + "&exp=99999999999").status in (400, 401, 403), "query: a second end is accepted")


@scenario()
def signed_characters(t):
    """A signed URL has only the characters of RFC 3986, whatever the path contains, and is sent as it is."""
    stage = Stage(t)
    for name in ("a b", "d\u00e9", "\u5168", "x{|}^`<>\"", "50%25", "q.bin?title=a b&t=\u00e9[]"):
        for form in FORMS:
            for scope in ("exact", "prefix"):
                target = stage.mint(f"/o/media/{name}", form, scope)
                t.check(re.fullmatch(r"[A-Za-z0-9._~:/?@!$&'()*+,;=%-]+", target), f"{form}, {scope}: no URL: {target[:200]}")
                t.equal(stage.get(target).status, 200, f"{form}, {scope}: the status of {target[:60]}")
    for name in ("a#b", "a?x=1#t=5"):
        value = {"path": f"/o/media/{name}", "expiresInSeconds": 60}
        t.refused(stage.service.api("POST", "/v1/signatures", value), f"a path with a fragment, {name}", (422,), ("invalidField",))
    reply = stage.service.send("GET", "/o/media/a%zz/%7C")
    t.equal(reply.json.get("instance"), "/o/media/a%25zz/%7C", "the instance of a problem (RFC 9457 section 3.1.5)")


@scenario()
def signed_cmcd(t):
    """CTA-5004: players append CMCD to a signed URL. It is covered with `cmcd: key` only, and sent with `forward`."""
    stage = Stage(t)
    service = stage.service
    for cmcd in ("strip", "forward", "key"):
        origin = {"baseURL": f"{stage.upstream.url}/media", "allowPrivateAddresses": True, "access": "token", "cmcd": cmcd}
        t.check(service.api("PUT", f"/v1/origins/{cmcd}", origin).status in (200, 201), f"{cmcd}: the origin is refused")
        for form in FORMS:
            for query in ("", "?v=1"):
                target = stage.mint(f"/o/{cmcd}/{form}.bin{query}", form)
                t.equal(stage.get(target).status, 200, f"{cmcd}, {form}: the status without CMCD")
                for value in ("CMCD=br%3D1", "%43MCD=br%3D2"):
                    reply = stage.get(target + ("&" if "?" in target else "?") + value)
                    if cmcd == "key":
                        t.refused(reply, f"{form}: {value} with cmcd: key", (403,), ("tokenScope", "tokenInvalid"))
                    else:
                        t.bytes(reply, content(f"media/{form}.bin", SIZE), f"{cmcd}, {form}: a read with {value}")
                minted = stage.mint(f"/o/{cmcd}/{form}.bin{query}{'&' if query else '?'}CMCD=a", form)
                t.equal(stage.get(minted).status, 200, f"{cmcd}, {form}: the status of a signed path with CMCD")
    assets = service.api("GET", "/v1/assets?limit=1000").json["items"]
    count = {cmcd: len([a for a in assets if a["origin"] == cmcd]) for cmcd in ("strip", "forward", "key")}
    t.equal(count, {"strip": 6, "forward": 6, "key": 12}, "the number of assets")
    seen = [request.target for request in stage.upstream.requests]
    t.check(any("CMCD" in target for target in seen), "cmcd: key sends no CMCD to the upstream")
    service.read("/o/strip/new.bin?CMCD=x"), service.read("/o/forward/newer.bin?CMCD=x")
    seen = [request.target for request in stage.upstream.requests if "/new" in request.target]
    t.equal(["CMCD" in target for target in seen], [False, True], f"CMCD at the upstream: {seen}")
    reply = service.read("/v1/content?url=" + urllib.parse.quote(f"{stage.upstream.url}/media/u.bin") + "&CMCD=x")
    t.check(reply.status != 422, f"CMCD beside url is refused: {reply}")


@scenario()
def signed_playlist(t):
    """A player without header fields plays an HLS playlist with the token in the path: relative URIs inherit it."""
    stage = Stage(t)
    target = stage.mint("/o/media/show/", "path", "prefix") + "master.m3u8"
    if not re.match(r"^/t/[^/]+/o/media/show/master\.m3u8$", target):
        t.check(False, f"the URL has another form: {target[:200]}")
    playlist = stage.get(target)
    t.equal(playlist.status, 200, f"the status of the playlist ({playlist})")
    names = [line for line in playlist.body.decode().splitlines() if line and not line.startswith("#")]
    t.equal(names, ["one.ts", "two.ts"], "the segments")
    for name in names:
        url = urllib.parse.urljoin(f"http://127.0.0.1{target}", name)
        reply = stage.get(urllib.parse.urlsplit(url).path)
        t.bytes(reply, content(f"media/show/{name}", SIZE), f"the segment {name}")
    outside = urllib.parse.urlsplit(urllib.parse.urljoin(f"http://127.0.0.1{target}", "../other/x.ts")).path
    t.refused(stage.get(outside), "a segment outside the prefix", (403,), ("tokenScope",))
    climbing = target.replace("master.m3u8", "../other/x.ts")
    t.check(stage.get(climbing).status in (400, 403, 404), "a path with dots leaves the prefix")


@scenario()
def signed_prefix(t):
    """A prefix covers the files below it and no others, in all forms."""
    stage = Stage(t)
    for form in FORMS:
        target = stage.mint("/o/media/show.1+a/", form, "prefix")
        for name in ("a.bin", "deep/b.bin"):
            below = stage.get(target.replace("/media/show.1+a/", f"/media/show.1+a/{name}"))
            t.bytes(below, content(f"media/show.1+a/{name}", SIZE), f"{form}: {name} below the prefix")
        outside = (
            "shows/b.bin", "b.bin", "show.1+a/..%2Fb.bin", "show.1+a/%2e%2e/b.bin", "showX1+a/b.bin", "show.11a/b.bin",
            "show.1+ab.bin", "x/o/media/show.1+a/b.bin",
        )  # fmt: skip
        for path in outside:
            # The prefix in the query stays.
            reply = stage.get(target.replace("/media/show.1+a/", f"/media/{path}", 1))
            t.check(reply.status in (400, 403, 404), f"{form}: {path} outside the prefix: the answer is {reply}")


@scenario()
def signed_expiry(t):
    """An expired URL gets tokenExpired; a reader that began in time may go on within the grace, except with RFC 9246."""
    stage = Stage(t, **{"access.signing.grace": "6s"})
    begun, unused = {}, {}
    data = {form: content(f"media/{form}.bin", SIZE) for form in FORMS}
    for form in FORMS:
        begun[form] = stage.mint(f"/o/media/{form}.bin", form, seconds=5)
        unused[form] = stage.mint(f"/o/media/unused-{form}.bin", form, seconds=5)
    end = time.time() + 6
    for form in FORMS:
        t.bytes(stage.get(begun[form], "0-99"), data[form][:100], f"{form}: a range before the end", 206)
    t.eventually(lambda: time.time() > end, "time stands still")
    for form in FORMS:
        t.refused(stage.get(unused[form]), f"{form}: an expired URL", (403,), ("tokenExpired",))
        if form == "uriSigning":
            t.refused(stage.get(begun[form], "100-199"), f"{form}: a range after the end", (403,), ("tokenExpired",))
            continue
        t.bytes(stage.get(begun[form], "100-199"), data[form][100:200], f"{form}: a range within the grace", 206)
    for form in FORMS:
        t.eventually(lambda form=form: stage.get(begun[form], "0-9").code == "tokenExpired", f"{form}: the grace never ends")
        t.refused(stage.get(begun[form], "200-299"), f"{form}: a range after the grace", (403,), ("tokenExpired",))


@scenario()
def signed_keys(t):
    """Signing keys are added and removed while the service runs; several are valid at once."""
    stage = Stage(t)
    first = stage.mint("/o/media/a.bin", kid="k1")
    stage.add("k2")
    second = []

    def has_second():
        value = {"path": "/o/media/a.bin", "scope": "exact", "form": "query", "expiresInSeconds": 60, "kid": "k2"}
        reply = stage.service.api("POST", "/v1/signatures", value)
        if reply.status == 201:
            second.append(stage.relative(reply.json["url"]))
        return reply.status == 201

    if t.eventually(has_second, "a new key is not used"):
        t.equal({stage.get(first).status, stage.get(second[0]).status}, {200}, "the statuses with both keys")
        (stage.keys / "k1").unlink()
        t.eventually(lambda: stage.get(first).status == 403, "a removed key is still valid")
        t.refused(stage.get(first), "a URL of a removed key", (403,), ("tokenInvalid",))
        t.equal(stage.get(second[0]).status, 200, "the status with the kept key")


@scenario(brief=False)
def signed_refusals(t):
    """Invalid orders of signatures, and orders without a token."""
    stage = Stage(t)
    value = {"path": "/o/media/a.bin", "scope": "exact", "form": "query", "expiresInSeconds": 60}
    reply = stage.service.send("POST", "/v1/signatures", {"Content-Type": "application/json"}, b"{}")
    t.refused(reply, "an order without a token", (401,), ("unauthorized",))
    for name, members in {
        "form": {"form": "cookie"}, "scope": {"scope": "all"}, "path": {"path": "/v1/stats"}, "kid": {"kid": "nope"},
        "expiresInSeconds": {"expiresInSeconds": -5}, "unknown": {"unknown": 1}, "origin": {"path": "o/media"},
    }.items():  # fmt: skip
        reply = stage.service.api("POST", "/v1/signatures", {**value, **members})
        t.refused(reply, f"an order with a wrong {name}", (400, 404, 409, 422))
    code, _, errors = stage.service.run("sign", "/v1/stats")
    t.check(code != 0 and errors, "larder sign signs a path outside the content")


@scenario(brief=False)
def signed_command(t):
    """`larder sign` makes URLs of all forms with a key of the service."""
    stage = Stage(t)
    for form in FORMS:
        code, output, errors = stage.service.run("sign", "/o/media/cli.bin", "--form", form, "--expires", "10m")
        if not t.equal(code, 0, f"{form}: the exit code ({errors[:300]})"):
            continue
        url = next((word for word in output.split() if "/o/media/cli.bin" in word), "")
        if t.check(url, f"{form}: the output has no URL"):
            t.bytes(stage.get(stage.relative(url)), content("media/cli.bin", SIZE), f"{form}: a read")


@scenario()
def signed_packages(t):
    """URI signing packages of another implementation: issuers, expiry, places, and claims that are not supported."""
    issuer = "https://signer.example"
    stage = Stage(t, **{"access.signing.issuers": [issuer], "access.signing.grace": "0s"})
    key, end = stage.key.encode(), int(time.time()) + 600
    pattern = rf"regex:https?://127\.0\.0\.1:{stage.service.port}/o/media/own/.*"

    def package(**claims):
        return t.vault.keep(
            "readerSignature", jose.hs256(key, {"exp": end, "cdniuc": pattern, "cdniv": 1, **claims}, {"kid": "k1"})
        )

    good = stage.get(f"/o/media/own/a.bin?URISigningPackage={package()}")
    t.bytes(good, content("media/own/a.bin", SIZE), "a package with a pattern")
    issued = stage.get(f"/o/media/own/a.bin?URISigningPackage={package(iss=issuer)}")
    t.equal(issued.status, 200, "the status of a package of a named issuer")
    # RFC 9246 §2: the package is found behind any reserved character; it belongs to no key, request or log.
    for path in ("own/b.bin;URISigningPackage={}", "own;URISigningPackage={}/b.bin", "own/b.bin;URISigningPackage={}?v=1"):
        reply = stage.get("/o/media/" + path.format(package()))
        t.bytes(reply, content("media/own/b.bin", SIZE), f"a package at {path}")
    cases = {
        "a single use": ("/o/media/own/a.bin", package(jti="once")),
        "another issuer": ("/o/media/own/a.bin", package(iss="https://nobody.example")),
        "an expired package": ("/o/media/own/a.bin", package(exp=end - 700)),
        "another path": ("/o/media/a.bin", package()),
        "a future package": ("/o/media/own/a.bin", package(nbf=end)),
        "an unknown critical claim": ("/o/media/own/a.bin", package(cdnicrit="something")),
        "a client address": ("/o/media/own/a.bin", package(cdniip="192.0.2.1")),
        "another version": ("/o/media/own/a.bin", package(cdniv=2)),
        "no container": ("/o/media/own/a.bin", jose.hs256(key, {"exp": end}, {"kid": "k1"})),
        "another key": ("/o/media/own/a.bin", jose.hs256(b"x" * 32, {"exp": end, "cdniuc": pattern}, {"kid": "k1"})),
        "no algorithm": ("/o/media/own/a.bin", jose.unsigned({"exp": end, "cdniuc": pattern})),
    }  # fmt: skip
    for name, (path, token) in cases.items():
        reply = stage.get(f"{path}?URISigningPackage={token}")
        t.refused(reply, name, (401, 403), ("tokenExpired", "tokenInvalid", "tokenScope"))


@scenario()
def signed_renewal(t):
    """Cookies of RFC 9246: renewed with content, up to `cdnistd`, and one valid cookie of several is enough."""
    stage = Stage(t)
    end = int(time.time()) + 600

    def cookie(**claims):
        claims = {"exp": end, "cdniuc": "regex:.*/o/media/.*", "cdnistt": 1, "cdniets": 30.5, **claims}
        present = {name: value for name, value in claims.items() if value is not None}
        return t.vault.keep("readerSignature", jose.hs256(stage.key.encode(), present, {"kid": "k1"}))

    def get(*cookies, **fields):
        value = "; ".join(f"URISigningPackage={token}" for token in cookies)
        reply = stage.service.send("GET", "/o/media/show/a.bin", {"Cookie": value, **fields})
        renewed = re.match(r"URISigningPackage=([^;]+); Path=([^;]+)", reply.fields.get("set-cookie", ""))
        if renewed:
            t.vault.keep("readerSignature", renewed[1])
        return reply, renewed

    reply, renewed = get(cookie(cdnistd=3))
    t.bytes(reply, content("media/show/a.bin", SIZE), "a read with a cookie")
    if t.check(renewed, "no cookie was renewed"):
        t.equal(renewed[2], "/o/media/show/", "the path of the cookie")
        t.equal(get(renewed[1])[0].status, 200, "the status with the renewed cookie")
    t.equal(get(cookie(exp=end - 700), cookie())[0].status, 200, "the status with an expired and a good cookie")
    t.refused(get(cookie(exp=end - 700))[0], "an expired cookie", (403,), ("tokenExpired",))
    for name, claims in {"too deep": {"cdnistd": 5}, "no transport": {"cdnistt": 0}, "cdniets only": {"cdnistt": None}}.items():
        reply, renewed = get(cookie(**claims))
        t.check(reply.status == 200 and not renewed, f"{name}: {reply}, renewed {renewed}")
    for fields, status in (({"Range": "bytes=999999-"}, 416), ({"If-Match": '"x"'}, 412)):
        reply, renewed = get(cookie(), **fields)
        t.check(reply.status == status and not renewed, f"a cookie is renewed with {status}: {reply}")


@scenario()
def signed_backend(t):
    """A token with the scope `sign` signs inside its limits and for its longest validity, and reads nothing."""
    tokens = Tokens(t)
    free = tokens.add("signer", "sign")
    shop = tokens.add("shop", "sign", prefixes=["/o/media/films/"], maxSignatureSeconds=60)
    stage = Stage(t, **{"access.tokensFile": tokens.write()})

    def sign(token, path, seconds=60, scope="exact", form="query"):
        value = {"path": path, "scope": scope, "form": form, "expiresInSeconds": seconds}
        return stage.service.api("POST", "/v1/signatures", value, token)

    for form in FORMS:
        for scope in ("exact", "prefix"):
            reply = sign(shop, "/o/media/films/a.bin", 60, scope, form)
            if t.equal(reply.status, 201, f"{form}, {scope}: the status inside the limits ({reply})"):
                t.equal(stage.get(stage.relative(reply.json["url"])).status, 200, f"{form}, {scope}: the status of the URL")
        outside = {
            "a longer validity": ("/o/media/films/a.bin", 61, "exact"), "another path": ("/o/media/a.bin", 60, "exact"),
            "a larger directory": ("/o/media/films", 60, "prefix"), "another origin": ("/o/other/films/a.bin", 60, "exact"),
            "dots": ("/o/media/films/../a.bin", 60, "exact"), "encoded dots": ("/o/media/films/%2e%2e/a.bin", 60, "prefix"),
        }  # fmt: skip
        for name, (path, seconds, scope) in outside.items():
            t.refused(sign(shop, path, seconds, scope, form), f"{form}: {name}", (403,), ("tokenScope",))
    t.equal(sign(free, "/o/other/a.bin", 86_400).status, 201, "the status without limits")
    for method, path in (
        ("GET", "/o/media/films/a.bin"), ("GET", "/v1/stats"), ("GET", "/v1/assets"), ("GET", "/metrics"), ("GET", "/version"),
        ("POST", "/v1/jobs"), ("POST", "/v1/probe"), ("DELETE", "/v1/origins/media"),
    ):  # fmt: skip
        reply = stage.service.api(method, path, {} if method == "POST" else None, free)
        t.refused(reply, f"{method} {path} with the scope sign", (403,), ("tokenScope",))
        t.check('error="insufficient_scope"' in reply.fields.get("www-authenticate", ""), f"{path}: {reply.fields}")
    code, output, errors = stage.service.run("token", "new", "--id", "x", "--scope", "sign", "--max-signature", "1h")
    if t.equal(code, 0, f"the exit code of larder token new ({errors[:200]})"):
        t.check('"maxSignatureSeconds":3600' in output.replace(" ", ""), f"larder token new printed {output[-200:]}")
