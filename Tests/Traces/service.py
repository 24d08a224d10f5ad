"""A Larder process with tracing, and a caller that traces its requests with the OpenTelemetry SDK."""

import contextlib

from harness import http, process
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

TOKEN = "token-f6c1a9d2e0"
#: Texts that must not be in any exported data.
SECRETS = [TOKEN, "upstream-credential-77b1", "signature-5d2c9a", "collector-credential-1f0e"]
#: Milliseconds between two requests to the receiver; the default would make the tests slow.
INTERVAL = 200


class Service(process.Larder):
    """Larder with the origins `media` and `quiet`; `variables` are environment variables."""

    def __init__(self, program, directory, upstream, variables, settings=()):
        super().__init__(
            program, directory, upstream.port,
            [
                f"origins.media.headers.X-Upstream-Key={SECRETS[1]}",
                *process.origin("quiet", f"{upstream.url}/quiet", propagateTrace="false"),
                f"upstream.allowedHosts=127.0.0.1:{upstream.port}", "upstream.allowPrivateAddresses=true", *settings,
            ],
            options=("--log-format", "json"), level="info", token=TOKEN,
            environment={"OTEL_BSP_SCHEDULE_DELAY": str(INTERVAL), **variables},
        )  # fmt: skip

    def connection(self):
        return http.connection(self.port)


def exchange(connection, method, path, fields=None):
    """Sends a request with the token on a connection; returns status and body."""
    reply = http.exchange(connection, method, path, {"Authorization": f"Bearer {TOKEN}", **(fields or {})})
    return reply.status, reply.body


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
