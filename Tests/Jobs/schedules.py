"""Schedules, with a service whose wall clock the test sets, and windows when the clock jumps."""

import datetime
import hashlib
import json
import os
import signal
import time
import zoneinfo

from change import MIB, item, start
from deadlines import seconds_of
from harness.clock import Clock
from shaped import Shaped

CASES = []
HOUR, DAY = 3600, 86400
UTC = datetime.timezone.utc
#: An instant from which the clocks of the tests start: 2027-03-27, the day before the clocks of Berlin change.
BEGIN = int(datetime.datetime(2027, 3, 27, 12, tzinfo=UTC).timestamp())


def case(function):
    CASES.append(function)
    return function


def local(day, hours, zone):
    """The instant of a local time on a day of March or April 2027 that exists once."""
    return int(datetime.datetime(2027, 3, day, *hours, tzinfo=zoneinfo.ZoneInfo(zone)).timestamp())


def put(service, name, value, token=None, **fields):
    fields = {key.replace("_", "-"): text for key, text in fields.items()}
    return service.call("PUT", f"/v1/schedules/{name}", value, fields, token=token)


def last_run(service, name):
    return service.get(f"/v1/schedules/{name}")["lastRun"]


def ran(check, service, name, at, message):
    """Waits for the run of an instant; its document."""
    check.eventually(lambda: (run := last_run(service, name)) and seconds_of(run["dueAt"]) == at, message)
    return last_run(service, name)


def text(at):
    return datetime.datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@case
def schedules(check, program, directory):
    """A daily schedule keeps its local time over a change of the clocks; missed runs happen once after a start."""
    clock, upstream = Clock(directory, BEGIN), Shaped(64 * MIB)
    service = start(program, directory, upstream, environment=clock.environment)
    job = {"items": [item(MIB)], "tags": ["night"]}
    reply = put(service, "nightly", {"repeat": "daily", "at": "03:30 Europe/Berlin", "deadlineSeconds": 600, "job": job})
    check.equal((reply.status, reply.fields.get("location")), (201, "/v1/schedules/nightly"), "a new schedule")
    instants = [local(day, (3, 30), "Europe/Berlin") for day in (28, 29, 30, 31)]
    check.equal(instants[1] - instants[0], DAY, "seconds between the first two instants")
    check.equal(seconds_of(reply.json["nextRunAt"]), instants[0], "the next run")
    check.equal(last_run(service, "nightly"), None, "a run before its instant")
    clock.set(instants[0] + 1)
    run = ran(check, service, "nightly", instants[0], "no run after a jump forward")
    done = service.finished(run["jobId"])
    check.equal((done["state"], done["label"]), ("succeeded", "nightly"), "the job")
    late = seconds_of(done["deadlineAt"]) - seconds_of(run["startedAt"])
    check(abs(late - 600) < 0.01, f"its deadline is {late} s after its start", run)
    # Back by two hours: the instant comes again, and is settled.
    clock.set(instants[0] - 2 * HOUR)
    check.eventually(
        lambda: seconds_of(service.get("/v1/schedules/nightly")["nextRunAt"]) == instants[1], "the next run after a jump back"
    )
    clock.set(instants[1] + 1)
    second = ran(check, service, "nightly", instants[1], "no second run")
    service.finished(second["jobId"])
    check.equal(len(service.get("/v1/jobs?label=nightly")["items"]), 2, "jobs after jumps in both directions")
    service.process.send_signal(signal.SIGKILL)
    service.wait()
    clock.set(instants[3] + 5 * HOUR)
    for _ in range(2):
        service.start()
        third = ran(check, service, "nightly", instants[3], "no missed run after a start")
        service.finished(third["jobId"])
        service.process.send_signal(signal.SIGKILL)
        service.wait()
    service.start()
    check.equal(len(service.get("/v1/jobs?label=nightly")["items"]), 3, "jobs after missed runs and kills")
    # A clock that was wrong by a year must not stop the schedule.
    clock.set(instants[3] + 366 * DAY)
    check.eventually(lambda: len(service.get("/v1/jobs?label=nightly")["items"]) == 4, "no run in another year")
    clock.set(local(31, (3, 30), "Europe/Berlin") + DAY + HOUR)
    check.eventually(
        lambda: seconds_of(service.get("/v1/schedules/nightly")["nextRunAt"]) <= clock.now() + DAY, "the schedule has stopped"
    )
    reply = service.call("GET", "/metrics").body.decode()
    check('larder_schedule_runs_total{result="started"}' in reply and "larder_schedules 1" in reply, "metrics")


@case
def intervals(check, program, directory):
    """An interval begins at once; a run is skipped while the last job is unfinished; changes and conditions."""
    clock, upstream = Clock(directory, BEGIN), Shaped(MIB)
    service = start(program, directory, upstream, environment=clock.environment)
    reply = put(service, "often", {"repeat": "every: 6h", "job": {"items": [item(64 * MIB)]}})
    check.equal(reply.json["repeat"], "every:6h", "the repetition")
    begin = int(seconds_of(reply.json["createdAt"]))
    first = ran(check, service, "often", begin, "no run at once")
    clock.set(begin + 6 * HOUR + 1)
    second = ran(check, service, "often", begin + 6 * HOUR, "no second run")
    check.equal((second["result"], second["jobId"]), ("skipped", first["jobId"]), "a run beside an unfinished job")
    etag = reply.fields["etag"]
    value = {"repeat": "every:6h", "enabled": False, "job": {"items": [item(MIB)]}}
    check.equal(put(service, "often", value, If_Match='"1234567"').status, 412, "another revision")
    check.equal(put(service, "often", value, If_None_Match="*").status, 412, "a schedule that exists")
    reply = put(service, "often", value, If_Match=etag)
    check.equal((reply.status, reply.json["state"], reply.json["nextRunAt"]), (200, "disabled", None), "a disabled schedule")
    service.call("DELETE", f"/v1/jobs/{first['jobId']}")
    reply = put(service, "often", {**value, "enabled": True})
    third = service.finished(ran(check, service, "often", int(clock.now()), "no run after it is enabled")["jobId"])
    check.equal(third["state"], "succeeded", "the job after the change")
    check.equal([each["name"] for each in service.get("/v1/schedules")["items"]], ["often"], "schedules")
    check.equal(service.call("DELETE", "/v1/schedules/often").status, 204, "the deletion")
    check.equal(service.call("GET", "/v1/schedules/often").status, 404, "a deleted schedule")
    job = {"items": [item(MIB)]}
    for value, field in [
        ({"repeat": "hourly", "job": job}, "repeat"), ({"repeat": "every:1s", "job": job}, "repeat"),
        ({"repeat": "daily", "at": "02:00 Europe/Atlantis", "job": job}, "at"), ({"repeat": "daily", "at": "2:00 UTC", "job": job}, "at"),
        ({"repeat": "every:1h", "at": "02:00 UTC", "job": job}, "at"), ({"repeat": "daily"}, "job"), ({"job": job}, "repeat"),
        ({"repeat": "daily", "job": {"items": []}}, "job.items"), ({"repeat": "daily", "job": {**job, "deadlineAt": text(BEGIN)}}, "job.deadlineAt"),
        ({"repeat": "daily", "job": {"items": [{"origin": "nobody", "path": "x"}]}}, "job.items[0].origin"),
        ({"repeat": "daily", "job": {**job, "windows": ["01:00-02:00 Mars"]}}, "job.windows[0]"),
    ]:  # fmt: skip
        reply = put(service, "bad", value)
        check.equal((reply.status, reply.json.get("field")), (422, field), f"{value}")
    check.equal(put(service, "a%20b", {"repeat": "daily", "job": job}).json.get("field"), "name", "a name with a blank")
    check.equal(service.get("/v1/schedules")["items"], [], "schedules after refused ones")


@case
def suspended(check, program, directory):
    """A run has the present limits of its token; without the token the schedule is suspended, with it it goes on."""
    clock, upstream = Clock(directory, BEGIN), Shaped(64 * MIB)
    entry = {"id": "team", "sha256": hashlib.sha256(b"team-secret").hexdigest(), "scope": "write"}
    tokens = directory / "tokens.json"

    def write(*entries):
        part = tokens.with_suffix(".part")
        part.write_text(json.dumps({"tokens": entries}))
        os.replace(part, tokens)

    write({**entry, "prefixes": ["/o/shaped/"]})
    service = start(program, directory, upstream, f"access.tokensFile={tokens}", environment=clock.environment, token="boss-secret")
    value = {"repeat": "every:1h", "job": {"items": [item(MIB, "own")]}}
    reply = put(service, "team", value, token="team-secret")
    begin = int(seconds_of(reply.json["createdAt"]))
    check.equal((reply.status, reply.json["owner"]), (201, "team"), "the schedule of a limited token")
    service.finished(ran(check, service, "team", begin, "no first run")["jobId"])
    secret = put(service, "signed", {"repeat": "daily", "job": {"items": [{**item(MIB), "path": "film-9.mp4?sig=hidden"}]}})
    check("hidden" not in secret.body.decode(), "the query of a path is shown")
    check.equal(service.call("GET", "/v1/schedules/signed", token="team-secret").status, 200, "a schedule inside the limits")
    write()
    state = lambda: service.get("/v1/schedules/team")  # noqa: E731
    check.eventually(lambda: state()["state"] == "suspended", "the schedule of a removed token is not suspended")
    check("team" in state()["reason"] and state()["nextRunAt"] is None, "the reason", state())
    clock.set(begin + HOUR + 1)
    write({**entry, "prefixes": ["/o/elsewhere/"]})
    failed = ran(check, service, "team", begin + HOUR, "no run with the new limits")
    check.equal((failed["result"], failed["error"]["code"]), ("failed", "tokenScope"), "a run outside the present limits")
    check.equal(service.call("GET", "/v1/schedules/signed", token="team-secret").status, 403, "a schedule outside the limits")
    check('larder_schedule_runs_total{result="failed"} 1' in service.call("GET", "/metrics").body.decode(), "the metric")
    write({**entry, "prefixes": ["/o/shaped/own-"]})
    check.eventually(lambda: service.call("GET", "/v1/schedules/team", token="team-secret").status == 200, "the limits stay")
    clock.set(begin + 2 * HOUR + 1)
    run = ran(check, service, "team", begin + 2 * HOUR, "no run after the token is back")
    check.equal(service.finished(run["jobId"])["state"], "succeeded", "the job of the token that is back")
    stored = (directory / "store").rglob("*")
    check(not any(b"sig=hidden" in file.read_bytes() for file in stored if file.is_file()), "a signature is stored unencrypted")


@case
def clocks(check, program, directory):
    """Windows and `notBefore` of jobs follow a clock that jumps, in both directions."""
    clock, upstream = Clock(directory, BEGIN), Shaped(4 * MIB)
    service = start(program, directory, upstream, environment=clock.environment)
    night = int(datetime.datetime(2027, 3, 28, 1, tzinfo=UTC).timestamp())
    job = service.job(item(200 * MIB), windows=["01:00-06:00 UTC"], notBefore=text(night - HOUR))
    state = lambda: service.get(f"/v1/jobs/{job}")  # noqa: E731
    check.equal((state()["waitingFor"], seconds_of(state()["nextRunAt"])), ("notBefore", night), "before its time")
    clock.set(night - 60)
    check.eventually(lambda: state()["waitingFor"] == "window", "it does not wait for its window")
    clock.set(night + 1)
    check.eventually(lambda: state()["bytesDone"] > 0, "it does not run in its window")
    clock.set(night - 2 * HOUR)
    check.eventually(lambda: state()["waitingFor"] == "notBefore", "it goes on before its time")
    check.eventually(lambda: service.get("/v1/fills")["items"] == [], "a transfer goes on")
    clock.set(night + 5 * HOUR + 1)
    check.eventually(lambda: seconds_of(state()["nextRunAt"] or text(0)) == night + DAY, "it runs after its window")
    clock.set(night + DAY + 1)
    done = state()["bytesDone"]
    check.eventually(lambda: state()["bytesDone"] > done, "it does not run in the next window")
    service.call("DELETE", f"/v1/jobs/{job}")
