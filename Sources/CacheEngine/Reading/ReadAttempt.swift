import CacheCore

/// What one read goes by, from its first try to its last.
struct ReadAttempt: Sendable {
    let request: ContentRequest
    let directives: RequestDirectives
    /// When the request came: what the upstream has said since then needs no confirmation.
    let began: Timestamp
    let limit: Duration
    /// Whether, where the asset is not known, its first byte is asked for first, in place of what the request wants.
    var opensWithFirstByte = false
    /// Whether it leaves no trace, the asset being asked for too seldom.
    var isPassing = false
    /// Whether the upstream has already answered a request for it: then it is no hit.
    var wasForwarded = false
    /// Why the upstream is asked, where that shows before the bytes are looked for.
    var forwarding: ReadOutcome.Forwarding?

    /// What is asked for first where the asset is not known.
    var opening: UpstreamRequest.Window { opensWithFirstByte ? .first : request.openingWindow }
}

/// What opening an asset for a reader comes to.
enum Opening {
    case read(ContentRead)
    /// The reader's fields choose this one instead.
    case variant(AssetTarget)
}

/// How an asset stood when a reader came.
struct Standing: Sendable {
    let isKnown: Bool
    let isSettling: Bool
    /// Nil where it is not known.
    let use: StoredUse?
    let rules: UseRules
    /// Why the upstream could not confirm it.
    var failure: CacheError.Code?

    var mustConfirm: Bool { use == .confirm || use == .confirmOnRequest }
}

extension UpstreamRequest.Window {
    /// What every asset that is not empty has.
    static let first = Self.closed(0..<1)
}

extension ContentRequest {
    /// Whether an upstream that does not have the range has said all there is to say: no condition comes before it, and
    /// no other range behind it.
    var asksForOneRangeOnly: Bool {
        let conditions = ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"]
        guard case .ranges(let specs) = RangeHeader.parse(headers.combined("Range")), specs.count == 1 else {
            return false
        }
        return conditions.allSatisfy { headers[$0] == nil }
    }

    /// The window of the first upstream request for an unknown asset: the first range wanted.
    var openingWindow: UpstreamRequest.Window {
        if isHead { return .first }
        guard case .ranges(let specs) = RangeHeader.parse(headers.combined("Range")), let spec = specs.first else {
            return .from(0)
        }
        return spec.opening()
    }
}
