"""A Larder process with tracing, and a caller that traces its requests with the OpenTelemetry SDK."""

import atexit
import contextlib
import http.client
import json
import os
import subprocess

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from servers import Larder

TOKEN = "token-f6c1a9d2e0"
#: Texts that must not be in any exported data.
SECRETS = [TOKEN, "upstream-credential-77b1", "signature-5d2c9a", "collector-credential-1f0e"]
#: Milliseconds between two requests to the receiver; the default would make the tests slow.
INTERVAL = 200


class Service(Larder):
    """Larder with the origins `media` and `quiet`; `variables` are environment variables."""

    def __init__(self, program, directory, upstream, variables, settings=()):
        url = f"http://127.0.0.1:{upstream.port}"
        super().__init__(
            program, directory, upstream.port,
            [
                f"origins.media.headers.X-Upstream-Key={SECRETS[1]}", f"origins.quiet.baseURL={url}/quiet",
                "origins.quiet.allowPrivateAddresses=true", "origins.quiet.propagateTrace=false",
                f"upstream.allowedHosts=127.0.0.1:{upstream.port}", "upstream.allowPrivateAddresses=true", *settings,
            ],
        )  # fmt: skip
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "LARDER_"))}
        self.environment = {**kept, "LARDER_TOKEN": TOKEN, "OTEL_BSP_SCHEDULE_DELAY": str(INTERVAL), **variables}
        self.log = self.directory / "larder.log"

    @property
    def command(self):
        flags = [part for setting in self.settings for part in ("--set", setting)]
        return [
            self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data-directory", self.directory / "store",
            "--log-level", "info", "--log-format", "json", *flags,
        ]  # fmt: skip

    def launch(self):
        self.dying.clear()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)
        atexit.register(self.process.kill)

    def refusal(self):
        """Exit code and output of a start that must fail."""
        result = subprocess.run(self.command, env=self.environment, capture_output=True, text=True, timeout=30)
        return result.returncode, result.stderr

    def connection(self):
        return contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60))

    def ask(self, method, path, value=None, fields=None):
        """Sends a request with the token; returns status and body."""
        with self.connection() as connection:
            return exchange(connection, method, path, value, fields)


def exchange(connection, method, path, value=None, fields=None):
    """Sends a request with the token on a connection; returns status and body."""
    body = None if value is None else json.dumps(value)
    sent = {"Authorization": f"Bearer {TOKEN}", **({"Content-Type": "application/json"} if body else {}), **(fields or {})}
    connection.request(method, path, body, sent)
    response = connection.getresponse()
    return response.status, response.read()


class Caller:
    """A traced client: `with caller.span() as (identity, fields)`."""

    def __init__(self):
        self.tracers = {
            is_sampled: TracerProvider(sampler=ALWAYS_ON if is_sampled else ALWAYS_OFF).get_tracer("caller")
            for is_sampled in (True, False)
        }

    @contextlib.contextmanager
    def span(self, is_sampled=True):
        """A client span: its trace and identifier in hexadecimal digits, and the header fields for the request."""
        with self.tracers[is_sampled].start_as_current_span("call", kind=trace.SpanKind.CLIENT) as span:
            fields = {}
            TraceContextTextMapPropagator().inject(fields)
            context = span.get_span_context()
            yield (f"{context.trace_id:032x}", f"{context.span_id:016x}"), fields
