import CacheCore

/// Failed reads: negative caching, and the outcome that is reported for a failure.
extension AssetCache {
    /// The stored refusal of the target's upstream, as a failure, if it may be repeated without a request; nil
    /// otherwise.
    func keptRefusal(of target: AssetTarget, _ attempt: ReadAttempt) -> ReadFailure? {
        guard let refusal = context.refusals[target.id], isUsable(refusal, for: attempt),
            let left = refusal.timeToLive(at: attempt.began)
        else { return nil }
        let outcome = ReadOutcome(requestClass: .negative, timeToLive: left, detail: "negative")
        return ReadFailure(Self.repeated(refusal), outcome: outcome, age: refusal.age(at: attempt.began))
    }

    /// Whether a stored refusal is fresh, and the request's directives permit its use.
    func isUsable(_ refusal: NegativeCache.Refusal, for attempt: ReadAttempt) -> Bool {
        let asked = attempt.directives
        return refusal.timeToLive(at: attempt.began) != nil && !asked.noCache
            && asked.maxAge.map { refusal.age(at: attempt.began) <= $0 } ?? true
    }

    /// The error that repeats a stored refusal.
    static func repeated(_ refusal: NegativeCache.Refusal) -> CacheError {
        CacheError(.upstreamRefused(status: refusal.status), "The upstream answered with status \(refusal.status).")
    }

    /// The failure to report for `error`. If the upstream caused it, the outcome tells why the upstream was asked and
    /// its status.
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
    /// The status of the upstream's response; nil if there was no response, or its status is unknown.
    var upstreamStatus: Int? {
        switch self {
        case .upstreamRefused(let status, _): status
        case .rangeNotSatisfiable: 416
        default: nil
        }
    }

    /// Whether no request was sent, because the circuit breaker refused it.
    var isUnasked: Bool { if case .upstreamUnreachable(.some) = self { true } else { false } }
}
