/// What a cache may do with a stored response when a reader asks for it (RFC 9111 §4, RFC 5861).
package enum StoredUse: Hashable, Sendable {
    /// It is used unasked.
    case fresh
    /// It is used unasked though stale: the reader said it may (RFC 9111 §5.2.1.2).
    case stale
    /// It is used at once though stale, and confirmed behind (RFC 5861 §3).
    case staleWhileRevalidate
    /// It is confirmed first, because it is stale.
    case confirm
    /// It is confirmed first, though fresh, because the reader asks for that (RFC 9111 §5.2.1).
    case confirmOnRequest
}

/// By what a stored response's use is judged: the origin's word, and the reader's where it counts.
package struct UseRules: Sendable {
    package var freshness: OriginSettings.Freshness
    /// The origin's own limit; nil: as the response says.
    package var staleIfError: Duration?
    /// Those of the reader; none where the origin does not obey them.
    package var directives: RequestDirectives

    package init(
        freshness: OriginSettings.Freshness, staleIfError: Duration? = nil,
        directives: RequestDirectives = RequestDirectives()
    ) {
        self.freshness = freshness
        self.staleIfError = staleIfError
        self.directives = directives
    }
}

extension Generation {
    /// What may be done with it at `now`.
    package func use(at now: Timestamp, under rules: UseRules) -> StoredUse {
        let asked = rules.directives
        let isFresh = isFresh(at: now)
        if asked.noCache { return isFresh ? .confirmOnRequest : .confirm }
        if let maxAge = asked.maxAge, age(at: now) > maxAge { return isFresh ? .confirmOnRequest : .confirm }
        if isFresh {
            guard let minFresh = asked.minFresh, let freshUntil, freshUntil.since(now) < minFresh else { return .fresh }
            return .confirmOnRequest
        }
        let control = control(under: rules)
        guard !control.forbidsStaleUse, asked.minFresh == nil else { return .confirm }
        switch asked.maxStale {
        case .any: return .stale
        case .upTo(let limit) where staleness(at: now) <= limit: return .stale
        case .upTo, .none: break
        }
        // A reader who names the age it accepts gets nothing staler than the response's own lifetime (§5.2.1.1).
        guard asked.maxAge == nil, let window = control.staleWhileRevalidate, staleness(at: now) <= window else {
            return .confirm
        }
        return .staleWhileRevalidate
    }

    /// Whether it may be used at `now` although it is stale, because the upstream fails (RFC 5861 §4).
    package func servesErrors(at now: Timestamp, under rules: UseRules) -> Bool {
        let control = control(under: rules)
        guard !control.forbidsStaleUse, !rules.directives.noCache else { return false }
        let limits = [rules.staleIfError ?? control.staleIfError, rules.directives.staleIfError]
        guard let limit = limits.compactMap(\.self).max() else { return false }
        return staleness(at: now) <= limit
    }

    /// How long ago it went stale; where it never was fresh, how old it is.
    private func staleness(at now: Timestamp) -> Duration {
        freshUntil.map { now.since($0) } ?? age(at: now)
    }

    /// What the response itself says, where that counts: an administrator's lifetime stands over it.
    private func control(under rules: UseRules) -> CacheControl {
        var control = CacheControl.effective(in: headers)
        if case .ttl = rules.freshness {
            control.noCache = false
            control.mustRevalidate = false
            control.proxyRevalidate = false
            control.sharedMaxAge = nil
        }
        return control
    }
}

extension CacheControl {
    /// What forbids a shared cache to use a stale response (RFC 9111 §4.2.4): `s-maxage` too (§5.2.2.10).
    package var forbidsStaleUse: Bool { noCache || mustRevalidate || proxyRevalidate || sharedMaxAge != nil }
}

extension CacheError.Code {
    /// Whether a stale response may stand in for it: what would be a 500, 502, 503 or 504 (RFC 5861 §4).
    package var isUpstreamFailure: Bool {
        switch self {
        case .upstreamUnreachable, .upstreamProtocol, .upstreamUnusable, .upstreamTimedOut: true
        case .upstreamRefused(let status, _): Self.isOfFailingServer(status)
        default: false
        }
    }

    /// Whether a response with that status is that of a failing server.
    package static func isOfFailingServer(_ status: Int) -> Bool { [500, 502, 503, 504].contains(status) }
}
