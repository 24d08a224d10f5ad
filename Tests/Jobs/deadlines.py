"""Deadlines: the order of jobs, predictions of their ends, and alarms."""

import datetime
import json
import threading
import time

from change import MIB, item, patch, start
from harness.process import Larder, origin
from shaped import Shaped

CASES = []
#: Bytes per second of the upstreams; the last one slows down to SLOWED of its rate half way.
RATES, SLOWED = (4 * MIB, 3 * MIB, 2 * MIB), 0.5
JOBS, ITEMS, SECONDS = 20, 4, 36


def case(function):
    CASES.append(function)
    return function


def instant(seconds):
    """An RFC 3339 time so many seconds from now."""
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Events:
    """The events of the topic `jobs`, read until the end of the program."""

    def __init__(self, service):
        self.service, self.seen = service, 0
        self.list = []

    def read(self):
        document = self.service.get(f"/v1/events?topics=jobs&after={self.seen}")
        self.seen = document["lastId"]
        self.list += document["items"]
        return self.list


def plan():
    """The jobs in the order of arrival: upstream, bytes of an item, deadline in seconds. The latest deadlines come first."""
    jobs = []
    for number, rate in enumerate(RATES):
        count = len(range(number, JOBS, len(RATES)))
        size = int(rate * SECONDS / count / ITEMS)
        for place in range(count):
            # In order of deadlines, the upstream has finished so much work at its first rate.
            ready = (place + 1) * SECONDS / count
            jobs.append((number, size, ready * 1.25 + 3))
    return sorted(jobs, key=lambda job: -job[2])


class Run:
    """All jobs of the plan, with deadlines or without: a sample of all jobs every quarter of a second."""

    def __init__(self, program, directory, has_deadlines):
        self.upstreams = [Shaped(rate) for rate in RATES]
        settings = ["jobs.concurrency=12"]
        for number, upstream in enumerate(self.upstreams):
            settings += origin(f"up{number}", f"http://127.0.0.1:{upstream.port}")
        self.service = Larder(program, directory, settings=settings).start()
        self.deadlines, self.samples = {}, {}
        began = time.time()
        for place, (number, size, deadline) in enumerate(plan()):
            items = [{"origin": f"up{number}", "path": f"{place}-{part}-{size}.mp4"} for part in range(ITEMS)]
            limits = {"deadlineAt": instant(deadline)} if has_deadlines else {}
            self.deadlines[self.service.job(*items, **limits)] = time.time() + deadline
        self.slowed_at = began + SECONDS / 2
        slows = threading.Timer(SECONDS / 2, lambda: setattr(self.upstreams[-1], "rate", RATES[-1] * SLOWED))
        slows.start()
        while self.sample() and time.time() < began + 5 * SECONDS:
            time.sleep(0.25)
        slows.cancel()
        self.service.stop()

    def sample(self):
        """Notes all jobs; whether some are unfinished."""
        jobs = self.service.get("/v1/jobs?limit=100")["items"]
        for job in jobs:
            self.samples.setdefault(job["jobId"], []).append((time.time(), job))
        return any(job["finishedAt"] is None for job in jobs)

    def ends(self):
        """The end of each job that has succeeded."""
        last = {identifier: samples[-1][1] for identifier, samples in self.samples.items()}
        return {name: seconds_of(job["finishedAt"]) for name, job in last.items() if job["state"] == "succeeded"}

    def missed(self):
        ends = self.ends()
        return {job for job, deadline in self.deadlines.items() if ends.get(job, float("inf")) > deadline}

    def errors(self):
        """For each job that has succeeded: the error of its prediction at half time, as a share of its whole time."""
        errors = {}
        for job, end in self.ends().items():
            created = seconds_of(self.samples[job][0][1]["createdAt"])
            middle = (created + end) / 2
            _, then = min(self.samples[job], key=lambda sample: abs(sample[0] - middle))
            predicted = then["predictedFinishAt"]
            errors[job] = abs(seconds_of(predicted) - end) / (end - created) if predicted else float("inf")
        return errors

    def alarms(self):
        """The time of the first alarm of each job that had one."""
        firsts = {}
        for job, samples in self.samples.items():
            for at, document in samples:
                if document["atRisk"]:
                    firsts.setdefault(job, at)
        return firsts


@case
def deadlines(check, program, directory):
    """20 jobs on three upstreams, one of which slows down: deadlines kept, predictions and alarms."""
    (directory / "deadlines").mkdir()
    (directory / "arrival").mkdir()
    run = Run(program, directory / "deadlines", True)
    other = Run(program, directory / "arrival", False)
    missed, arrival = run.missed(), other.missed()
    errors = sorted(run.errors().values())
    good = sum(error <= 0.2 for error in errors) / max(1, len(errors))
    alarms = run.alarms()
    false = [job for job in alarms if job not in missed]
    late = [job for job in missed if job not in alarms]
    for job in missed & set(alarms):
        # Nothing can tell that an upstream will slow down; 5 s later, the rate of the last 5 s shows it.
        created = seconds_of(run.samples[job][0][1]["createdAt"])
        latest = max(run.deadlines[job] - 0.25 * (run.deadlines[job] - created) + 1, run.slowed_at + 6)
        if alarms[job] > latest:
            late.append(f"{alarms[job] - latest:.1f} s late")
    check.note(f"missed deadlines: {len(missed)} of {JOBS}; in order of arrival {len(arrival)}")
    check.note(f"predictions at half time within 20 %: {good:.0%} of {len(errors)}; errors "
               + ", ".join(f"{error:.0%}" for error in errors))  # fmt: skip
    check.note(f"alarms: {len(alarms)}, false {len(false)}, late or missing {len(late)}")
    check(len(missed) < len(arrival), "no fewer deadlines are missed than in order of arrival")
    check(good >= 0.9, f"{good:.0%} of the predictions at half time are within 20 %")
    check(len(false) <= 0.1 * JOBS, f"{len(false)} of {JOBS} jobs had a false alarm")
    check(not late, f"{len(late)} of {len(missed)} missed deadlines without an alarm at 25 % of the time: {late}")


@case
def alarm(check, program, directory):
    """A job that will be late is at risk as member, event and metric, until its deadline is changed."""
    upstream = Shaped(MIB)
    service = start(program, directory, upstream)
    events = Events(service)
    job = service.job(item(60 * MIB), deadlineAt=instant(30))
    state = lambda: service.get(f"/v1/jobs/{job}")  # noqa: E731
    check.eventually(lambda: state()["atRisk"], "the job is not at risk", 15)
    found = state()
    check(seconds_of(found["predictedFinishAt"]) > seconds_of(found["deadlineAt"]), "prediction", json.dumps(found))
    raised = lambda: [each for each in events.read() if each["type"] == "atRisk" and each["job"]["jobId"] == job]  # noqa: E731
    check.eventually(raised, "no event")
    check("larder_jobs_at_risk 1" in service.call("GET", "/metrics").body.decode(), "the metric")
    check.equal(service.get("/v1/stats")["jobs"]["atRisk"], 1, "statistics")
    patch(service, job, {"deadlineAt": instant(200)})
    check.eventually(lambda: not state()["atRisk"], "the job is still at risk", 25)
    check.equal(len(raised()), 1, "events")
    patch(service, job, {"state": "paused"})
    check.eventually(lambda: state()["predictedFinishAt"] is None, "a paused job has a predicted end")
    service.call("DELETE", f"/v1/jobs/{job}")


@case
def urgent(check, program, directory):
    """A job with a deadline starts before those of its priority that have waited longer."""
    upstream = Shaped(2 * MIB)
    service = start(program, directory, upstream, "jobs.concurrency=1")
    first = service.job(item(3 * MIB, "a"))
    plain = service.job(item(MIB, "b"))
    late = service.job(item(MIB, "c"), deadlineAt=instant(600))
    soon = service.job(item(MIB, "d"), deadlineAt=instant(300))
    for job in (first, plain, late, soon):
        service.finished(job)
    order = sorted([plain, late, soon], key=lambda job: service.get(f"/v1/jobs/{job}")["startedAt"])
    check.equal(order, [soon, late, plain], "the order of starts")
