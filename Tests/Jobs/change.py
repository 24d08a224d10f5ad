"""Changes of unfinished jobs: pause, resume, priority and limits."""

import signal

from harness.process import Larder, origin
from shaped import Shaped

MIB = 1 << 20
CASES = []


def case(function):
    CASES.append(function)
    return function


def start(program, directory, upstream, *settings, **options):
    """A service with the origin `shaped`."""
    settings = [*origin("shaped", f"http://127.0.0.1:{upstream.port}"), *settings]
    return Larder(program, directory, settings=settings, **options).start()


def item(size, name="film"):
    return {"origin": "shaped", "path": f"{name}-{size}.mp4"}


def patch(service, job, value, **fields):
    return service.call("PATCH", f"/v1/jobs/{job}", value, {name.replace("_", "-"): text for name, text in fields.items()})


@case
def pause(check, program, directory):
    """A paused job keeps its bytes over a kill, and fetches the rest once it is resumed."""
    upstream = Shaped(4 * MIB)
    service = start(program, directory, upstream)
    job = service.job(item(24 * MIB))
    state = lambda: service.get(f"/v1/jobs/{job}")  # noqa: E731
    check.eventually(lambda: state()["bytesDone"] > 4 * MIB, "no bytes arrive")
    reply = patch(service, job, {"state": "paused"})
    check.equal((reply.status, reply.json["state"]), (200, "paused"), "the pause")
    check.eventually(lambda: service.get("/v1/fills")["items"] == [], "a transfer goes on")
    paused = state()["bytesDone"]
    check.eventually(lambda: service.get("/v1/stats")["store"]["cachedBytes"] >= paused, "the bytes are not committed")
    check.equal([job["jobId"] for job in service.get("/v1/jobs?state=paused")["items"]], [job], "paused jobs")
    check.equal(service.get("/v1/stats")["jobs"]["paused"], 1, "paused jobs in statistics")
    service.process.send_signal(signal.SIGKILL)
    service.wait()
    sent = sum(request.sent for request in upstream.requests)
    requests = len(upstream.requests)
    service.start()
    check.equal(state()["state"], "paused", "state after a kill")
    other = service.finished(service.job(item(MIB, "other")))
    check.equal(other["state"], "succeeded", "another job beside it")
    check.equal(len([each for each in upstream.requests[requests:] if "film" in each.name]), 0, "requests while paused")
    check.equal(patch(service, job, {"state": "queued"}).status, 200, "the resumption")
    done = service.finished(job)
    check.equal(done["state"], "succeeded", "state at the end")
    sent = sum(request.sent for request in upstream.requests if "film" in request.name) - sent
    check(sent < 24 * MIB - paused // 2, f"{sent} bytes fetched after the pause at {paused}")
    reply = patch(service, job, {"priority": "low"})
    check.equal((reply.status, reply.json["code"]), (409, "conflict"), "a change of a finished job")
    check.equal(patch(service, "unknown", {"priority": "low"}).status, 404, "a change of an unknown job")


@case
def conditions(check, program, directory):
    """`If-Match` names the revision of the terms, which progress does not change."""
    upstream = Shaped(MIB)
    service = start(program, directory, upstream)
    job = service.job(item(64 * MIB))
    reply = service.call("GET", f"/v1/jobs/{job}")
    tag = reply.fields["etag"]
    check.eventually(lambda: service.get(f"/v1/jobs/{job}")["bytesDone"] > 0, "no bytes arrive")
    check.equal(service.call("GET", f"/v1/jobs/{job}").fields["etag"], tag, "the ETag after progress")
    reply = patch(service, job, {"priority": "high", "maxBytesPerSecond": 100_000}, If_Match=tag)
    check.equal((reply.status, reply.json["priority"], reply.json["maxBytesPerSecond"]), (200, "high", 100_000), "change")
    check(reply.fields["etag"] != tag, "the ETag is another one after the change")
    check.equal(patch(service, job, {"priority": "low"}, If_Match=tag).status, 412, "a change with the former ETag")
    check.equal(patch(service, job, {"priority": "high"}).fields["etag"], reply.fields["etag"], "ETag without a change")
    for body, field in [
        ({"state": "running"}, "state"), ({"deadlineAt": "2001-01-01T00:00:00Z"}, "deadlineAt"),
        ({"maxBytesPerSecond": 0}, "maxBytesPerSecond"), ({"priority": None}, "priority"), ({"label": "x"}, "label"),
    ]:  # fmt: skip
        reply = patch(service, job, body)
        check.equal((reply.status, reply.json.get("field")), (422, field), f"{body}")
    reply = patch(service, job, {"maxBytesPerSecond": None, "deadlineAt": "2100-01-01T00:00:00Z"})
    check.equal((reply.json["maxBytesPerSecond"], reply.json["deadlineAt"][:4]), (None, "2100"), "without a limit")
    service.call("DELETE", f"/v1/jobs/{job}")


@case
def rate(check, program, directory):
    """A rate limit that is set, changed and removed has an effect on the running item."""
    upstream = Shaped(40 * MIB)
    service = start(program, directory, upstream)
    job = service.job(item(96 * MIB), maxBytesPerSecond=MIB)
    rate = lambda: service.get(f"/v1/jobs/{job}")["bytesPerSecond"]  # noqa: E731
    check.eventually(lambda: 0.5 * MIB < rate() < 1.6 * MIB, "the first rate")
    patch(service, job, {"maxBytesPerSecond": 4 * MIB})
    check.eventually(lambda: 3 * MIB < rate() < 6 * MIB, "the second rate")
    patch(service, job, {"maxBytesPerSecond": None})
    done = service.finished(job) if service.is_running else print(service.last_words())
    check.equal(done["state"], "succeeded", "state at the end")
    job = service.job(item(32 * MIB, "second"))
    patch(service, job, {"maxBytesPerSecond": 16 * MIB})
    done = service.finished(job)
    check(done["bytesPerSecond"] < 24 * MIB, f"a limit for a running item: {done['bytesPerSecond']} bytes per second")


@case
def priority(check, program, directory):
    """A job of higher priority starts before those that have waited longer."""
    upstream = Shaped(2 * MIB)
    service = start(program, directory, upstream, "jobs.concurrency=1")
    first = service.job(item(4 * MIB, "a"))
    jobs = [service.job(item(MIB, name)) for name in "bcd"]
    patch(service, jobs[2], {"priority": "high"})
    for job in [first, *jobs]:
        check.equal(service.finished(job)["state"], "succeeded", "state at the end")
    order = sorted(jobs, key=lambda job: service.get(f"/v1/jobs/{job}")["startedAt"])
    check.equal(order, [jobs[2], *jobs[:2]], "the order of starts")
