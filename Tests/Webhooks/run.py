#!/usr/bin/env python3
"""Webhooks with a real service and a receiver that checks the signatures with the package standardwebhooks.

    run.py --larder .build/debug/larder
    run.py --larder .build/debug/larder --only events,outage
"""

import contextlib
import dataclasses
import datetime
import ipaddress
import os
import pathlib
import signal
import socket
import sys
import threading

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "Jobs")]

from harness import checks, upstream, venv  # noqa: E402
from harness.process import Larder, free_port, origin  # noqa: E402

MIB = 1 << 20
KINDS = ["job.ended", "job.atRisk", "circuit.opened", "disk.full", "credentials.expiring"]
CASES = []
#: Cases that --brief leaves out.
SLOW = {"answers", "full"}


def case(function):
    CASES.append(function)
    return function


def instant(seconds):
    """An RFC 3339 time so many seconds from now."""
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def hook(directory, url, *secrets, name="ops", allowed=True, **settings):
    """The settings of a webhook with a new file of secrets; underscores in names stand for dots."""
    file = directory / f"{name}.secrets"
    file.write_text("".join(f"{secret}\n" for secret in secrets))
    values = {"url": url, "secretFile": file, **({"allowPrivateAddresses": "true"} if allowed else {}), **settings}
    return [f"webhooks.{name}.{key.replace('_', '.')}={value}" for key, value in values.items()]


def webhook(service, name="ops"):
    return next(each for each in service.get("/v1/webhooks")["items"] if each["name"] == name)


class Source(upstream.Upstream):
    """Files of 1000 bytes at all paths."""

    def answer(self, request):
        return upstream.asset(1000, etag='"a"').answer(request)


class Stage:
    """A service with an upstream whose files are small, and a receiver."""

    def __init__(self, program, directory, answer=lambda message: 204, **settings):
        self.upstream = Source()
        self.secret = new_secret()
        self.receiver = Receiver(self.secret, answer)
        self.number = 0
        self.service = Larder(
            program, directory, self.upstream.port, hook(directory, self.receiver.url, self.secret, **settings),
        )  # fmt: skip

    def __enter__(self):
        self.service.start()
        return self

    def __exit__(self, *_):
        self.service.stop()
        self.receiver.close()
        self.upstream.close()

    def end_job(self):
        """Ends a job, and with it causes an event; the identifier of the job."""
        self.number += 1
        job = self.service.job({"origin": "media", "path": f"{self.number}.mp4"})
        self.service.finished(job)
        return job

    def received(self, job):
        """The accepted messages about the end of a job."""
        return [each for each in self.receiver.of("job.ended") if each.data["jobId"] == job]


def check_message(check, message, kind, secret):
    """The form of a message, and its signature."""
    check(message.fault is None, f"the signature of {kind}: {message.fault!r}")
    check.equal(sorted(message.document), ["data", "timestamp", "type"], f"the members of {kind}")
    check.equal(message.type, kind, "the type")
    datetime.datetime.fromisoformat(message.document["timestamp"].replace("Z", "+00:00"))
    check.equal(message.headers["content-type"], "application/json", "the content type")
    check(message.identifier.startswith("msg_") and "." not in message.identifier, f"the identifier {message.identifier}")
    check(message.is_signed_by(secret) and not message.is_signed_by(new_secret()), f"the signature of {kind}")
    changed = dataclasses.replace(message, body=message.body.replace("}", " }", 1))
    check(not changed.is_signed_by(secret), f"a changed body of {kind} is accepted")


@case
def events(check, program, directory):
    """Each kind of event is delivered once, signed, with the document of the API."""
    shaped, secret = Shaped(MIB), new_secret()
    receiver = Receiver(secret)
    (directory / "credentials").mkdir(mode=0o700)
    file = directory / "credentials" / "sas"
    file.write_text(f"sv=2024-11-04&se={instant(200).replace(':', '%3A')}&sr=c&sp=r&sig=c2lnbmF0dXJl\n")
    file.chmod(0o600)
    settings = [
        *hook(directory, receiver.url, secret),
        *hook(directory, receiver.url + "/circuits", secret, name="circuits", events="circuit.opened"),
        *origin("shaped", f"http://127.0.0.1:{shaped.port}"),
        *origin("broken", f"http://127.0.0.1:{free_port()}", retries=0, circuitBreaker_failures=1),
        *origin("azure", f"http://127.0.0.1:{shaped.port}", auth_type="sas", auth_file="sas"),
        f"credentialsDirectory={directory / 'credentials'}",
    ]  # fmt: skip
    (directory / "full").mkdir()
    full = Larder(
        program, directory / "full", shaped.port,
        [*hook(directory, receiver.url + "/full", secret, name="full"), "policy.minFreeDisk=1024TiB"],
    )  # fmt: skip
    with Larder(program, directory, settings=settings) as service, full:
        late = service.job({"origin": "shaped", "path": f"film-{60 * MIB}.mp4"}, deadlineAt=instant(30))
        check.equal(service.call("GET", "/o/broken/a.mp4").status, 502, "a read of an upstream that is down")
        check.equal(service.call("GET", "/o/azure/a-100.mp4").status, 200, "a read with a shared access signature")
        for kind in KINDS[1:]:
            check.eventually(lambda: receiver.of(kind), f"no {kind}")
        service.call("DELETE", f"/v1/jobs/{late}")
        check.eventually(lambda: receiver.of("job.ended"), "no job.ended")
        found = {kind: receiver.of(kind) for kind in KINDS}
        check.equal({kind: len(all) for kind, all in found.items()}, {**dict.fromkeys(KINDS, 1), "circuit.opened": 2},
                    "the numbers of messages")  # fmt: skip
        for kind, messages in found.items():
            for message in messages:
                check_message(check, message, kind, secret)
        check.equal({each.path for each in found["circuit.opened"]}, {"/hook", "/hook/circuits"}, "the receivers")
        check.equal(len({each.identifier for each in found["circuit.opened"]}), 1, "identifiers of one event")
        job, ended = found["job.atRisk"][0].data, found["job.ended"][0].data
        check.equal((job["jobId"], job["atRisk"]), (late, True), "the job at risk")
        check.equal(ended, service.get(f"/v1/jobs/{late}"), "the job that has ended")
        circuit, disk = found["circuit.opened"][0].data, found["disk.full"][0].data
        check.equal((circuit["origin"], circuit["failuresInARow"]), ("broken", 1), "the circuit")
        check(disk["minFreeBytes"] == 1 << 50 and disk["freeBytes"] < 1 << 50, f"the disk: {disk}")
        credentials = found["credentials.expiring"][0].data
        check.equal((credentials["origin"], credentials["kind"]), ("azure", "sas"), "the credentials")
        listed = [each["type"] for each in service.get("/v1/events?topics=health")["items"]]
        check({"circuitOpened", "credentialsExpiring"} <= set(listed), f"types in /v1/events: {listed}")
        state, metrics = webhook(service), service.call("GET", "/metrics").body.decode()
        check.equal(
            [state[name] for name in ("state", "queued", "delivered", "failedAttempts", "dropped", "lastStatus", "lastError")],
            ["active", 0, 4, 0, 0, 204, None], "the state of the webhook",
        )  # fmt: skip
        check('larder_webhook_attempts_total{webhook="ops",result="delivered"} 4' in metrics, "the metric of attempts")
        check('larder_webhook_queued{webhook="ops"} 0' in metrics, "the metric of the queue")
        check_secrecy(check, service, secret)
    receiver.close()


def check_secrecy(check, service, secret):
    """Neither the API nor the store nor the log has the secret."""
    texts = {path: service.call("GET", path).body for path in ("/v1/webhooks", "/v1/configuration", "/metrics")}
    texts |= {str(file): file.read_bytes() for file in [service.log, *service.store.glob("catalog*")]}
    for name, text in texts.items():
        check(secret[6:30].encode() not in text and secret[6:].encode() not in text, f"{name} has the secret")


@case
def rotation(check, program, directory):
    """A changed file of secrets is in force within seconds; with two secrets each request has both signatures."""
    with Stage(program, directory) as stage:
        other, file = new_secret(), directory / "ops.secrets"
        file.write_text(f"{stage.secret}\n{other}\n")
        configuration = lambda: stage.service.get("/v1/configuration")["error"]  # noqa: E731

        def signed_by():
            job = stage.end_job()
            message = check.eventually(lambda: stage.received(job), "no message")[0]
            return {name for name, secret in (("old", stage.secret), ("new", other)) if message.is_signed_by(secret)}

        check.eventually(lambda: signed_by() == {"old", "new"}, "no second signature", pause=0.3)
        file.write_text("whsec_short\n")
        check.eventually(configuration, "a bad file of secrets is no fault of the configuration")
        check.equal(signed_by(), {"old", "new"}, "the signatures after a bad file")
        file.write_text(f"{other}\n")
        stage.receiver.secret = other
        check.eventually(lambda: signed_by() == {"new"}, "the old secret still signs", pause=0.3)
        check(configuration() is None, f"the fault stays: {configuration()}")


@case
def outage(check, program, directory):
    """Events of an outage are delivered after SIGKILL and restart, with their identifiers, none is lost."""
    with Stage(program, directory) as stage:
        stage.receiver.answer = lambda message: (503, {"Retry-After": "1"}, b"busy")
        first = stage.end_job()
        check.eventually(lambda: webhook(stage.service)["failedAttempts"] >= 1, "no failed attempt")
        refused = stage.receiver.of("job.ended", [503])[0]
        state = webhook(stage.service)
        check.equal((state["state"], state["lastStatus"], state["queued"]), ("failing", 503, 1), "the state")
        stage.receiver.close()
        jobs = [first, *(stage.end_job() for _ in range(20))]
        check.eventually(lambda: webhook(stage.service)["queued"] == len(jobs), "the events are not queued")
        check(webhook(stage.service)["oldestQueuedAt"] is not None, "no time of the oldest event")
        stage.service.process.send_signal(signal.SIGKILL)
        stage.service.wait()
        stage.receiver.answer = lambda message: 200
        stage.service.start()
        check.equal(webhook(stage.service)["queued"], len(jobs), "queued events after the kill")
        stage.receiver.open()
        check.eventually(lambda: webhook(stage.service)["queued"] == 0, "the events are not delivered")
        messages = stage.receiver.of("job.ended")
        check.equal({each.data["jobId"] for each in messages}, set(jobs), "the jobs")
        check.equal(len({each.identifier for each in messages}), len(jobs), "the number of identifiers")
        check.equal(stage.received(first)[0].identifier, refused.identifier, "the identifier after the restart")
        check(all(each.fault is None for each in messages), "a signature is wrong")
        check.equal(webhook(stage.service)["state"], "active", "the state at the end")


@case
def stop(check, program, directory):
    """An event just before SIGTERM is delivered by the next process."""
    with Stage(program, directory) as stage:
        stage.receiver.close()
        job = stage.service.job({"origin": "media", "path": "last.mp4"})
        stage.service.finished(job)
        stage.service.stop()
        stage.receiver.open()
        stage.service.start()
        check.eventually(lambda: stage.received(job), "the event is lost")


@case
def full(check, program, directory):
    """On a disk without a free byte, events are sent from memory, those about the disk included. Needs root."""
    if os.geteuid():
        raise checks.Skipped("a small file system needs root")
    secret, store = new_secret(), directory / "store"
    receiver, source = Receiver(secret), Source()
    store.mkdir()
    mount = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=24m none "$0" && exec "$@"', store]
    settings = [
        *hook(directory, receiver.url, secret), "policy.minFreeDisk=0", "policy.capacity=none",
        *origin("broken", f"http://127.0.0.1:{free_port()}", retries=0, circuitBreaker_failures=1),
    ]  # fmt: skip
    with Larder(program, directory, source.port, settings, prefix=mount) as service:
        # The file system exists in the name space of the process only.
        ballast = pathlib.Path(f"/proc/{service.process.pid}/root{store}/ballast")
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        check.equal(service.call("GET", "/o/media/a.mp4").status, 200, "a read on the full disk")
        check.eventually(lambda: receiver.of("disk.full"), "no disk.full")
        service.call("GET", "/o/broken/a.mp4")
        check.eventually(lambda: receiver.of("circuit.opened"), "no circuit.opened")
        check("the queue of webhooks could not be written" in service.text(), "the catalog has accepted the events")
        ballast.unlink()
        check.eventually(lambda: service.call("GET", "/v1/webhooks").json["queued"] == 0, "events stay queued")
        service.finished(service.job({"origin": "media", "path": "b.mp4"}))
        check.eventually(lambda: receiver.of("job.ended"), "no job.ended after the disk has space")
        check.equal([len(receiver.of(kind)) for kind in ("disk.full", "circuit.opened")], [1, 1], "the numbers of messages")
    receiver.close()


@case
def answers(check, program, directory):
    """Redirects are not followed, only 2xx accepts; large and slow responses do no harm; 410 ends the requests."""
    with Stage(program, directory, timeout="1s") as stage:
        service, receiver = stage.service, stage.receiver
        other = receiver.url + "/other"

        def fails(answer, status, text):
            receiver.answer = answer
            job = stage.end_job()
            check.eventually(lambda: text in (webhook(service)["lastError"] or ""), f"no error with {text!r}")
            check.equal(webhook(service)["lastStatus"], status, "the status")
            receiver.answer = lambda message: 204
            check.eventually(lambda: stage.received(job), f"not delivered after {text!r}")

        for status in (301, 302, 307, 308):
            fails(lambda message: (status, {"Location": other}, b""), status, "redirects are not followed")
        check(all(each.path == "/hook" for each in receiver.messages), "a redirect was followed")
        fails(lambda message: 404, 404, "status 404")
        fails(lambda message: 422, 422, "status 422")
        released = threading.Event()
        fails(lambda message: released.wait(5) and 204 or 503, None, "sent no first byte of a response within")
        released.set()
        receiver.answer = lambda message: (200, {}, bytes(4 * MIB))
        job = stage.end_job()
        check.eventually(lambda: stage.received(job), "a large response is no acceptance")
        check.eventually(lambda: webhook(service)["queued"] == 0, "the event of a large response stays queued")
        receiver.answer = lambda message: 410
        gone = stage.end_job()
        check.eventually(lambda: webhook(service)["state"] == "gone", "410 has no effect")
        count = len(receiver.messages)
        stage.end_job()
        check.eventually(lambda: webhook(service)["dropped"] == 1, "an event for a gone receiver is not dropped")
        check.equal(len(receiver.messages), count, "requests to a gone receiver")
        receiver.answer = lambda message: 204
        check.equal(service.call("POST", "/v1/configuration/reload").status, 200, "the reload")
        check.eventually(lambda: stage.received(gone), "the receiver is not asked again after a reload")


@case
def refusals(check, program, directory):
    """A private address, a bad secret and a bad URL are refused with the setting, and the address of a name in the state."""
    secret = new_secret()
    cases = [
        ("http://127.0.0.1:9/hook", "has the loopback address 127.0.0.1; set webhooks.ops.allowPrivateAddresses to true"),
        ("https://10.1.2.3/hook", "has the private address 10.1.2.3"), ("http://[::1]/", "has the loopback address ::1"),
        ("http://localhost:9/", "has the loopback address localhost"),
        ("http://169.254.169.254/", "which no webhook may have"), ("ftp://ops.example/", "is not an http or https URL"),
        ("http://user:hunter2@ops.example/", "must have no user name"), ("https://", "cannot be used"),
    ]  # fmt: skip
    for url, text in cases:
        code, output = Larder(program, directory, settings=hook(directory, url, secret, allowed=False)).refusal()
        check(code == 78 and "webhooks.ops.url: " in output and text in output, f"{url}: {code} {output}")
        check("hunter2" not in output, f"{url}: the message has the password")
    for content in ("", "whsec_abc", "secret"):
        settings = hook(directory, "https://ops.example/", content, allowed=False)
        code, output = Larder(program, directory, settings=settings).refusal()
        check(code == 78 and "webhooks.ops.secretFile: " in output, f"{content!r}: {code} {output}")
        check(content != "whsec_abc" or content not in output, f"{content!r} is printed")
    name = socket.gethostname()
    try:
        is_public = ipaddress.ip_address(socket.gethostbyname(name)).is_global
    except OSError:
        is_public = True
    if is_public:
        return check.note("the name of this host has no private address")
    receiver = Receiver(secret)
    settings = hook(directory, f"http://{name}:{receiver.port}/hook?key=s3cret", secret, allowed=False)
    source = Source()
    with Larder(program, directory, source.port, settings) as service:
        service.finished(service.job({"origin": "media", "path": "a.mp4"}))
        text = "The address of the receiver is not public; set webhooks.ops.allowPrivateAddresses to permit it."
        check.eventually(lambda: text in (webhook(service)["lastError"] or ""), "no error of the address")
        check.equal((webhook(service)["state"], receiver.messages), ("failing", []), "the state")
        for path in ("/v1/webhooks", "/v1/configuration"):
            check(b"s3cret" not in service.call("GET", path).body, f"{path} has the query of the URL")
    receiver.close()


@case
def reload(check, program, directory):
    """A webhook of a changed configuration file is in force without a restart, and one that is removed loses its queue."""
    secret = new_secret()
    receiver = Receiver(secret)
    source = Source()
    file, secrets = directory / "larder.yaml", directory / "secrets"
    secrets.write_text(secret)

    def write(port):
        text = "jobs: {concurrency: 4}\n"
        if port:
            text += f"webhooks: {{ops: {{url: 'http://127.0.0.1:{port}/', secretFile: '{secrets}', allowPrivateAddresses: true}}}}\n"
        file.write_text(text)

    write(None)
    with Larder(program, directory, source.port, options=("--config", file)) as service:
        names = iter(range(100))
        end_job = lambda: service.finished(service.job({"origin": "media", "path": f"{next(names)}.mp4"}))  # noqa: E731
        load = lambda: service.call("POST", "/v1/configuration/reload").json  # noqa: E731
        end_job()
        ends = lambda: [each for each in service.get("/v1/events?topics=jobs")["items"] if each["job"]["finishedAt"]]  # noqa: E731
        check.eventually(ends, "no event of the first job")
        check.equal(service.get("/v1/webhooks"), {"items": [], "queued": 0, "capacity": 10000}, "no webhooks")
        write(receiver.port)
        check.equal((load()["changed"], service.get("/v1/configuration")["needsRestart"]), (["webhooks.ops"], []), "the reload")
        end_job()
        check.eventually(lambda: len(receiver.messages) == 1, "no message after the reload")
        write(free_port())
        check.equal(load()["changed"], ["webhooks.ops.url"], "the changed setting")
        end_job()
        check.eventually(lambda: webhook(service)["queued"] == 1, "no queued event")
        write(None)
        load()
        write(receiver.port)
        load()
        check.eventually(lambda: webhook(service)["queued"] == 0, "the queue of a removed webhook stays")
        check.equal(len(receiver.messages), 1, "the number of messages")
    receiver.close()


def main():
    parser = checks.arguments(__doc__, [function.__name__ for function in CASES], brief="without the responses of receivers and the full disk")
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    results, cases = checks.Checks("webhooks"), {function.__name__: function for function in CASES}
    ordinary = [name for name in cases if name not in SLOW or not options.brief]
    for name in checks.chosen(cases, options.only, ordinary):
        with results.part(name, cases[name].__doc__) as part:
            cases[name](part, program, checks.directory(f"webhooks-{name}"))
    sys.exit(results.finish())


if __name__ == "__main__":
    venv.enter("webhooks", HERE / "requirements.txt")
    from receiver import Receiver, new_secret
    from shaped import Shaped

    main()
