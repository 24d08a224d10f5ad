import CacheCore

/// How failed reads are answered.
extension AssetCache {
    /// The refusal that is repeated unasked, if there is one.
    func keptRefusal(of target: AssetTarget, _ attempt: ReadAttempt) -> ReadFailure? {
        guard let refusal = context.refusals[target.id], isUsable(refusal, for: attempt),
            let left = refusal.timeToLive(at: attempt.began)
        else { return nil }
        let outcome = ReadOutcome(requestClass: .negative, timeToLive: left, detail: "negative")
        return ReadFailure(Self.repeated(refusal), outcome: outcome, age: refusal.age(at: attempt.began))
    }

    /// Whether a stored refusal is fresh, and the request's directives allow its use.
    func isUsable(_ refusal: RefusalShelf.Refusal, for attempt: ReadAttempt) -> Bool {
        let asked = attempt.directives
        return refusal.timeToLive(at: attempt.began) != nil && !asked.noCache
            && asked.maxAge.map { refusal.age(at: attempt.began) <= $0 } ?? true
    }

    static func repeated(_ refusal: RefusalShelf.Refusal) -> CacheError {
        CacheError(.upstreamRefused(status: refusal.status), "The upstream answered with status \(refusal.status).")
    }

    func failure(_ error: CacheError, of target: AssetTarget) -> ReadFailure {
        var failure = ReadFailure(error)
        guard error.code.isOfUpstream else { return failure }
        let asset = context.openAssets.acquire(target.id)
        defer { if let asset { context.openAssets.release(asset) } }
        failure.outcome.forwarding = asset?.record == nil ? .miss : .stale
        failure.outcome.upstreamStatus = error.code.upstreamStatus
        return failure
    }
}

extension CacheError.Code {
    /// The status of the upstream's response; nil where there was none, or one of no known status.
    var upstreamStatus: Int? {
        switch self {
        case .upstreamRefused(let status, _): status
        case .rangeNotSatisfiable: 416
        default: nil
        }
    }

    /// Whether the upstream was not even asked.
    var isUnasked: Bool { if case .upstreamUnreachable(.some) = self { true } else { false } }
}
