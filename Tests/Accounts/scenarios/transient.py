"""Failures that pass: busy servers, and credential services and metadata services that fail for a while."""

import json
import threading
import time

from mocks.base import Answer, Mock, content, serve
from mocks.metadata import ContainerCredentials, InstanceMetadata
from mocks.objects import SIZE, Accounts, ObjectStore

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
    made = service.api("POST", "/v1/jobs", {"items": items}, fields={"Prefer": "wait=30"}).json
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
