import CacheCore
import CacheEngine
import CacheTracing
import ReaderAccess

/// Collects the figures of one request for its access log entry, and holds the request's admission permit.
final class RequestLogContext: Sendable {
    struct Content: Sendable {
        var kind = RequestKind.api
        /// The asset of a content request.
        var asset: AssetName?
        /// Nil: the request has none.
        var range: LoggedRange?
        /// The status of the upstream's response; nil if there was none.
        var upstreamStatus: Int?
        /// The cache result (`hit`, `miss`, …) or an error code; nil for API requests that succeed.
        var outcome: String?
        /// The result of a content request; nil for other requests.
        var result: ReadOutcome.Class?
        /// Nil if the request's trace is not recorded.
        var span: TraceSpan?
        /// The reader that the request was authorized for; nil without a token.
        var reader: Reader?
        /// Body bytes sent.
        var sentBytes: Int64 = 0
        var bytesFromCache: Int64 = 0
        var bytesFromUpstream: Int64 = 0
        /// Body bytes that another node of the fleet has sent for this request; not in `bytesFromUpstream`.
        var bytesFromPeers: Int64 = 0
        /// The time from the request's head to the first byte of the body; nil without a body.
        var firstByte: Duration?
        /// Whether the whole response was sent.
        var isComplete = false
    }

    /// Guards the collected figures.
    private let state = OrderedMutex(.leaf, Content())
    /// Guards the permit of the request; nil if it needs none.
    private let permit = OrderedMutex<AdmissionLimiter.Permit?>(.leaf, nil)

    /// - Parameter kind: Nil: it is recorded later.
    init(_ kind: RequestKind = .api) { update { $0.kind = kind } }

    /// The figures collected so far.
    var content: Content { state.withLock { $0 } }

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
    func update(_ change: (inout Content) -> Void) { state.withLock { change(&$0) } }
}
