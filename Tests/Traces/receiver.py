#!/usr/bin/env python3
"""A strict OTLP/HTTP JSON receiver for tests: it collects spans, and can be slow, overloaded, too small or dead.

    receiver.py [--port 4318] [--status 429] [--retry-after 5] [--delay 8] [--max-spans 100]

Every request is parsed as ExportTraceServiceRequest without unknown fields, after the identifiers are converted from
hexadecimal digits as OTLP's JSON mapping says. A violation of the mapping is recorded and answered with 400.
"""

import argparse
import base64
import http.server
import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT", 4: "PRODUCER", 5: "CONSUMER"}
IDENTIFIERS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
#: 64-bit integers, which are strings in JSON.
LONG = {"startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "intValue"}
#: 32-bit integers and enumerations, which are numbers.
NUMBERS = {"kind", "code", "flags", "droppedAttributesCount", "droppedLinksCount", "droppedEventsCount"}
#: The number of bytes of all kept bodies.
KEPT_BYTES = 64 << 20


class Violation(Exception):
    """The request violates the specification."""


@dataclass
class Span:
    """One received span."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    start: int
    end: int
    attributes: dict
    links: list
    dropped_links: int
    status: int
    message: str
    flags: int
    state: str
    resource: dict = field(repr=False)
    scope: str = field(repr=False, default="")


@dataclass
class Behaviour:
    """The answer to the following requests."""

    status: int = 200
    headers: dict = field(default_factory=dict)
    #: Seconds before the answer.
    delay: float = 0
    #: Larger requests are answered with 413.
    max_spans: int | None = None
    #: Spans that a partial success rejects.
    rejected: int = 0


class Receiver:
    """A receiver on a free port; `behaviour` can be replaced at any time."""

    def __init__(self, port=0):
        self.behaviour = Behaviour()
        self.spans, self.violations, self.bodies, self.fields, self.times = [], [], [], [], []
        self.changed = threading.Condition()
        self.server = None
        self.port = port
        self.revive()

    @property
    def endpoint(self):
        """The value of OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self.port}"

    def kill(self):
        """Closes the port: connections are refused."""
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def revive(self):
        """Listens again on the same port."""
        self.server = Server(("127.0.0.1", self.port), self)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def wait(self, condition, seconds=20):
        """Waits until `condition` holds for the list of spans; returns whether it does."""
        with self.changed:
            return self.changed.wait_for(lambda: condition(list(self.spans)), seconds)

    def wait_for_requests(self, count, seconds=20):
        with self.changed:
            return self.changed.wait_for(lambda: len(self.times) >= count, seconds)

    def forget(self):
        with self.changed:
            self.spans, self.bodies, self.fields, self.times = [], [], [], []

    def receive(self, method, path, fields, body):
        """Returns status, header fields and document of the answer."""
        behaviour = self.behaviour
        try:
            spans = spans_of(method, path, fields, body)
            status, document = behaviour.status, {}
            if behaviour.max_spans is not None and len(spans) > behaviour.max_spans:
                status = 413
        except (Violation, ValueError, json_format.ParseError) as error:
            with self.changed:
                self.violations.append(str(error))
            spans, status, document = [], 400, {"message": str(error)}
        if status == 200 and behaviour.rejected:
            document = {"partialSuccess": {"rejectedSpans": str(behaviour.rejected), "errorMessage": "rejected by the test"}}
        with self.changed:
            self.times.append(time.monotonic())
            self.fields.append(fields)
            if sum(map(len, self.bodies)) < KEPT_BYTES:
                self.bodies.append(body)
            self.changed.notify_all()
        time.sleep(behaviour.delay)
        if status == 200:
            with self.changed:
                self.spans += spans
                self.changed.notify_all()
        return status, behaviour.headers if status == behaviour.status else {}, document


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, address, receiver):
        self.receiver = receiver
        super().__init__(address, Handler)

    def handle_error(self, request, client_address):
        """A client may close its connection at any time."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def handle_one_request(self):
        super().handle_one_request()
        # A closed receiver must not answer on connections that are still open.
        if self.server.receiver.server is not self.server:
            self.close_connection = True

    def do_POST(self):
        if self.server.receiver.server is not self.server:
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        status, fields, document = self.server.receiver.receive(self.command, self.path, dict(self.headers.items()), body)
        answer = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(answer)), **fields}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST


def spans_of(method, path, fields, body):
    """The spans of a request; raises an error if it violates the specification."""
    if method != "POST" or path.partition("?")[0] != "/v1/traces":
        raise Violation(f"{method} {path} instead of POST /v1/traces")
    lowered = {name.lower(): value for name, value in fields.items()}
    if lowered.get("content-type") != "application/json":
        raise Violation(f"Content-Type is {lowered.get('content-type')!r}")
    document = json.loads(body.decode("utf-8", "strict"), object_pairs_hook=unique, parse_constant=refuse)
    check(document, "")
    message = json_format.ParseDict(converted(document), ExportTraceServiceRequest(), ignore_unknown_fields=False)
    spans = []
    for group in message.resource_spans:
        resource = attributes_of(group.resource.attributes)
        if not resource.get("service.name"):
            raise Violation("the resource has no service.name")
        for scoped in group.scope_spans:
            if not scoped.scope.name:
                raise Violation("the scope has no name")
            spans += [span_of(span, resource, scoped.scope.name) for span in scoped.spans]
    if not spans:
        raise Violation("the request has no spans")
    return spans


def unique(pairs):
    """An object without repeated members."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Violation(f"repeated member in {[name for name, _ in pairs]}")
    return members


def refuse(name):
    raise Violation(f"{name} is not JSON")


def check(value, path):
    """Checks names and notations that protobuf's parser would accept although OTLP does not."""
    if isinstance(value, list):
        for index, member in enumerate(value):
            check(member, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    for name, member in value.items():
        here = f"{path}.{name}"
        if "_" in name:
            raise Violation(f"{here} is not in lowerCamelCase")
        if member is None:
            raise Violation(f"{here} is null")
        if name in IDENTIFIERS and not is_identifier(member, IDENTIFIERS[name]):
            raise Violation(f"{here} is not an identifier of {IDENTIFIERS[name]} lower-case digits: {member!r}")
        if name in LONG and not (isinstance(member, str) and re.fullmatch(r"-?(0|[1-9]\d*)", member)):
            raise Violation(f"{here} is not a decimal string: {member!r}")
        if name in NUMBERS and (not isinstance(member, int) or isinstance(member, bool)):
            raise Violation(f"{here} is not a whole number: {member!r}")
        check(member, here)


def is_identifier(value, digits):
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{%d}" % digits, value) and set(value) != {"0"}


def converted(value):
    """The document with identifiers in base64, as protobuf's own JSON mapping has them."""
    if isinstance(value, list):
        return [converted(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(member)).decode() if name in IDENTIFIERS else converted(member)
        for name, member in value.items()
    }


def attributes_of(pairs):
    attributes = {}
    for pair in pairs:
        if not pair.key or pair.key in attributes:
            raise Violation(f"the attribute {pair.key!r} is empty or repeated")
        attributes[pair.key] = value_of(pair.value)
    return attributes


def value_of(value):
    kind = value.WhichOneof("value")
    if kind is None:
        raise Violation("an attribute has no value")
    if kind == "array_value":
        return [value_of(member) for member in value.array_value.values]
    return getattr(value, kind)


def span_of(span, resource, scope):
    if not span.name or span.kind not in KINDS:
        raise Violation(f"a span has the name {span.name!r} and the kind {span.kind}")
    if not 1_600_000_000_000_000_000 < span.start_time_unix_nano <= span.end_time_unix_nano:
        raise Violation(f"{span.name} lasts from {span.start_time_unix_nano} to {span.end_time_unix_nano}")
    if span.end_time_unix_nano > time.time_ns() + 1_000_000_000:
        raise Violation(f"{span.name} ends in the future")
    if not span.flags & 1:
        raise Violation(f"{span.name} is exported and has no sampled flag")
    return Span(
        name=span.name, kind=KINDS[span.kind], trace=span.trace_id.hex(), id=span.span_id.hex(),
        parent=span.parent_span_id.hex(), start=span.start_time_unix_nano, end=span.end_time_unix_nano,
        attributes=attributes_of(span.attributes), links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        dropped_links=span.dropped_links_count, status=span.status.code, message=span.status.message, flags=span.flags,
        state=span.trace_state, resource=resource, scope=scope,
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=4318)
    parser.add_argument("--status", type=int, default=200)
    parser.add_argument("--retry-after", default="")
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--max-spans", type=int)
    options = parser.parse_args()
    receiver = Receiver(options.port)
    headers = {"Retry-After": options.retry_after} if options.retry_after else {}
    receiver.behaviour = Behaviour(options.status, headers, options.delay, options.max_spans)
    print(f"OTEL_EXPORTER_OTLP_ENDPOINT={receiver.endpoint}", flush=True)
    shown, requests, violations = 0, 0, 0
    while True:
        with receiver.changed:
            receiver.changed.wait()
            spans, receiver.bodies, receiver.fields = receiver.spans[shown:], [], []
            faults, count = receiver.violations[violations:], len(receiver.times)
        for fault in faults:
            print(f"violation: {fault}", flush=True)
        for span in spans:
            print(span, flush=True)
        if count > requests and options.status != 200:
            print(f"request {count}: {options.status}", flush=True)
        shown, requests, violations = shown + len(spans), count, violations + len(faults)


if __name__ == "__main__":
    main()
