import CacheCore

/// The parts that all recorded spans of a tracer share.
final class SpanRecorder: Sendable {
    let sampler: TraceSampler
    let identifiers: TraceIDGenerator
    let queue = SpanQueue(batchSize: OTLPExporter.batchSize)
    private let clock: SpanClock

    init(sampler: TraceSampler, identifiers: TraceIDGenerator, clock: SpanClock) {
        self.sampler = sampler
        self.identifiers = identifiers
        self.clock = clock
    }

    /// Starts a span; nil if it is not recorded (``Tracer/span(_:_:parent:links:)``).
    func span(_ name: String, _ kind: SpanKind, parent: TraceContext?, links: [TraceContext]) -> TraceSpan? {
        guard let trace = sampledTrace(parent: parent, links: links) else { return nil }
        let span = start(name, kind, trace: trace, parent: parent)
        for link in links { span.link(link) }
        return span
    }

    /// The trace of a new span; nil if the span is not recorded.
    private func sampledTrace(parent: TraceContext?, links: [TraceContext]) -> TraceID? {
        if let parent {
            let isRecorded = sampler.isParentBased ? parent.isSampled : sampler.records(parent.traceID)
            return isRecorded ? parent.traceID : nil
        }
        guard !links.contains(where: \.isSampled) else { return identifiers.trace() }
        return identifiers.sampledTrace(threshold: sampler.threshold)
    }

    /// Starts a recorded span.
    func start(_ name: String, _ kind: SpanKind, trace: TraceID, parent: TraceContext?) -> TraceSpan {
        let flags = parent.map { $0.flags.union(.sampled) } ?? [.sampled, .random]
        let context = TraceContext(
            traceID: trace, spanID: identifiers.span(), flags: flags, state: parent?.state ?? TraceState())
        let (time, uptime) = clock.now()
        let record = SpanRecord(
            name: name, kind: kind, context: context, parent: parent.map(SpanLink.init), start: time)
        return TraceSpan(record, start: uptime, recorder: self)
    }

    /// Queues an ended span; `start` is the uptime of its start.
    func end(_ span: SpanRecord, start: Int64) {
        var span = span
        span.finish(at: span.start + clock.elapsed(since: start))
        queue.append(span)
    }
}
