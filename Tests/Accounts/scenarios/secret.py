"""One service with all kinds of secrets, which no place may show."""

import json
import re
import urllib.parse

from jose import SigningKey
from mocks.base import content
from mocks.links import Downloads, LinkService
from mocks.metadata import InstanceMetadata
from mocks.objects import Accounts, BlobStore, ObjectStore
from mocks.tenants import Tenants
from mocks.tokens import AuthorizationServer, Resources

from . import scenario
from .links import YANDEX
from .oauth import client_file
from .readers import SIZE, Files, Tokens, jwt_settings, key_set, mint
from .s3 import credentials_file


class Stage:
    """Origins of all kinds, readers of all kinds."""

    def __init__(self, t):
        self.t, self.accounts, self.tokens = t, Accounts(t.vault), Tokens(t)
        self.store = t.mock(ObjectStore(self.accounts))
        self.metadata = t.mock(InstanceMetadata(self.accounts))
        self.authority = t.mock(AuthorizationServer(t.vault))
        self.resources = t.mock(Resources(self.authority))
        query = f"sv=2024-11-04&sp=r&sig={t.vault.new('sharedAccessSignature')}"
        self.blobs = t.mock(BlobStore(query))
        self.users = {f"Bearer {t.vault.new('userToken')}": "first"}
        self.tenants = t.mock(Tenants(self.users))
        self.files = t.mock(Files())
        site = t.directory / "site"
        site.mkdir()
        (site / "link.bin").write_bytes(content("link.bin", SIZE))
        token = f"OAuth {t.vault.new('apiToken')}"
        self.downloads = t.mock(Downloads(site, t.vault, lambda given: given == token))
        self.api = t.mock(LinkService("yandex", self.downloads, lambda given: given == token))
        keys = self.accounts.temporary()
        files = {
            "aws": credentials_file(self.accounts.permanent()), "sas": query,
            "client.json": client_file(self.authority, refresh_token=self.authority.refresh_token),
        }  # fmt: skip
        self.service = t.service({**self.origins(keys, token), **self.access()}, files=files)

    def origins(self, keys, token):
        t = self.t
        static = {
            "auth_credentials": "static", "auth_accessKeyId": keys.access_key, "auth_secretAccessKey": keys.secret,
            "auth_sessionToken": keys.token,
        }  # fmt: skip
        resolve = {**YANDEX, "resolve_url": self.api.url + YANDEX["resolve_url"], "resolve_hosts": [self.downloads.front]}
        return {
            **t.origin("static", f"{self.store.url}/media", auth_type="s3", **static),
            **t.origin("file", f"{self.store.url}/media", auth_type="s3", auth_credentials="file", auth_file="aws"),
            **t.origin(
                "instance", f"{self.store.url}/media", auth_type="s3", auth_credentials="instance",
                auth_metadataURL=self.metadata.url,
            ),
            **t.origin("oauth", self.resources.url, auth_type="oauth2", auth_file="client.json", auth_grant="refreshToken"),
            **t.origin("sas", f"{self.blobs.url}/media", auth_type="sas", auth_file="sas"),
            **t.origin("links", self.api.url, **{"headers.Authorization": token, **resolve, "resolve_sendCredentials": True}),
            **t.origin("users", self.tenants.url, forward=["Authorization"], access="public"),
            **t.origin("files", self.files.url, access="token"),
        }  # fmt: skip

    def access(self):
        """Tokens, JSON Web Tokens and signing keys."""
        t = self.t
        self.reader = self.tokens.add("reader", "read")
        keys = t.directory / "keys"
        keys.mkdir()
        (keys / "k1").write_text(t.vault.new("signingKey"))
        self.jwt_key = SigningKey(t.directory, "key-1")
        (t.directory / "jwks.json").write_bytes(key_set([self.jwt_key]))
        return {
            "access.tokensFile": self.tokens.write(), "access.signing.keysDirectory": str(keys),
            **jwt_settings(jwksFile=str(t.directory / "jwks.json")),
        }  # fmt: skip


@scenario(needs=["openssl"])
def secrets(t):
    """Secrets of accounts, links and readers are in no log, document, statistic or file, also after refusals and jobs."""
    stage = Stage(t)
    service = stage.service
    names = ("static", "file", "instance", "oauth", "sas", "links", "files")
    paths = {name: f"/o/{name}/link.bin" for name in names}
    for name, path in paths.items():
        reply = service.read(path, token=stage.reader)
        t.check(reply.status == 200, f"{name}: the answer is {reply}")
    value = next(iter(stage.users))
    t.equal(service.send("GET", "/o/users/own/a.bin", {"Authorization": value}).status, 200, "the status of a user's read")
    t.equal(service.read("/o/files/jwt.bin", token=mint(t, stage.jwt_key)).status, 200, "the status with a JWT")
    for form in ("query", "path", "uriSigning"):
        value = {"path": "/o/files/signed.bin", "scope": "exact", "form": form, "expiresInSeconds": 600}
        reply = service.api("POST", "/v1/signatures", value)
        if t.equal(reply.status, 201, f"the status of a signature ({reply})"):
            use(t, service, reply.json["url"])
    items = [{"origin": name, "path": "job.bin"} for name in names]
    job = service.api("POST", "/v1/jobs", {"items": items}, fields={"Prefer": "wait=20"})
    t.check(job.status in (200, 201, 202), f"a job: the answer is {job}")
    refuse(t, stage)
    tick = service.api("POST", "/v1/events/tickets")
    t.check(tick.status == 201, f"a ticket: the answer is {tick}")
    t.note(f"{len(t.vault.kinds)} secrets")


def use(t, service, url):
    """Reads a signed URL, an altered one, and keeps its secret part."""
    parts = urllib.parse.urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    secret = max(re.findall(r"[\w.~-]{20,}", target), key=len)
    t.vault.keep("readerSignature", secret)
    t.equal(service.send("GET", target).status, 200, "the status of a signed URL")
    altered = secret[:-6] + secret[-1] * 6
    t.vault.keep("readerSignature", altered)
    service.send("GET", target.replace(secret, altered))


def refuse(t, stage):
    """Makes each account fail, so that problems, events and statistics describe it."""
    service = stage.service
    stage.accounts.revoke_all()
    stage.metadata.failing = 500
    stage.authority.revoke_all()
    stage.authority.failing = 401
    stage.blobs.expected = "sig=none"
    stage.downloads.expire()
    stage.api.lifetime = -1
    for name in ("static", "instance", "oauth", "sas", "links"):
        reply = service.read(f"/o/{name}/refused.bin")
        t.check(reply.status >= 400, f"{name}: a refused account gives {reply}")
    service.write("client.json", json.dumps({"client_id": 7, "client_secret": stage.authority.client_secret}))
    service.write("aws", f"[default]\naws_secret_access_key = {t.vault.new('secretAccessKey')}\nbroken line\n")
    for name in ("oauth", "file"):
        service.read(f"/o/{name}/broken.bin")
    body = {"baseURL": stage.store.url, "auth": {"type": "s3", "secretAccessKey": t.vault.new("secretAccessKey"), "bad": 1}}
    t.check(service.api("PUT", "/v1/origins/bad", body).status >= 400, "an origin with an unknown member is accepted")
    # A masked secret must not be sent to another server.
    shown = service.api("GET", "/v1/origins/static").json
    moved = {name: shown.get(name) for name in ("auth",)} | {"baseURL": stage.files.url, "allowPrivateAddresses": True}
    t.check(service.api("PUT", "/v1/origins/static", moved).status == 422, "a masked key is kept for another server")
