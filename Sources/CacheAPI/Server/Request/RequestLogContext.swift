import CacheCore
package import CacheEngine
package import CacheTracing
package import ReaderAccess

/// Collects the figures of one request for its access log entry, and holds the request's admission permit.
package final class RequestLogContext: Sendable {
    package struct Content: Sendable {
        /// The cache result (`hit`, `miss`, …) or an error code; nil for API requests that succeed.
        package var outcome: String?
        /// The result of a content request; nil for other requests.
        package var result: ReadOutcome.Class?
        /// Nil if the request's trace is not recorded.
        package var span: TraceSpan?
        /// The reader that the request was authorized for; nil without a token.
        package var reader: Reader?
        /// Body bytes sent.
        package var sentBytes: Int64 = 0
        package var bytesFromCache: Int64 = 0
        package var bytesFromUpstream: Int64 = 0
        /// Body bytes that another node of the fleet has sent for this request; not in `bytesFromUpstream`.
        package var bytesFromPeers: Int64 = 0
        /// The time from the request's head to the first byte of the body; nil without a body.
        package var firstByte: Duration?
        /// Whether the whole response was sent.
        package var isComplete = false
    }

    /// Guards the collected figures.
    private let state = OrderedMutex(.leaf, Content())
    /// Guards the permit of the request; nil if it needs none.
    private let permit = OrderedMutex<AdmissionLimiter.Permit?>(.leaf, nil)

    package init() {}

    /// The figures collected so far.
    package var content: Content { state.withLock { $0 } }

    /// Records the result of a content request. `code` names the error of the result `.error`. Latencies belong to
    /// requests that the statistics count.
    func conclude(_ result: ReadOutcome.Class, code: CacheError.Code? = nil, isCounted: Bool = true) {
        update { content in
            content.result = isCounted ? result : nil
            content.outcome = result == .error ? code?.name ?? result.rawValue : result.rawValue
        }
    }

    /// Keeps a permit until this object is released, which is when the response has ended.
    func hold(_ permit: AdmissionLimiter.Permit) { self.permit.withLock { $0 = permit } }

    /// Records the sources of the sent bytes.
    func add(_ tally: ReadTally) {
        update { content in
            content.bytesFromCache = tally.bytesFromCache
            content.bytesFromUpstream = tally.bytesAfterFill - tally.bytesFromPeers
            content.bytesFromPeers = tally.bytesFromPeers
        }
    }

    /// Changes the figures under the lock.
    package func update(_ change: (inout Content) -> Void) { state.withLock { change(&$0) } }
}
