"""Failures that pass: busy servers, credential services and metadata services that fail for a while, and buckets in another
region."""

import json
import threading
import time

from mocks.base import Answer, Mock, content, serve
from mocks.metadata import ContainerCredentials, InstanceMetadata
from mocks.objects import SIZE, Accounts, ObjectStore
from sigv4 import Refused, Verifier

from . import scenario

DRIVE = json.dumps({
    "error": {"code": 403, "errors": [{"domain": "usageLimits", "reason": "userRateLimitExceeded"}], "message": "Slow down."}
}).encode()  # fmt: skip
TIMEOUT = b"<?xml version='1.0'?><Error><Code>RequestTimeout</Code><Message>Your socket was not read.</Message></Error>"


class Busy(Mock):
    """A server that answers the first requests for each file with a failure: `/STATUS/NAME`, or `/drive/…` and `/s3/…` for
    bodies that state it."""

    def __init__(self, failures=1):
        self.failures, self.counts, self.lock = failures, {}, threading.Lock()
        super().__init__()

    def answer(self, request):
        kind = request.name.split("/")[1]
        with self.lock:
            count = self.counts[request.name] = self.counts.get(request.name, 0) + 1
        if count > self.failures:
            return serve(request, content(request.name, SIZE))
        if kind == "drive":
            return Answer(403, {"Content-Type": "application/json"}, DRIVE)
        if kind == "s3":
            return Answer(400, {"Content-Type": "application/xml"}, TIMEOUT)
        return Answer(int(kind))


def job(service, items):
    """Runs a job; returns the states of its items."""
    made = service.api("POST", "/v1/jobs", {"items": items}, fields={"Prefer": "wait=50"}).json
    listed = service.api("GET", f"/v1/jobs/{made['jobId']}/items?limit=1000").json["items"]
    return [item["state"] if item["state"] == "succeeded" else item.get("error") for item in listed]


@scenario()
def transient_statuses(t):
    """Statuses and bodies of a busy server are not final: a read and an item get the bytes of a later answer (RFC 6585
    section 4, RFC 8470 section 5.2, AWS "Retry behavior", Google Drive "Resolve errors")."""
    kinds = ("408", "425", "429", "500", "502", "503", "504", "520", "524", "529", "drive", "s3")
    upstream = t.mock(Busy())
    # An origin for each kind: the retry budget of one origin fails readers when it is exhausted.
    service = t.service({
        key: value for kind in ("m", *kinds)
        for key, value in t.origin(f"m{kind}", upstream.url, access="public", circuitBreaker="off").items()
    })  # fmt: skip
    for kind in kinds:
        data, ranged = content(f"/{kind}/read.bin", SIZE), content(f"/{kind}/ranged.bin", SIZE)
        t.bytes(service.send("GET", f"/o/m{kind}/{kind}/read.bin"), data, f"{kind}: a read")
        reply = service.send("GET", f"/o/m{kind}/{kind}/ranged.bin", {"Range": "bytes=5-9"})
        t.bytes(reply, ranged[5:10], f"{kind}: a range", 206)
        requests = upstream.of(f"/{kind}/ranged", "GET")
        t.equal([r.fields.get("range") for r in requests], ["bytes=5-9"] * 2, f"{kind}: the requests for the range")
        t.equal(len(upstream.of(f"/{kind}/read", "GET")), 2, f"{kind}: the number of requests")
    items = [{"origin": f"m{kind}", "path": f"{kind}/item.bin"} for kind in kinds]
    t.equal(set(map(str, job(service, items))), {"succeeded"}, "the states of the items")
    upstream.failures = 10**9
    for kind, status in (("drive", 403), ("s3", 400), ("404", 404), ("401", 401)):
        t.equal(service.send("GET", f"/o/mm/{kind}/never.bin").status, status, f"{kind}: the final status")
    t.equal(len(upstream.of("/404/never", "GET")), 1, "the number of requests for a missing file")


@scenario()
def transient_budget(t):
    """An exhausted retry budget delays the items of a job, and does not fail them."""
    upstream = t.mock(Busy(2))
    service = t.service(t.origin("m", upstream.url, access="public", circuitBreaker="off"))
    count = 30 if t.is_brief else 80
    states = job(service, [{"origin": "m", "path": f"503/item{index}.bin"} for index in range(count)])
    t.equal([state for state in states if state != "succeeded"], [], "the items that did not succeed")


@scenario()
def transient_keys(t):
    """One failure of the service of credentials fails neither reads nor items."""
    accounts = Accounts(t.vault)
    store, token = t.mock(ObjectStore(accounts)), t.vault.new("containerToken")
    settings, endpoints = {}, {}
    for kind in (500, 429, "closed"):
        endpoint = endpoints[kind] = t.mock(Once(accounts, token, kind))
        settings |= t.origin(
            f"k{kind}", f"{store.url}/media", auth_type="s3", auth_credentials="container", access="public",
            auth_metadataURL=endpoint.url + endpoint.PATH,
        )  # fmt: skip
    service = t.service(settings, environment={"AWS_CONTAINER_AUTHORIZATION_TOKEN": token})
    for kind, endpoint in endpoints.items():
        states = job(service, [{"origin": f"k{kind}", "path": f"item{index}.bin"} for index in range(20)])
        t.equal(set(map(str, states)), {"succeeded"}, f"{kind}: the states of the items")
        t.equal(endpoint.issued, 1, f"{kind}: the number of documents")
        t.check(len(endpoint.requests) <= 3, f"{kind}: {len(endpoint.requests)} requests to the service")


class Once(ContainerCredentials):
    """The endpoint of a container that fails once."""

    def __init__(self, accounts, token, kind):
        self.kind = kind
        super().__init__(accounts, token)

    def answer(self, request):
        kind, self.kind = self.kind, None
        if kind == "closed":
            return Answer(503, {"Content-Length": "-1"})  # no valid response
        return Answer(kind) if kind else super().answer(request)


@scenario()
def instance_outage(t):
    """Keys of an instance stay in use after their end while the metadata service is down, until the store refuses them."""
    accounts = Accounts(t.vault)
    store, metadata = t.mock(ObjectStore(accounts)), t.mock(InstanceMetadata(accounts))
    store.expired_status = 403
    accounts.lifetime = 2
    service = t.service(
        t.origin(
            "media", f"{store.url}/media", auth_type="s3", auth_credentials="instance", auth_metadataURL=metadata.url,
            timeouts_read="6s",
        )
    )  # fmt: skip
    t.bytes(service.read("/o/media/first.bin"), content("first.bin", SIZE), "a read with valid keys")
    keys = accounts.issued[0]
    metadata.failing, end, keys.expiration = 503, keys.expiration, None
    t.eventually(lambda: time.time() > end, "the keys never end")
    t.bytes(service.read("/o/media/second.bin"), content("second.bin", SIZE), "a read with expired keys")
    shown = service.credential("media")
    t.equal((shown.get("stale"), bool(shown.get("error"))), (True, True), f"stale and error of the credentials ({shown})")
    events = service.api("GET", "/v1/events").body.decode()
    t.check("stay in use" in events and "media" in events, f"no event tells of the expired keys: {events[-400:]}")
    keys.is_revoked = True
    reply = service.read("/o/media/third.bin")
    t.refused(reply, "a read after ExpiredToken", (502, 503, 504), words="metadata")
    t.equal(service.credential("media").get("stale"), False, "stale after ExpiredToken")
    metadata.failing, accounts.lifetime = None, 3600
    t.eventually(lambda: service.read("/o/media/third.bin").status == 200, "no read succeeds after the outage")
    t.equal(service.credential("media").get("stale"), False, "stale with new keys")


class Regional(ObjectStore):
    """A store that redirects requests for another region, with or without a place."""

    def __init__(self, accounts, status, location):
        self.status, self.location = status, location
        super().__init__(accounts, "eu-west-1")
        self.other = Verifier(accounts.keys, "us-east-1")

    def answer(self, request):
        try:
            self.other.verify(request)
        except Refused:
            return super().answer(request)
        fields = {"x-amz-bucket-region": "eu-west-1", "Content-Type": "application/xml"}
        if self.location:
            fields["Location"] = self.location.format(port=self.port) + request.target
        return Answer(self.status, fields, b"<Error><Code>PermanentRedirect</Code></Error>")


@scenario()
def bucket_regions(t):
    """Redirects to the region of a bucket are signed again, but never for a host of another service."""
    accounts = Accounts(t.vault)
    keys = accounts.permanent()
    cases = {
        "moved": (301, None, True), "temporary": (307, "http://127.0.0.1:{port}", True), "other": (307, "http://localhost:{port}", False),
    }  # fmt: skip
    settings, stores = {}, {}
    for name, (status, location, _) in cases.items():
        stores[name] = t.mock(Regional(accounts, status, location))
        settings |= t.origin(
            name, f"{stores[name].url}/media", auth_type="s3", auth_credentials="static", auth_accessKeyId=keys.access_key,
            auth_secretAccessKey=keys.secret,
        )  # fmt: skip
    service = t.service(settings)
    for name, (_, _, is_signed) in cases.items():
        reply = service.read(f"/o/{name}/film.bin")
        hosts = {r.fields["host"] for r in stores[name].of(method="GET") if "authorization" in r.fields}
        t.equal(hosts, {f"127.0.0.1:{stores[name].port}"}, f"{name}: the hosts with a signature")
        probe = service.api("POST", "/v1/probe", {"origin": name, "path": "probed.bin"})
        if is_signed:
            t.bytes(reply, content("film.bin", SIZE), f"{name}: a read")
            t.equal(probe.status, 200, f"{name}: the status of a probe ({probe})")
            # A learned region ends as other observations do, and until then each further read costs one request.
            stores[name].forget()
            t.bytes(service.read(f"/o/{name}/second.bin"), content("second.bin", SIZE), f"{name}: a second read")
            t.equal(len(stores[name].of("second")), 1, f"{name}: requests of the second read")
            kinds = [item["kind"] for item in service.api("GET", f"/v1/origins/{name}").json["observations"]]
            t.equal(kinds, ["regionStated"], f"{name}: observations")
            service.api("DELETE", f"/v1/origins/{name}/observations")
            t.bytes(service.read(f"/o/{name}/third.bin"), content("third.bin", SIZE), f"{name}: a third read")
            t.equal(len(stores[name].of("third")), 2, f"{name}: requests after the region is forgotten")
        else:
            t.refused(reply, f"{name}: a read", (403,))
            t.check(probe.status >= 400, f"{name}: a probe succeeds ({probe})")


class Lost(Mock):
    """A store that answers 301 without a place to all requests."""

    def answer(self, request):
        return Answer(301, {"Content-Type": "application/xml"}, b"<Error><Code>PermanentRedirect</Code></Error>")


@scenario()
def lost_redirect(t):
    """A probe fails for a redirect that cannot be followed, and a missing key without permission to list costs one
    request."""
    lost, accounts = t.mock(Lost()), Accounts(t.vault)
    store, metadata = t.mock(ObjectStore(accounts)), t.mock(InstanceMetadata(accounts))
    settings = t.origin("lost", lost.url) | t.origin(
        "media", f"{store.url}/media", auth_type="s3", auth_credentials="instance", auth_metadataURL=metadata.url
    )
    service = t.service(settings)
    probe = service.api("POST", "/v1/probe", {"origin": "lost", "path": "a.bin"})
    t.equal((probe.status, probe.json.get("upstreamStatus")), (502, 301), f"a probe of a redirect without a place ({probe})")
    for part in (None, "0-99"):
        store.forget()
        t.refused(service.read("/o/media/forbidden.bin", part), "a key without permission", (403,))
        t.equal([(r.method, r.fields.get("range")) for r in store.of("forbidden")], [("GET", f"bytes={part or '0-'}")], f"requests for {part or 'all bytes'} of a missing key")
        store.forget()
        probe = service.api("POST", "/v1/probe", {"origin": "media", "path": "forbidden.bin"})
        t.equal((probe.status, probe.json.get("upstreamStatus")), (502, 403), f"a probe of a key without permission ({probe})")
        t.equal([(r.method, r.fields.get("range")) for r in store.of("forbidden")], [("GET", "bytes=0-0")], "requests of a probe")
    t.equal(metadata.issued, 1, "the number of keys")
