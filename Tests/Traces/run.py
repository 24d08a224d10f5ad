#!/usr/bin/env python3
"""Checks the traces of a service: parentage from a caller through Larder to an upstream, links between readers and fills,
secrets, and receivers that are slow, dead or too small.

    run.py --larder .build/release/larder
    run.py --larder .build/debug/larder --only joined,probe
    run.py --larder .build/debug/larder --brief

scripts/traces installs the packages and runs this file with them.
"""

import json
import pathlib
import re
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import checks, venv  # noqa: E402

if __name__ == "__main__" and not venv.enter("traces", HERE / "requirements.txt", "--brief" not in sys.argv):
    checks.skip_all("traces", "the OpenTelemetry packages are not installed; `scripts/traces PROGRAM` installs them")

from receiver import Behaviour, Receiver  # noqa: E402
from service import INTERVAL, SECRETS, Caller, Service, exchange  # noqa: E402
from upstream import SIZE, Upstream  # noqa: E402

READERS, BRIEF_READERS, MAX_LINKS = 200, 20, 128
ROUTE = "/o/{origin}/{path}"
#: The exporter sends twice per interval at least, also on a slow machine.
QUIET_SECONDS = INTERVAL / 1000 * 2 + 1
#: Reads per measurement, and the number of spans that fill the queue.
READS, QUEUE = 300, 2048
GROWTH = 48 << 20


class Stage:
    """An upstream, a receiver and a service in front of them."""

    def __init__(self, program, check, variables=None, settings=()):
        self.directory = checks.directory("traces")
        self.check, self.caller, self.upstream, self.receiver = check, Caller(), Upstream(), Receiver()
        defaults = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.receiver.endpoint,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{SECRETS[3]}",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        }
        self.service = Service(program, self.directory, self.upstream, {**defaults, **(variables or {})}, settings)

    def __enter__(self):
        self.service.start()
        return self

    def __exit__(self, kind, *_):
        self.upstream.release.set()
        if self.service.is_running:
            code = self.service.stop()
            if kind is None:
                self.check.equal(code, 0, "the exit code")
        self.check.equal(self.receiver.violations, [], "the list of violations of OTLP's JSON mapping")
        exported = b"".join(self.receiver.bodies)
        for secret in SECRETS:
            self.check(secret.encode() not in exported, f"the exported data contain {secret}")
        self.upstream.close()
        self.receiver.kill()

    def read(self, path, is_sampled=True, fields=None):
        """Reads with a traced call; returns trace and span of the caller, status and body."""
        with self.caller.span(is_sampled) as (identity, propagated):
            status, body = self.service.ask("GET", path, fields={**propagated, **(fields or {})})
        return identity, status, body

    def spans(self, count, name=None, trace=None, seconds=20):
        """Waits for `count` spans with this name and trace, and for more that must not come; returns them."""

        def wanted(spans):
            return [s for s in spans if name in (None, s.name) and trace in (None, s.trace)]

        self.receiver.wait(lambda spans: len(wanted(spans)) >= count, seconds)
        time.sleep(QUIET_SECONDS)
        found = wanted(self.receiver.spans)
        self.check.equal(len(found), count, f"the number of spans {name or ''} {trace or ''}")
        return found

    def server(self, identity):
        """The server span of a caller's request; None without exactly one."""
        found = self.spans(1, f"GET {ROUTE}", identity[0])
        return found[0] if len(found) == 1 else None


def identity_of(span):
    return span.trace, span.id


def caller(stage):
    """A server span continues the caller's trace and describes the read."""
    check = stage.check
    path = "/o/media/films/caller.bin"
    for result, cached in (("miss", 0), ("hit", SIZE)):
        identity, status, body = stage.read(f"{path}?signature={SECRETS[2]}", fields={"tracestate": "rojo=1"})
        check.equal((status, len(body)), (200, SIZE), "status and size")
        span = stage.server(identity)
        if span is None:
            continue
        check.equal((span.kind, span.parent), ("SERVER", identity[1]), "kind and parent")
        check.equal(span.flags & 0x301, 0x301, "the flags")
        check.equal(span.state, "rojo=1", "the trace state")
        expected = {
            "http.request.method": "GET", "http.response.status_code": 200, "url.path": path, "http.route": ROUTE,
            "larder.result": result, "larder.bytes.cache": cached, "larder.bytes.upstream": SIZE - cached,
        }  # fmt: skip
        expected |= {
            "url.scheme": "http", "url.query": "REDACTED", "server.address": "127.0.0.1",
            "server.port": stage.service.port, "network.protocol.version": "1.1",
        }  # fmt: skip
        for name, value in expected.items():
            check.equal(span.attributes.get(name), value, f"{name} of the {result}")
        for name in ("larder.asset.id", "larder.request.id"):
            check(re.fullmatch(r"[0-9a-f]{32}", span.attributes.get(name, "")), f"{name} is no identifier")
        check.equal(span.resource.get("service.name"), "larder", "service.name")
        check.equal(span.resource.get("deployment.environment.name"), "test", "an attribute of the resource")
        check(span.resource.get("service.version"), "service.version is missing")
        lines = [json.loads(line) for line in stage.service.text().splitlines() if line.startswith("{")]
        check(any(line.get("traceId") == identity[0] for line in lines), "no log line has the traceId of the request")
    fields = [{name.lower(): value for name, value in fields.items()} for fields in stage.receiver.fields]
    check(all(f.get("authorization") == f"Bearer {SECRETS[3]}" for f in fields), "the receiver got no credentials")


def fill(stage):
    """A fill is a client span with links to its reader and back, and its context reaches the upstream."""
    check = stage.check
    identity, _, _ = stage.read("/o/media/fill.bin")
    server = stage.server(identity)
    fills = [s for s in stage.receiver.spans if s.name == "fill" and server and identity_of(server) in s.links]
    if not check.equal(len(fills), 1, "the number of fills that link the reader"):
        return
    span = fills[0]
    check.equal(span.kind, "CLIENT", "the kind of the fill")
    check(span.attributes.get("http.response.status_code") in (200, 206), "the fill has no status of a success")
    expected = {"server.address": "127.0.0.1", "larder.origin": "media", "larder.bytes": SIZE}
    for name, value in expected.items():
        check.equal(span.attributes.get(name), value, f"{name} of the fill")
    check(identity_of(span) in server.links, "the reader does not link the fill")
    requests = stage.upstream.of("fill.bin")
    check.equal(len(requests), 1, "the number of upstream requests")
    parts = requests[0].get("traceparent", "---").split("-")
    check.equal(parts[:3], ["00", span.trace, span.id], "traceparent at the upstream")
    check(parts[3] and int(parts[3], 16) & 1, "traceparent at the upstream has no sampled flag")
    check.equal(requests[0].get("x-upstream-key"), SECRETS[1], "the credential at the upstream")


def fast(stage):
    """Repeated reads of cached bytes on one connection each have a server span and no fill."""
    check, path = stage.check, "/o/media/fast.bin"
    stage.read(path)
    stage.spans(1, "fill")
    stage.receiver.forget()
    identities = []
    with stage.service.connection() as connection:
        for _ in range(5):
            with stage.caller.span() as (identity, fields):
                exchange(connection, "GET", path, fields=fields)
            identities.append(identity)
        exchange(connection, "GET", path)
    spans = stage.spans(6, f"GET {ROUTE}")
    check.equal(sorted((s.trace, s.parent) for s in spans if s.parent), sorted(identities), "the parents")
    check.equal({s.attributes.get("larder.result") for s in spans}, {"hit"}, "the results")
    check.equal({s.attributes.get("larder.bytes.cache") for s in spans}, {SIZE}, "the bytes from the cache")
    servers = {(s.attributes.get("url.scheme"), s.attributes.get("server.port")) for s in spans}
    check.equal(servers, {("http", stage.service.port)}, "the servers")
    identifiers = {s.attributes.get("larder.request.id") for s in spans}
    listed = {each["requestId"] for each in stage.service.get("/v1/requests?prefix=" + path)["items"]}
    check(len(identifiers) == 6 and identifiers <= listed, f"request identifiers of spans {identifiers}, listed {listed}")
    check.equal([s.name for s in stage.receiver.spans if s.name == "fill"], [], "the fills of cached reads")


def restarted(stage):
    """An invalid traceparent restarts the trace, and an unsampled one is not recorded."""
    check = stage.check
    invalid = "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    stage.service.ask("GET", "/o/media/restarted.bin", fields={"traceparent": invalid, "tracestate": "rojo=1"})
    found = stage.spans(1, f"GET {ROUTE}")
    check.equal([(s.parent, s.state, s.trace in invalid) for s in found], [("", "", False)], "the restarted trace")
    stage.receiver.forget()
    identity, status, _ = stage.read("/o/media/unsampled.bin", is_sampled=False)
    check.equal(status, 200, "the status")
    stage.spans(0)
    for fields in stage.upstream.of("unsampled.bin"):
        parent = fields.get("traceparent", "00")
        check(int(parent.rsplit("-", 1)[-1], 16) & 1 == 0, f"{parent} of an unsampled read has the sampled flag")


def joined(stage, readers=READERS):
    """Readers that join a fill link it, and the fill links at most 128 of them."""
    check, identities = stage.check, []
    path = "/o/media/held.bin"

    def reader():
        identity, status, body = stage.read(path)
        identities.append((identity, status, len(body)))

    threads = [threading.Thread(target=reader) for _ in range(readers)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 30
    while not stage.upstream.of("held.bin") and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(3)
    stage.upstream.release.set()
    for thread in threads:
        thread.join()
    check.equal({(status, size) for _, status, size in identities}, {(200, SIZE)}, "the statuses and sizes")
    check.equal(len(stage.upstream.of("held.bin")), 1, "the number of upstream requests")
    servers = stage.spans(readers, f"GET {ROUTE}")
    fills = [s for s in stage.receiver.spans if s.name == "fill"]
    if not check.equal(len(fills), 1, "the number of fills"):
        return
    check.equal({(s.trace, s.parent) for s in servers}, {identity for identity, _, _ in identities}, "the parents")
    check.equal(len(fills[0].links), min(readers, MAX_LINKS), "the number of links of the fill")
    check.equal(fills[0].dropped_links, max(0, readers - MAX_LINKS), "droppedLinksCount")
    check(set(fills[0].links) <= {identity_of(s) for s in servers}, "the fill links other spans than its readers")
    check(all(identity_of(fills[0]) in s.links for s in servers), "a reader does not link the fill")


def failed(stage):
    """An error of the upstream is in the fill, and its status in the server span."""
    check = stage.check
    identity, status, _ = stage.read("/o/media/missing.bin")
    server = stage.server(identity)
    if server:
        check.equal(server.attributes.get("http.response.status_code"), status, "the status of the server span")
    fills = [s for s in stage.receiver.spans if s.name == "fill"]
    check.equal([s.attributes.get("http.response.status_code") for s in fills], [404], "the status of the fill")
    check(all(s.status == 2 for s in fills), "the fill is not marked as failed")


def probe(stage):
    """A probe is a client span below the server span."""
    check = stage.check
    with stage.caller.span() as (identity, fields):
        status, body = stage.service.ask("POST", "/v1/probe", {"origin": "media", "path": "probe.bin"}, fields)
    check.equal(status, 200, f"the status ({body[:200]!r})")
    servers, probes = stage.spans(1, "POST /v1/probe", identity[0]), stage.spans(1, "probe")
    if not servers or not probes:
        return
    check.equal(probes[0].kind, "CLIENT", "the kind")
    check.equal((probes[0].trace, probes[0].parent), identity_of(servers[0]), "the parent")
    check.equal(probes[0].attributes.get("server.address"), "127.0.0.1", "server.address")
    requests = stage.upstream.of("probe.bin", "HEAD") + stage.upstream.of("probe.bin")
    wanted = f"00-{probes[0].trace}-{probes[0].id}"
    check(any(r.get("traceparent", "").startswith(wanted) for r in requests), "the upstream did not get the probe's context")


def job(stage):
    """Each item of a job is a span, and its fill belongs to it."""
    check = stage.check
    items = [{"origin": "media", "path": f"job{number}.bin"} for number in range(3)]
    with stage.caller.span() as (identity, fields):
        status, body = stage.service.ask("POST", "/v1/jobs", {"items": items}, fields)
    check.equal(status, 202, f"the status ({body[:200]!r})")
    spans = stage.spans(3, "job.item")
    fills = [s for s in stage.receiver.spans if s.name == "fill"]
    check.equal(len(fills), 3, "the number of fills")
    for span in spans:
        check.equal(span.kind, "INTERNAL", "the kind")
        related = [f for f in fills if identity_of(span) in [*f.links, (f.trace, f.parent)]]
        check.equal(len(related), 1, "the number of fills of the item")


def absolute(stage):
    """Absolute URLs and origins without propagation get no traceparent, and spans have no query."""
    check = stage.check
    url = f"http%3A//127.0.0.1:{stage.upstream.port}/absolute.bin%3Fsignature%3D{SECRETS[2]}"
    identity, status, _ = stage.read(f"/v1/content?url={url}")
    check.equal(status, 200, "the status")
    found = stage.spans(1, "GET /v1/content", identity[0])
    check.equal([s.attributes.get("url.path") for s in found], ["/v1/content"], "url.path")
    stage.read("/o/quiet/quiet.bin")
    for name in ("absolute.bin", "quiet.bin"):
        requests = stage.upstream.of(name)
        check(requests, f"the upstream got no request for {name}")
        check(not any("traceparent" in r or "tracestate" in r for r in requests), f"the request for {name} has a traceparent")


def latencies(stage, path, count=READS):
    """The seconds of traced reads of cached bytes."""
    seconds = []
    with stage.service.connection() as connection:
        for _ in range(count):
            with stage.caller.span() as (_, fields):
                began = time.perf_counter()
                exchange(connection, "GET", path, fields={**fields, "Range": "bytes=0-99"})
                seconds.append(time.perf_counter() - began)
    return seconds


def receivers(stage, is_brief=False):
    """No receiver delays reads or makes the service grow, and its return is noticed."""
    check, path = stage.check, "/o/media/receivers.bin"
    stage.read(path)
    latencies(stage, path)
    normal = statistics.median(latencies(stage, path))
    cases = {
        "slow": lambda: setattr(stage.receiver, "behaviour", Behaviour(delay=60)),
        "overloaded": lambda: setattr(stage.receiver, "behaviour", Behaviour(503, {"Retry-After": "1"})),
        "throttling": lambda: setattr(stage.receiver, "behaviour", Behaviour(429, {"Retry-After": "1"})),
        "too small": lambda: setattr(stage.receiver, "behaviour", Behaviour(max_spans=0)),
        "dead": stage.receiver.kill,
    }
    for name, begin in list(cases.items())[:: 4 if is_brief else 1]:
        begin()
        latencies(stage, path, QUEUE + 1000)
        before = stage.service.taken()[0]
        seconds = latencies(stage, path, READS if is_brief else 4 * QUEUE)
        growth = stage.service.taken()[0] - before
        median, worst = statistics.median(seconds), max(seconds)
        print(f"  {name:12} median {median * 1e6:6.0f} µs (normal {normal * 1e6:.0f} µs), worst {worst * 1e3:.1f} ms, growth {growth >> 10} KiB")
        check(median < 2 * normal + 0.001, f"{name}: reads take {median * 1e3:.2f} ms instead of {normal * 1e3:.2f} ms")
        check(worst < 1, f"{name}: a read takes {worst:.2f} s")
        check(growth < GROWTH, f"{name}: the service grows by {growth >> 20} MiB")
        stage.receiver.behaviour = Behaviour()
        if stage.receiver.server is None:
            stage.receiver.revive()
        # A slow request takes up to 10 s, and a retry up to 10 s more.
        identity, _, _ = stage.read(path)
        check(stage.receiver.wait(lambda spans: any(s.trace == identity[0] for s in spans), 45), f"{name}: no span after it")


def halved(stage):
    """A receiver that accepts few spans gets all of them in smaller requests."""
    stage.read("/o/media/halved.bin")
    stage.spans(1, f"GET {ROUTE}")
    stage.receiver.forget()
    stage.receiver.behaviour = Behaviour(max_spans=50)
    latencies(stage, "/o/media/halved.bin", 400)
    stage.spans(400, f"GET {ROUTE}")


def shutdown(stage):
    """The queued spans are sent at the shutdown."""
    identity, _, _ = stage.read("/o/media/shutdown.bin")
    began = time.monotonic()
    stage.check.equal(stage.service.stop(), 0, "the exit code")
    stage.check(time.monotonic() - began < 8, "the shutdown takes longer than 8 s")
    stage.check(any(s.trace == identity[0] for s in stage.receiver.spans), "the last span was not sent")


def abandoned(stage):
    """A silent receiver delays the shutdown by five seconds at most."""
    stage.receiver.behaviour = Behaviour(delay=60)
    stage.read("/o/media/abandoned.bin")
    stage.receiver.wait_for_requests(1)
    began = time.monotonic()
    stage.check.equal(stage.service.stop(), 0, "the exit code")
    seconds = time.monotonic() - began
    stage.check(seconds < 9, f"the shutdown takes {seconds:.1f} s")


def unrecorded(stage):
    """With a ratio of 0, only reads of callers that record themselves are recorded."""
    stage.read("/o/media/ratio.bin", is_sampled=False)
    for _ in range(50):
        stage.service.ask("GET", "/o/media/ratio.bin")
    stage.spans(0)
    stage.check.equal(len(stage.receiver.times), 0, "the number of requests to the receiver")
    identity, _, _ = stage.read("/o/media/ratio.bin")
    stage.server(identity)


def off(stage):
    """A sampler that is always off exports nothing, also for callers that record themselves."""
    for _ in range(20):
        stage.read("/o/media/off.bin")
    stage.spans(0)
    stage.check.equal(len(stage.receiver.times), 0, "the number of requests to the receiver")


def grpc(stage):
    """A protocol that the environment sets for all programs is no failed start, and the log has the remedy."""
    stage.read("/o/media/grpc.bin")
    stage.spans(0)
    stage.check.equal(len(stage.receiver.times), 0, "the number of requests to the receiver")
    log = stage.service.text()
    stage.check("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported" in log and "set it to http/json" in log, log[-500:])


def half(stage):
    """About half of the reads without a caller are recorded."""
    for _ in range(400):
        stage.service.ask("GET", "/o/media/half.bin", fields={"Range": "bytes=0-9"})
    time.sleep(QUIET_SECONDS)
    count = sum(s.name == f"GET {ROUTE}" for s in stage.receiver.spans)
    stage.check(140 < count < 260, f"{count} of 400 reads are recorded")


def refused(program, check):
    """Invalid settings stop the start with a message that names the variable and no secret."""
    cases = [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "xml"}, (), "OTEL_EXPORTER_OTLP_PROTOCOL"),
        ({"OTEL_EXPORTER_OTLP_HEADERS": SECRETS[3]}, (), "OTEL_EXPORTER_OTLP_HEADERS"),
        ({"OTEL_TRACES_SAMPLER": "xray"}, (), "OTEL_TRACES_SAMPLER"),
        ({}, ("telemetry.traces.sampleRatio=2",), "telemetry.traces.sampleRatio"),
        ({}, ("telemetry.traces.endpoint=collector:4318",), "telemetry.traces.endpoint"),
    ]
    for variables, settings, name in cases:
        code, output = Stage(program, check, variables, settings).service.refusal()
        check.equal(code, 78, f"the exit code with an invalid {name}")
        check(name in output, f"the message does not name {name}: {output}")
        check(SECRETS[3] not in output, f"the message contains the secret: {output}")


RATIO = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}
#: Function, and the environment variables of its service.
SCENARIOS = {
    "caller": (caller, {}),
    "fill": (fill, {}),
    "fast": (fast, {}),
    "restarted": (restarted, {}),
    "joined": (joined, {}),
    "failed": (failed, {}),
    "probe": (probe, {}),
    "job": (job, {}),
    "absolute": (absolute, {}),
    "halved": (halved, {}),
    "shutdown": (shutdown, {"OTEL_BSP_SCHEDULE_DELAY": "60000"}),
    "abandoned": (abandoned, {}),
    "unrecorded": (unrecorded, {**RATIO, "OTEL_TRACES_SAMPLER_ARG": "0"}),
    "half": (half, {**RATIO, "OTEL_TRACES_SAMPLER_ARG": "0.5"}),
    "off": (off, {"OTEL_TRACES_SAMPLER": "always_off"}),
    "grpc": (grpc, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}),
    "receivers": (receivers, {}),
}
BRIEF = ["caller", "fill", "joined", "unrecorded"]


def main():
    parser = checks.arguments(__doc__, [*SCENARIOS, "refused"], f"only {', '.join(BRIEF)}, with {BRIEF_READERS} readers")
    options = parser.parse_args()
    program, results = checks.program_of(parser, options), checks.Checks("traces")
    for name in checks.chosen([*SCENARIOS, "refused"], options.only, BRIEF if options.brief else None):
        function, variables = SCENARIOS.get(name, (refused, {}))
        with results.part(name, function.__doc__) as part:
            if function is refused:
                refused(program, part)
                continue
            with Stage(program, part, variables) as stage:
                if options.brief and function is joined:
                    joined(stage, BRIEF_READERS)
                elif function is receivers:
                    receivers(stage, options.brief)
                else:
                    function(stage)
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
