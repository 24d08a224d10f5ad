import CacheCore

/// The parameters of one read; they apply to all its rounds.
struct ReadAttempt: Sendable {
    let request: ContentRequest
    let directives: RequestDirectives
    /// When the request started.
    let began: Timestamp
    /// The uptime then. An upstream response received since needs no revalidation. Not by the wall clock: in its whole
    /// milliseconds a response from before the request can look like one after it.
    let uptime: Duration
    /// The fields of the reader that the origin's `forward` names; nil: the origin forwards none.
    var forwarded: HeaderList?
    /// The time limit for the first byte.
    let limit: Duration
    /// Whether the first request for an unknown asset is for one byte, in place of the requested range.
    var opensWithFirstByte = false
    /// Whether the read must leave no trace in the store, because the asset is below the admission threshold.
    var isUncached = false
    /// Whether the upstream has already answered a request for this read; the read is then no hit.
    var wasForwarded = false
    /// The additional upstream requests of all rounds so far; nil in the first round.
    var attempts: FillLedger.Attempts?
    /// The reason for the upstream request, if it is known before the cached bytes are looked up.
    var forwarding: ReadOutcome.Forwarding?

    /// The window of the first request for an unknown asset.
    var opening: UpstreamRequest.Window { opensWithFirstByte ? .first : request.openingWindow }
}

/// The result of opening an asset for a reader.
enum Opening {
    /// The read, with its first byte available.
    case read(ContentRead)
    /// The variant that the reader's header fields select instead.
    case variant(AssetTarget)
}

/// The state of an asset when a reader arrived, and the permitted use of its stored response.
struct FreshnessDecision: Sendable {
    /// Whether the upstream has described the asset.
    let isKnown: Bool
    /// Whether fills of the asset were in flight.
    let isSettling: Bool
    /// The permitted use; nil if the asset is unknown.
    let use: StoredUse?
    let rules: UseRules
    /// The code of the failed revalidation, if a stale response is served because of it.
    var failure: CacheError.Code?

    /// Whether the response must be revalidated before it is used.
    var mustConfirm: Bool { use == .confirm || use == .confirmOnRequest }
}

extension UpstreamRequest.Window {
    /// The first byte, which every asset has unless it is empty.
    static let first = Self.closed(0..<1)
}

extension ContentRequest {
    /// Whether a 416 from the upstream is a complete answer: the request has no condition, which would take
    /// precedence, and no second range.
    var asksForOneRangeOnly: Bool {
        let conditions = ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"]
        guard case .ranges(let specs) = RangeHeader.parse(headers.combined("Range")), specs.count == 1 else {
            return false
        }
        return conditions.allSatisfy { headers[$0] == nil }
    }

    /// The window of the first upstream request for an unknown asset: the first requested range. A conditional read of
    /// the whole asset is probably answered 304, so it begins with one byte.
    var openingWindow: UpstreamRequest.Window {
        if isHead { return .first }
        guard case .ranges(let specs) = RangeHeader.parse(headers.combined("Range")), let spec = specs.first else {
            let isConditional = headers["If-None-Match"] != nil || headers["If-Modified-Since"] != nil
            return isConditional ? .first : .from(0)
        }
        return spec.opening()
    }
}
