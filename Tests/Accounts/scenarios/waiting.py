"""Items of jobs that wait: for an open circuit, a limit of the upstream, credentials and disk space."""

from mocks.base import Answer, Mock, content, serve
from mocks.metadata import ContainerCredentials
from mocks.objects import SIZE, Accounts, ObjectStore

from . import scenario


UNFINISHED = ("queued", "running")


class Switched(Mock):
    """A server of files; while `failing` is set, it answers with that status and these fields."""

    def __init__(self, failing=None, **fields):
        self.failing, self.fields = failing, {name.replace("_", "-"): value for name, value in fields.items()}
        super().__init__()

    def answer(self, request):
        return Answer(self.failing, self.fields) if self.failing else serve(request, content(request.name, SIZE))


def submit(service, items, **members):
    return service.api("POST", "/v1/jobs", {"items": items, **members}).json["jobId"]


def shown(service, job):
    return service.api("GET", f"/v1/jobs/{job}").json


def items(service, job):
    return service.api("GET", f"/v1/jobs/{job}/items?limit=1000").json["items"]


def waits(t, service, job, count, cause):
    """Waits until the items of a job wait, and checks their documents."""
    found = []

    def all_wait():
        # An item that tries the upstream again is running for a moment.
        found[:] = items(service, job)
        return shown(service, job)["itemsWaiting"] == count and all(item["state"] == "waiting" for item in found)

    t.eventually(all_wait, f"{cause}: the items do not wait")
    t.equal({(i["state"], i["waitingFor"]) for i in found}, {("waiting", cause)}, f"{cause}: states and causes")
    t.check(all(i["retryAt"] and i["error"] for i in found), f"{cause}: an item without retryAt or error: {found[0]}")
    document = shown(service, job)
    t.check(document["state"] in UNFINISHED and document["itemsFailed"] == 0, f"{cause}: the job is {document}")


def succeeds(t, service, job, subject):
    t.eventually(lambda: shown(service, job)["state"] not in UNFINISHED, f"{subject}: the job does not end", seconds=90)
    document = shown(service, job)
    t.equal([document["state"], document["itemsWaiting"]], ["succeeded", 0], f"{subject}: the end ({document['error']})")
    t.check(all(i["waitingFor"] is None and i["retryAt"] is None for i in items(service, job)), f"{subject}: items still wait")


@scenario()
def waiting_circuit(t):
    """Items wait while the circuit is open, across kill -9, and run when it closes. They hold no permit, and cancelling them
    takes no time."""
    upstream, other = t.mock(Switched(500)), t.mock(Switched())
    count = 200 if t.is_brief else 2000
    breaker = {"circuitBreaker_failures": 2, "circuitBreaker_pause": "10s"}
    service = t.service(
        t.origin("m", upstream.url, access="public", **breaker) | t.origin("o", other.url, access="public")
        | {"jobs.concurrency": 2}
    )  # fmt: skip
    # These requests open the circuit. Items that have failed before it opened would be final.
    for index in range(2):
        service.send("GET", f"/o/m/read{index}.bin")
    job = submit(service, [{"origin": "m", "path": f"item{index}.bin"} for index in range(count)])
    waits(t, service, job, count, "circuit")
    succeeds(t, service, submit(service, [{"origin": "o", "path": f"o{index}.bin"} for index in range(4)]), "another origin")
    _, output, errors = service.run("jobs", job)
    listing = output + errors
    t.check(f"{count:,} waiting" in listing and "waiting for circuit until" in listing, f"the client shows {listing[:300]}")

    second = submit(service, [{"origin": "m", "path": f"second{index}.bin"} for index in range(count)])
    waits(t, service, second, count, "circuit")
    ended = service.api("DELETE", f"/v1/jobs/{second}").json
    t.equal([ended["state"], ended["itemsCancelled"], ended["itemsWaiting"]], ["cancelled", count, 0], "a cancelled job")

    requests = len(upstream.requests)
    t.check(requests <= 20, f"{requests} requests to the upstream while its circuit was open")
    service.kill()
    service.start()
    waits(t, service, job, count, "circuit")
    t.equal(shown(service, second)["state"], "cancelled", "the cancelled job after the restart")
    upstream.failing = None
    succeeds(t, service, job, "after kill -9")


@scenario()
def waiting_circuit_closed(t):
    """Closing the circuits of an origin wakes its items at once."""
    upstream = t.mock(Switched(500))
    breaker = {"circuitBreaker_failures": 2, "circuitBreaker_pause": "29s"}
    service = t.service(t.origin("m", upstream.url, access="public", **breaker))
    for index in range(2):
        service.send("GET", f"/o/m/read{index}.bin")
    job = submit(service, [{"origin": "m", "path": f"item{index}.bin"} for index in range(20)])
    waits(t, service, job, 20, "circuit")
    upstream.failing = None
    service.api("DELETE", "/v1/origins/m/circuits")
    t.eventually(lambda: shown(service, job)["state"] == "succeeded", "the items do not wake", seconds=15)


@scenario()
def waiting_quota(t):
    """Items wait as long as a busy upstream asks for, and one of them repeats for all. `retries: 0` makes its answer
    final."""
    upstream = t.mock(Switched(429, Retry_After="3"))
    service = t.service(
        t.origin("m", upstream.url, access="public") | t.origin("n", upstream.url, access="public", retries=0)
    )  # fmt: skip
    job = submit(service, [{"origin": "m", "path": f"item{index}.bin"} for index in range(100)])
    waits(t, service, job, 100, "quota")
    t.check(len(upstream.requests) <= 40, f"{len(upstream.requests)} requests for 100 items under a limit")
    final = submit(service, [{"origin": "n", "path": "final.bin"}])
    t.eventually(lambda: shown(service, final)["state"] == "failed", "the job without retries does not fail")
    upstream.failing = None
    succeeds(t, service, job, "after the limit")


@scenario()
def waiting_credentials(t):
    """Items wait while the service of credentials fails."""
    accounts = Accounts(t.vault)
    store, token = t.mock(ObjectStore(accounts)), t.vault.new("containerToken")
    endpoint = t.mock(ContainerCredentials(accounts, token))
    endpoint.failing = 503
    service = t.service(
        t.origin(
            "k", f"{store.url}/media", auth_type="s3", auth_credentials="container", access="public",
            auth_metadataURL=endpoint.url + endpoint.PATH,
        ),
        environment={"AWS_CONTAINER_AUTHORIZATION_TOKEN": token},
    )  # fmt: skip
    job = submit(service, [{"origin": "k", "path": f"item{index}.bin"} for index in range(100)])
    waits(t, service, job, 100, "credentials")
    t.equal(len(store.requests), 0, "the number of requests without credentials")

    endpoint.failing = None
    succeeds(t, service, job, "after the outage")
