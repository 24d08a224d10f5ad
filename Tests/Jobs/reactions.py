"""Jobs that start once a reader passes a point of a file."""

import signal

from change import MIB, item, start
from shaped import Shaped

CASES = []


def case(function):
    CASES.append(function)
    return function


def read(service, name, first, last):
    """Reads a range of an asset through the service."""
    reply = service.call("GET", f"/o/shaped/{name}", fields={"Range": f"bytes={first}-{last}"})
    return reply.status, len(reply.body)


@case
def reader(check, program, directory):
    """A job with `when` starts when a reader has passed the point, from the upstream and from the cache, over a kill too."""
    upstream = Shaped(64 * MIB)
    service = start(program, directory, upstream)
    size, name = 16 * MIB, f"one-{16 * MIB}.mp4"
    when = {"origin": "shaped", "path": name, "atPercent": 75}
    job = service.job(item(MIB, "two"), when=when)
    state = lambda job: service.get(f"/v1/jobs/{job}")  # noqa: E731
    check.equal((state(job)["state"], state(job)["waitingFor"]), ("queued", "when"), "state")
    check.equal(state(job)["when"]["passedAt"], None, "the time before")
    check.equal(read(service, name, size - 65536, size - 1), (206, 65536), "the index at the end")
    check.equal(read(service, name, 0, size // 2), (206, size // 2 + 1), "the first half")
    other = service.finished(service.job(item(MIB, "other")))
    check.equal(other["state"], "succeeded", "another job beside it")
    check.equal(state(job)["waitingFor"], "when", "state after the first half and the end")
    service.process.send_signal(signal.SIGKILL)
    service.wait()
    service.start()
    check.equal(state(job)["waitingFor"], "when", "state after a kill")
    # The watch of the new process begins within a quarter of a second.
    check.eventually(
        lambda: read(service, name, size // 2, size - MIB) and state(job)["waitingFor"] is None, "it does not start", 20
    )
    done = service.finished(job)
    check.equal(done["state"], "succeeded", "the job")
    check(done["when"]["passedAt"], "it has no time", done["when"])
    # From the cache: the bytes are sent by the kernel or from a prepared response.
    service.finished(service.job({"origin": "shaped", "path": name}))
    assets = service.get(f"/v1/assets?key=/o/shaped/{name}")["items"]
    job = service.job(item(MIB, "three"), when={"assetId": assets[0]["assetId"], "atPercent": 50})
    check.eventually(lambda: read(service, name, 0, size - 1)[0] == 206 and state(job)["waitingFor"] is None, "it does not start", 20)
    check.equal(service.finished(job)["state"], "succeeded", "the job after a read of the cache")
    job = service.job(item(MIB, "four"), when={"origin": "shaped", "path": "never-1.mp4", "atPercent": 0})
    check.equal(service.call("DELETE", f"/v1/jobs/{job}").json["state"], "cancelled", "a cancelled job that waits")
    for value, field in [
        ({"origin": "shaped", "path": "x"}, "when.atPercent"), ({"origin": "nobody", "path": "x", "atPercent": 1}, "when.origin"),
        ({"url": "http://127.0.0.1/x", "atPercent": 1}, "when.url"), ({"assetId": "0" * 32, "atPercent": 1}, "when.assetId"),
        ({"origin": "shaped", "path": "x", "atPercent": 101}, "when.atPercent"), ({"atPercent": 5}, "when"),
    ]:  # fmt: skip
        reply = service.call("POST", "/v1/jobs", {"items": [item(MIB)], "when": value})
        check.equal(reply.status, 422, f"{value}")
        check(reply.json.get("field", "").startswith("when"), f"{value} instead of {field}", reply.json)
