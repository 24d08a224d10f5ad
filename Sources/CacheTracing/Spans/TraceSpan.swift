import CacheCore

/// A recorded span in progress. Thread-safe. It is exported when it ends, at the latest when its last reference is
/// released; later changes have no effect.
///
/// Its name is not `Span`, because that is a type of the standard library.
package final class TraceSpan: Sendable {
    /// The position of this span in its trace, for children, links, upstreams and log lines.
    package let context: TraceContext
    private let recorder: SpanRecorder
    /// The uptime at the start in nanoseconds.
    private let start: Int64
    /// Nil after the end.
    private let record: OrderedMutex<SpanRecord?>

    init(_ record: SpanRecord, start: Int64, recorder: SpanRecorder) {
        context = record.context
        self.recorder = recorder
        self.start = start
        self.record = OrderedMutex(.leaf, record)
    }

    deinit { end() }

    /// Replaces the name, for example when the route is known.
    package func rename(_ name: String) { record.withLock { $0?.name = name } }

    /// Adds an attribute or replaces its value.
    package func set(_ key: String, _ value: AttributeValue) { record.withLock { $0?.set(key, value) } }

    /// Adds or replaces a text. It must not contain a secret or the query of a URL.
    package func set(_ key: String, _ value: String) { set(key, .string(value)) }
    /// Adds or replaces a whole number, clamped to 64 bits.
    package func set(_ key: String, _ value: some BinaryInteger) { set(key, .integer(Int64(clamping: value))) }
    /// Adds or replaces a number.
    package func set(_ key: String, _ value: Double) { set(key, .double(value)) }
    /// Adds or replaces a truth value.
    package func set(_ key: String, _ value: Bool) { set(key, .bool(value)) }

    /// Links a span that is neither parent nor child: a reader that this fill serves, or the fill that serves this
    /// reader. Above 128 links, further ones are counted only.
    package func link(_ context: TraceContext) { record.withLock { $0?.link(SpanLink(context)) } }

    /// Marks the span as failed. The message must not contain a secret.
    package func fail(_ message: String) { record.withLock { $0?.status = .error(message) } }

    /// Starts a span of the same trace with this one as its parent.
    package func child(_ name: String, _ kind: SpanKind) -> TraceSpan {
        recorder.start(name, kind, trace: context.traceID, parent: context)
    }

    /// Ends the span and queues it for the exporter. Further calls have no effect.
    package func end() {
        guard let ended = record.withLock({ $0.take() }) else { return }
        recorder.end(ended, start: start)
    }
}
