"""OAuth 2.0: three grants, rotated refresh tokens, revoked access tokens, and Google Cloud Storage."""

import json
import time

from jose import SigningKey
from mocks.base import content
from mocks.tokens import SIZE, AuthorizationServer, Resources

from . import scenario
from .s3 import LARGE, PERMISSION, check_statistics, read_ranges, read_whole


def client_file(authority, **members):
    """A client file; `token_uri` is the endpoint."""
    document = {"client_id": authority.client_id, "client_secret": authority.client_secret, **members}
    return json.dumps({"token_uri": f"{authority.url}/token", **document}, indent=2)


def service_account(authority, key, **members):
    """The key file of a service account of Google."""
    return json.dumps({
        "type": "service_account", "client_email": "media@project.iam.gserviceaccount.com", "client_id": "1029384756",
        "private_key_id": key.kid, "private_key": key.pem, "token_uri": f"{authority.url}/token", **members,
    })  # fmt: skip


def keep_key(t, key):
    """A private key is a secret: one line of its PEM file is searched."""
    t.vault.keep("privateKey", key.pem.splitlines()[5])
    return key


def stage(t, resources, file, settings=None, **options):
    values = {"auth_type": "oauth2", "auth_file": "client.json", **(settings or {})}
    return t.service(t.origin("media", resources.url, **values), files={"client.json": file}, **options)


def check_reads(t, service, count=3):
    for number in range(count):
        name = f"file {number}.bin"
        path = f"/o/media/file%20{number}.bin"
        t.bytes(service.read(path), content(name, SIZE), f"a read of {name}")
        t.bytes(service.read(path, "10-19"), content(name, SIZE)[10:20], f"a range of {name}", 206)


@scenario()
def oauth_client_credentials(t):
    """Client credentials with scope and audience: one token for all reads, and an early revocation costs one more."""
    authority = t.mock(AuthorizationServer(t.vault, "media.read", "https://media.example"))
    resources = t.mock(Resources(authority))
    settings = {"auth_grant": "clientCredentials", "auth_scope": "media.read", "auth_audience": "https://media.example"}
    service = stage(t, resources, client_file(authority), settings)
    check_reads(t, service)
    t.equal(authority.issued, 1, "the number of tokens")
    check_statistics(t, service, kind="oauth2")
    authority.revoke_all()
    t.bytes(service.read("/o/media/revoked.bin"), content("revoked.bin", SIZE), "a read after the revocation")
    t.equal(authority.issued, 2, "the number of tokens after the revocation")
    t.equal(len(resources.of(status=401)), 1, "the number of refusals")


@scenario()
def oauth_herd(t):
    """Readers of many files cause one token at the first use, and one after a revocation."""
    readers = 40 if t.is_brief else 200
    authority = t.mock(AuthorizationServer(t.vault))
    resources = t.mock(Resources(authority))
    settings = {"auth_grant": "clientCredentials", "maxTransfers": 256, "timeouts_read": "60s", "circuitBreaker": "off"}
    service = stage(t, resources, client_file(authority), settings)
    for issued, kind in ((1, "first"), (2, "revoked")):
        replies = t.together(readers, lambda index, kind=kind: service.read(f"/o/media/{kind}{index}.bin", "0-99"))
        t.equal({(r.status, len(r.body)) for r in replies}, {(206, 100)}, f"statuses and sizes ({kind})")
        t.equal(authority.issued, issued, f"the number of tokens with {readers} readers ({kind})")
        authority.revoke_all()


@scenario(brief=False)
def oauth_scheme(t):
    """The scheme `OAuth`, and header fields of the origin beside it."""
    authority = t.mock(AuthorizationServer(t.vault))
    resources = t.mock(Resources(authority, "OAuth", required={"x-ms-version": "2024-11-04"}))
    settings = {
        "auth_grant": "clientCredentials", "auth_scheme": "OAuth", "auth_tokenURL": f"{authority.url}/token",
        "headers.x-ms-version": "2024-11-04",
    }  # fmt: skip
    service = stage(t, resources, client_file(authority, token_uri="http://127.0.0.1:9/wrong"), settings)
    check_reads(t, service)


@scenario()
def oauth_refresh_token(t):
    """Rotated refresh tokens: none is used twice, also after SIGKILL, and the first one of the file is not used again."""
    authority = t.mock(AuthorizationServer(t.vault))
    resources = t.mock(Resources(authority))
    file = client_file(authority, refresh_token=authority.refresh_token)
    service = stage(t, resources, file, {"auth_grant": "refreshToken"})
    check_reads(t, service)
    rounds = 3 if t.is_brief else 8
    for number in range(rounds):
        # One rotation after a refusal; the kill comes directly after the answer. One more at the first use of the new
        # process.
        authority.revoke_all()
        for way in ("refused", "restarted"):
            name = f"{way}{number}.bin"
            t.bytes(service.read(f"/o/media/{name}"), content(name, SIZE), f"a read in round {number} ({way})")
            if way == "refused":
                service.kill()
                service.start()
    t.check(authority.issued > 2 * rounds, f"{authority.issued} tokens in {rounds} rounds")
    t.equal(authority.reused, 0, "the number of refresh tokens that were used twice")
    t.equal(len(authority.of("/token", status=400)), 0, "the number of refused refresh tokens")
    # A new refresh token in the file replaces the stored one.
    service.kill()
    authority.refresh_token = t.vault.new("refreshToken")
    authority.spent.clear()
    authority.revoke_all()
    service.write("client.json", client_file(authority, refresh_token=authority.refresh_token))
    service.start()
    t.bytes(service.read("/o/media/replaced.bin"), content("replaced.bin", SIZE), "a read with a new refresh token in the file")


@scenario(needs=["openssl"])
def oauth_jwt_bearer(t):
    """A service account signs its assertion with RS256."""
    key = keep_key(t, SigningKey(t.directory, "account-key-1"))
    authority = t.mock(AuthorizationServer(t.vault, "storage.read_only", verify_assertion=key.verify))
    resources = t.mock(Resources(authority))
    service = stage(t, resources, service_account(authority, key), {"auth_grant": "jwtBearer", "auth_scope": "storage.read_only"})
    check_reads(t, service)
    t.equal(authority.issued, 1, "the number of tokens")
    check_statistics(t, service, kind="oauth2")


@scenario(needs=["pyjwt", "openssl"], brief=False)
def oauth_jwt_pyjwt(t):
    """PyJWT verifies the assertion with all its claims."""
    import jwt

    key = keep_key(t, SigningKey(t.directory, "account-key-2"))
    seen = []

    def verify(assertion):
        try:
            options = {"require": ["exp", "iat", "iss", "aud"]}
            audience = f"{authority.url}/token"
            seen.append(jwt.decode(assertion, key.public_pem, ["RS256"], audience=audience, options=options))
        except jwt.PyJWTError as error:
            raise ValueError(str(error)) from None
        t.equal(jwt.get_unverified_header(assertion).get("kid"), key.kid, "kid")
        return seen[-1]

    authority = t.mock(AuthorizationServer(t.vault, "storage.read_only", verify_assertion=verify))
    resources = t.mock(Resources(authority))
    service = stage(t, resources, service_account(authority, key), {"auth_grant": "jwtBearer", "auth_scope": "storage.read_only"})
    check_reads(t, service)
    t.equal([claims["iss"] for claims in seen], ["media@project.iam.gserviceaccount.com"], "iss")


@scenario(needs=["openssl"])
def oauth_refusals(t):
    """A refusing token endpoint causes a problem that names the permission; it recovers without a restart."""
    authority = t.mock(AuthorizationServer(t.vault, "media.read"))
    resources = t.mock(Resources(authority))
    settings = {"auth_grant": "clientCredentials", "auth_scope": "media.write", "retries": 0}
    service = stage(t, resources, client_file(authority), settings)
    t.refused(service.read("/o/media/a.bin"), "a read with a wrong scope", (403, 502, 503), words=PERMISSION)
    t.check(service.credential("media").get("error"), "credentials.error is empty after a refusal")
    authority.scope = "media.write"
    t.eventually(lambda: service.read("/o/media/b.bin").status == 200, "the service does not recover from a refusal", 40)
    authority.failing = 503
    t.bytes(service.read("/o/media/c.bin"), content("c.bin", SIZE), "a read while the token endpoint fails")


@scenario(brief=False)
def oauth_expiry_in_read(t):
    """The access token is revoked in the middle of a 64 MiB read."""
    authority = t.mock(AuthorizationServer(t.vault))
    resources = t.mock(Resources(authority, sizes={"large.bin": LARGE}))
    values = {"auth_type": "oauth2", "auth_file": "client.json", "auth_grant": "clientCredentials", "readAhead": "4MiB"}
    settings = t.origin("whole", resources.url, **values) | t.origin("ranges", resources.url, **values)
    service = t.service(settings, files={"client.json": client_file(authority)})
    for name, read in (("whole", read_whole), ("ranges", read_ranges)):
        issued = authority.issued
        read(t, service, f"/o/{name}/large.bin", content("large.bin", LARGE), authority.revoke_all, resources)
        t.equal(authority.issued - issued, 2, f"the number of tokens for {name}")


@scenario(brief=False)
def oauth_lifetime(t):
    """A token that ends by its own time is replaced before a server refuses it."""
    authority = t.mock(AuthorizationServer(t.vault))
    resources = t.mock(Resources(authority))
    authority.lifetime = 3
    service = stage(t, resources, client_file(authority), {"auth_grant": "clientCredentials"})
    t.bytes(service.read("/o/media/a.bin"), content("a.bin", SIZE), "the first read")
    end = time.time() + 3
    authority.lifetime = 3600
    t.eventually(lambda: time.time() > end, "the first token never ends")
    t.bytes(service.read("/o/media/b.bin"), content("b.bin", SIZE), "a read after the end of the first token")
    t.equal(len(resources.of(status=401)), 0, "the number of refused requests")
    t.check(authority.issued <= 3, f"{authority.issued} tokens instead of at most 3")


@scenario(needs=["gcs", "openssl"], brief=False)
def gcs_service_account(t):
    """Google Cloud Storage (fake-gcs-server behind nginx) with a service account, over XML and JSON interface."""
    key = keep_key(t, SigningKey(t.directory, "account-key-3"))
    authority = t.mock(AuthorizationServer(t.vault, "storage.read_only", verify_assertion=key.verify))
    guard = t.mock(Resources(authority))
    data = content("film.bin", 2 << 20)
    storage = t.tools.CloudStorage(t, guard.url, {"film.bin": data})
    account = {
        "auth_type": "oauth2", "auth_file": "client.json", "auth_grant": "jwtBearer", "auth_scope": "storage.read_only",
    }  # fmt: skip
    settings = t.origin("xml", f"{storage.url}/media", **account)
    settings |= t.origin("json", f"{storage.url}/storage/v1/b/media/o", **account)
    service = t.service(settings, files={"client.json": service_account(authority, key)})
    for path in ("/o/xml/film.bin", "/o/json/film.bin?alt=media"):
        t.bytes(service.read(path), data, f"a read of {path}")
        t.bytes(service.read(path, "77-1077"), data[77:1078], f"a range of {path}", 206)
    authority.revoke_all()
    t.bytes(service.read("/o/json/film.bin?alt=media&again=1"), data, "a read after the revocation")
