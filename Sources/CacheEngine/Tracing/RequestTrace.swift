package import CacheTracing

/// The trace that the current task works for: of a request or of an item of a prefetch job.
package struct RequestTrace: Sendable {
    /// The trace of the current task; nil if tracing is disabled.
    @TaskLocal package static var current: RequestTrace?

    /// Nil if the trace is not recorded.
    package let span: TraceSpan?
    /// The context that the client has sent; nil without one.
    package let incoming: TraceContext?

    package init(span: TraceSpan?, incoming: TraceContext? = nil) {
        self.span = span
        self.incoming = incoming
    }
}

/// The span of one try of a fill, with the context for its upstream.
///
/// A fill can serve many readers, whose requests belong to different traces. The fill is a child of the request that
/// has caused it, and has links to the requests of all its readers. Each of them has a link to the fill.
struct FillTrace: Sendable {
    /// Nil if the fill is not recorded.
    let span: TraceSpan?
    /// The context for `traceparent`; nil if tracing is disabled.
    let context: TraceContext?

    /// - Parameter readers: The traces of the readers that want bytes of the fill.
    init(_ name: String, tracer: Tracer, readers: [RequestTrace] = []) {
        guard tracer.isEnabled else {
            (span, context) = (nil, nil)
            return
        }
        let cause = RequestTrace.current ?? readers.first
        let parent = cause?.span ?? readers.lazy.compactMap(\.span).first
        if let parent {
            span = parent.child(name, .client)
        } else if cause == nil {
            span = tracer.span(name, .client)
        } else {
            span = nil
        }
        context = span?.context ?? tracer.unsampledContext(parent: cause?.incoming)
        for reader in readers { link(reader) }
    }

    /// Links the fill and the request of a reader with each other.
    func link(_ reader: RequestTrace) {
        guard let span, let other = reader.span else { return }
        span.link(other.context)
        other.link(span.context)
    }
}
