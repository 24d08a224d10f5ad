"""Jobs in lines: validation as a whole, large jobs, spool files, memory, slow bodies, and the client."""

import json
import signal
import socket
import subprocess
import threading
import time

from change import MIB, start
from harness import http
from harness.process import LIMIT
from shaped import Shaped

CASES = []
LINES = {"Content-Type": "application/x-ndjson"}
#: The largest job, and bytes of the resident memory that it may take.
MANY, MEMORY = 100_000, 30 * MIB


def case(function):
    CASES.append(function)
    return function


def item(number, size=1000):
    return {"origin": "shaped", "path": f"series/season-01/episode-{number:06}-{size}.ts"}


def text(items, /, **job):
    """The body of a job in lines."""
    head = [{"job": job}] if job else []
    return "\n".join(json.dumps(each) for each in [*head, *items]).encode() + b"\n"


def post(service, body, fields=(), token=None):
    sent = {**LINES, **dict(fields)}
    if token or service.token:
        sent["Authorization"] = f"Bearer {token or service.token}"
    return service.send("POST", "/v1/jobs", sent, body)


def spools(service):
    """The names of the spool files."""
    place = service.store / "spool"
    return sorted(each.name for each in place.iterdir()) if place.exists() else []


class Upload:
    """A job in lines whose body is sent in parts."""

    def __init__(self, service):
        self.socket = socket.create_connection(("127.0.0.1", service.port), 120)
        self.socket.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

    def send(self, body):
        self.socket.sendall(f"{len(body):x}\r\n".encode() + body + b"\r\n")

    def end(self):
        self.socket.sendall(b"0\r\n\r\n")
        return self.reply()

    def reply(self):
        """The status line and the rest of the response."""
        response = http.http.client.HTTPResponse(self.socket)
        response.begin()
        return http.Reply(response.status, body=response.read())

    def close(self):
        self.socket.close()


@case
def lines(check, program, directory):
    """A job in lines is as one in JSON: members, dry run, repeated keys, and errors with the number of their line."""
    upstream = Shaped(64 * MIB)
    service = start(program, directory, upstream, "limits.jobItems=20000")
    items = [item(number) for number in range(3)]
    reply = post(service, text(items, label="weekly", priority="low", tags=["a"]))
    check.equal((reply.status, reply.json.get("label"), reply.json.get("priority")), (202, "weekly", "low"), "head")
    job = reply.json["jobId"]
    check.equal(service.finished(job)["itemsDone"], 3, "items")
    found = service.get(f"/v1/jobs/{job}/items")["items"]
    check.equal([each["path"] for each in found], [each["path"] for each in items], "names")
    check.equal(found[0]["tags"], ["a"], "tags")
    body = b"\r\n\n" + text(items).replace(b"\n", b"\r\n").rstrip()
    reply = post(service, body, {"Idempotency-Key": "k1"})
    check.equal((reply.status, reply.json["itemsTotal"]), (202, 3), "empty lines, and a last line without end")
    check.equal(post(service, body, {"Idempotency-Key": "k1"}).json["jobId"], reply.json["jobId"], "a repeated key")
    check.equal(post(service, text(items[:1]), {"Idempotency-Key": "k1"}).status, 409, "the key of another job")
    plan = post(service, text(items, dryRun=True))
    check.equal((plan.status, plan.json.get("files")), (200, 3), "a dry run")
    jobs = service.get("/v1/jobs?total=true")["total"]
    many = [item(number) for number in range(12_000)]
    for body, status, words in [
        (text(items) + b"{\n", 400, "Line 4: "),
        (text([*many, {"origin": "nobody", "path": "x"}]), 422, "Line 12001: "),
        (text([*items, {"origin": "shaped"}]), 422, "Line 4: "),
        (text([*items, {**item(1), "ranges": ["bytes"]}], label="x"), 422, "Line 5: "),
        (text([*items, {"url": "http://127.0.0.1:1/x"}]), 403, "Line 4: "),
        (text([*items, {"job": {}}]), 422, "Line 4: "),
        (text(items, items=[]), 422, "Line 1: "),
        (text(items, priority="soon"), 422, "Line 1: "),
        (text([item(number) for number in range(20_001)]), 422, "limits.jobItems"),
        (b"\n\n", 422, "At least one line"),
        (b'{"job": {}}\n', 422, "At least one line"),
        (text([{**item(1), "path": "x" * (2 << 20)}]), 413, "Line 1: "),
        (text(items) + json.dumps(item(1)).encode().ljust(MIB + 1) + b"\n" + text(items), 413, "Line 4: "),
    ]:
        reply = post(service, body)
        check.equal(reply.status, status, f"the status of {body[-60:]}")
        check(words in reply.json.get("detail", ""), f"{words!r} is missing for {body[-60:]}", reply)
    check.equal(service.get("/v1/jobs?total=true")["total"], jobs, "jobs after refused ones")
    check.equal(spools(service), [], "spool files")


@case
def large(check, program, directory):
    """100,000 items: time to the first fetch, memory, a kill before the catalog has them, and their end."""
    upstream = Shaped(1 << 30)
    service = start(program, directory, upstream)
    service.finished(service.job(item(0)))
    items = [item(number) for number in range(MANY)]
    body = text(items, label="large", notBefore="2100-01-01T00:00:00Z")
    idle = memory(service)
    reply, took = timed(lambda: post(service, body))
    check.equal((reply.status, reply.json.get("itemsTotal")), (202, MANY), "the job")
    job = reply.json["jobId"]
    accepted = memory(service)
    check.eventually(lambda: spools(service) == [], "the spool file remains", 300)
    saved = memory(service)
    check.note(f"{MANY} items, {len(body) / MIB:.1f} MiB: accepted in {took:.1f} s")
    check.note(f"resident memory: idle {idle / MIB:.1f} MiB, accepted +{(accepted - idle) / MIB:.1f}, in the catalog "
               f"+{(saved - idle) / MIB:.1f}, largest +{(peak(service) - idle) / MIB:.1f}")  # fmt: skip
    check(saved - idle <= MEMORY, f"{(saved - idle) / MIB:.1f} MiB for a job of {MANY} items")
    service.call("DELETE", f"/v1/jobs/{job}")
    upload = Upload(service)
    for first in range(0, MANY - 1000, 1000):
        upload.send(text(items[first : first + 1000]))
    upload.send(text(items[MANY - 1000 : MANY - 1]))
    settled(lambda: spool_bytes(service))
    requests = len(upstream.requests)
    last = time.monotonic()
    upload.send(text(items[MANY - 1 :]))
    reply = upload.end()
    check.eventually(lambda: len(upstream.requests) > requests, "no item runs", 60, 0.002)
    check.note(f"from the last byte to the first request of the upstream: {time.monotonic() - last:.2f} s")
    check.equal(reply.status, 202, "the second job")
    job = reply.json["jobId"]
    check.equal(len(spools(service)), 1, "spool files before the kill")
    service.process.send_signal(signal.SIGKILL)
    service.wait()
    service.start()
    state = service.get(f"/v1/jobs/{job}")
    check.equal(state["itemsTotal"], MANY, "items after the kill")
    check.eventually(lambda: spools(service) == [], "the spool file remains", 300)
    page = service.get(f"/v1/jobs/{job}/items?limit=1000")["items"]
    check.equal([each["path"] for each in page], [each["path"] for each in items[:1000]], "names after the kill")
    check.eventually(lambda: service.get(f"/v1/jobs/{job}")["itemsDone"] > 2000, "the job does not go on", 120)
    service.call("DELETE", f"/v1/jobs/{job}")


def settled(measure, tolerance=0):
    """A value, once it has not changed for a second."""
    last, now = None, measure()
    while last is None or abs(now - last) > tolerance:
        time.sleep(1)
        last, now = now, measure()
    return now


def memory(service):
    return settled(lambda: resident(service), MIB // 4)


def spool_bytes(service):
    return sum((service.store / "spool" / name).stat().st_size for name in spools(service))


def status(service, name):
    with open(f"/proc/{service.process.pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))


def resident(service):
    return status(service, "VmRSS:")


def peak(service):
    return status(service, "VmHWM:")


def timed(function):
    begin = time.monotonic()
    return function(), time.monotonic() - begin


@case
def spool(check, program, directory):
    """No spool file remains of a body that a kill, the client or an invalid line ends; totals of bodies."""
    upstream = Shaped(64 * MIB)
    service = start(program, directory, upstream)
    first = text([item(number) for number in range(11_000)])
    upload = Upload(service)
    upload.send(first)
    check.eventually(lambda: len(spools(service)) == 1, "no spool file", 60)
    service.process.send_signal(signal.SIGKILL)
    service.wait()
    check.equal(len(spools(service)), 1, "spool files of a killed process")
    upload.close()
    service.start()
    check.eventually(lambda: spools(service) == [], "the spool file remains after the start")
    check.equal(service.get("/v1/jobs")["items"], [], "jobs")
    upload = Upload(service)
    upload.send(first)
    check.eventually(lambda: len(spools(service)) == 1, "no spool file", 60)
    upload.close()
    check.eventually(lambda: spools(service) == [], "the spool file remains after a disconnection")
    upload = Upload(service)
    upload.send(first)
    check.eventually(lambda: len(spools(service)) == 1, "no spool file", 60)
    upload.send(b"nonsense\n")
    reply = upload.reply()
    check.equal((reply.status, reply.json.get("detail", "")[:12]), (400, "Line 11001: "), "an invalid line")
    check.eventually(lambda: spools(service) == [], "the spool file remains after an invalid line")
    uploads = [Upload(service) for _ in range(4)]
    for each in uploads:
        each.send(first)
    # An upload with a spool file has its place.
    check.eventually(lambda: len(spools(service)) == 4, "four bodies are not received at once", 60)
    check.equal(post(service, text([item(1)])).status, 503, "a fifth body")
    check.equal([each.end().status for each in uploads], [202] * 4, "four bodies")
    check.eventually(lambda: post(service, text([item(1)])).status == 202, "no place is free again", 10)
    check.equal(service.get("/v1/jobs?total=true")["total"], 5, "jobs")


@case
def slow(check, program, directory):
    """A body may be slow: only 60 seconds without a byte end it."""
    service = start(program, directory, Shaped(MIB))
    upload, late = Upload(service), Upload(service)
    upload.send(text([item(1)]))
    late.send(text([item(2)]))
    begin, ended = time.monotonic(), []
    waiting = threading.Thread(target=lambda: ended.append((late.reply(), time.monotonic() - begin)))
    waiting.start()
    for _ in range(3):
        time.sleep(25)
        upload.send(b" ")
    upload.send(b"\n")
    check.equal(upload.end().status, 202, "a body with a byte each 25 s")
    waiting.join(LIMIT)
    reply, seconds = ended[0]
    check.equal(reply.status, 408, "a body without bytes")
    check(58 <= seconds <= 66, f"it ended after {seconds:.0f} s")
    check.equal(len(service.get("/v1/jobs")["items"]), 1, "jobs")


@case
def rights(check, program, directory):
    """Each line is inside the limits of the token; another token has a place of its own."""
    tokens = directory / "tokens.json"
    import hashlib

    digest = lambda text: hashlib.sha256(text.encode()).hexdigest()  # noqa: E731
    tokens.write_text(json.dumps({"tokens": [
        {"id": "all", "sha256": digest("all" * 12), "scope": "admin"},
        {"id": "part", "sha256": digest("part" * 12), "scope": "write", "prefixes": ["/o/shaped/mine/"]},
        {"id": "reader", "sha256": digest("read" * 12), "scope": "read"},
    ]}))  # fmt: skip
    tokens.chmod(0o600)
    service = start(program, directory, Shaped(64 * MIB), f"access.tokensFile={tokens}")
    mine = [{"origin": "shaped", "path": f"mine/{number}-100.ts"} for number in range(2)]
    check.equal(post(service, text(mine), token="read" * 12).status, 403, "the scope read")
    check.equal(post(service, text(mine), token="part" * 12).status, 202, "permitted items")
    reply = post(service, text([*mine, item(1)]), token="part" * 12)
    check.equal((reply.status, reply.code), (403, "tokenScope"), "a foreign item")
    check(reply.json["detail"].startswith("Line 3: "), "the line", reply)
    reply = post(service, text(mine, queue="q", supersede=True), token="part" * 12)
    check.equal((reply.status, reply.code), (403, "tokenScope"), "supersede")


@case
def client(check, program, directory):
    """`larder prefetch --from-file` sends URLs, paths and items from a file or standard input."""
    upstream = Shaped(64 * MIB)
    service = start(program, directory, upstream)

    def larder(*words, lines=""):
        return subprocess.run(
            [program, "prefetch", "--url", service.url, *words], input=lines, capture_output=True, text=True, timeout=LIMIT
        )

    url = f"http://127.0.0.1:{upstream.port}/a-100.ts"
    done = larder("--from-file", "-", "--wait", "--label", "x", lines=f"{url}\n\n{json.dumps(item(1))}\n")
    check.equal(done.returncode, 0, f"exit status ({done.stderr})")
    check("with 2 items" in done.stdout + done.stderr, "the number of items", done.stdout + done.stderr)
    job = service.get("/v1/jobs")["items"][0]
    check.equal((job["label"], job["itemsDone"]), ("x", 2), "the job")
    file = directory / "paths"
    file.write_text("".join(f"p/{number}-100.ts\n" for number in range(10_500)))
    done = larder("--from-file", str(file), "--origin", "shaped", "--range", "bytes=0-9")
    check.equal(done.returncode, 0, f"exit status ({done.stderr})")
    job = service.get("/v1/jobs")["items"][0]
    check.equal(job["itemsTotal"], 10_500, "items")
    found = service.get(f"/v1/jobs/{job['jobId']}/items?limit=1")["items"][0]
    check.equal((found["path"], found["ranges"]), ("p/0-100.ts", ["bytes=0-9"]), "an item")
    done = larder("--from-file", "-", lines=f"{url}\nnonsense\n")
    check(done.returncode == 1 and "Line 2: " in done.stderr, "an invalid line", done.stderr)
    check(larder("--from-file", str(directory / "none")).returncode > 0, "a missing file")
