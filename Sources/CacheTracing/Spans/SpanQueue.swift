import CacheCore
import DequeModule

/// Bounded queue of ended spans between the tracer and the exporter. When it is full, the oldest span is dropped: the
/// newest describe the present state of the service.
final class SpanQueue: Sendable {
    /// The largest number of spans (the default of OTEL_BSP_MAX_QUEUE_SIZE).
    static let capacity = 2048

    private struct State {
        var spans: Deque<SpanRecord> = []
        var dropped: Int64 = 0
    }

    private let state = OrderedMutex(.leaf, State())
    /// The number of spans from which `signal` is notified.
    private let batchSize: Int
    /// Wakes the exporter.
    let signal = ExportSignal()

    init(batchSize: Int) { self.batchSize = batchSize }

    /// Appends a span, and notifies the exporter of a complete batch.
    func append(_ span: SpanRecord) {
        let (oldest, isBatch) = state.withLock { state -> (SpanRecord?, Bool) in
            var oldest: SpanRecord?
            if state.spans.count == Self.capacity {
                oldest = state.spans.popFirst()
                state.dropped += 1
            }
            state.spans.append(span)
            return (oldest, state.spans.count == batchSize)
        }
        // The dropped span is released outside the lock.
        _ = oldest
        if isBatch { signal.batchIsReady() }
    }

    /// Removes and returns the oldest spans.
    func take(atMost count: Int) -> [SpanRecord] {
        state.withLock { state in
            let taken = Array(state.spans.prefix(count))
            state.spans.removeFirst(taken.count)
            return taken
        }
    }

    /// The number of queued spans.
    var count: Int { state.withLock { $0.spans.count } }

    /// The number of spans that were dropped because the queue was full.
    var dropped: Int64 { state.withLock { $0.dropped } }
}
