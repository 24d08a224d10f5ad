package import CacheCore

/// Starts spans, and queues the ended ones for the exporter (OpenTelemetry specification, trace API, "Tracer").
///
/// A disabled tracer costs one comparison for each span. A span that is not recorded is nil.
package struct Tracer: Sendable {
    /// A tracer that records nothing.
    package static let disabled = Tracer(recorder: nil)

    /// Nil if the tracer is disabled.
    let recorder: SpanRecorder?

    private init(recorder: SpanRecorder?) { self.recorder = recorder }

    /// `uptime` is the time since any point in the past, measured by a monotonic clock: `clock.stopwatch()`.
    package init(
        sampler: TraceSampler, random: any RandomSource, wallClock: any WallClock,
        uptime: @escaping @Sendable () -> Duration
    ) {
        recorder =
            sampler.isAlwaysOff
            ? nil
            : SpanRecorder(
                sampler: sampler, identifiers: TraceIDGenerator(random: random),
                clock: SpanClock(wallClock: wallClock, uptime: uptime))
    }

    /// Whether any span can be recorded. If not, callers need not parse `traceparent`.
    package var isEnabled: Bool { recorder != nil }

    /// The number of spans that were dropped because the exporter did not keep up.
    package var dropped: Int64 { recorder?.queue.dropped ?? 0 }

    /// Starts a span; nil if it is not recorded.
    ///
    /// The `sampled` flag of the parent decides, unless the sampler ignores parents. A span without parent is recorded
    /// if a linked span is recorded, so that no link leads to a missing span; otherwise the ratio decides. `parent` is
    /// evaluated only if the tracer is enabled.
    package func span(
        _ name: String, _ kind: SpanKind, parent: @autoclosure () -> TraceContext? = nil, links: [TraceContext] = []
    ) -> TraceSpan? {
        guard let recorder else { return nil }
        return recorder.span(name, kind, parent: parent(), links: links)
    }

    /// The context for an upstream of work that is not recorded: without the `sampled` flag, so that the upstream does
    /// not record it either. It belongs to the parent's trace or to a new one. Nil if the tracer is disabled.
    package func unsampledContext(parent: @autoclosure () -> TraceContext? = nil) -> TraceContext? {
        guard let identifiers = recorder?.identifiers else { return nil }
        let parent = parent()
        return TraceContext(
            traceID: parent?.traceID ?? identifiers.trace(), spanID: identifiers.span(),
            flags: parent?.flags.subtracting(.sampled) ?? .random, state: parent?.state ?? TraceState())
    }
}
