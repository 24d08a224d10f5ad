/// How a cache may use a stored response for a request (RFC 9111 §4, RFC 5861).
package enum StoredUse: Hashable, Sendable {
    /// Use it without validation: it is fresh.
    case fresh
    /// Use it without validation although it is stale: `max-stale` of the client allows it (RFC 9111 §5.2.1.2).
    case stale
    /// Use it at once although it is stale, and validate it in the background (RFC 5861 §3).
    case staleWhileRevalidate
    /// Validate it first: it is stale.
    case confirm
    /// Validate it first although it is fresh: the client requests it (RFC 9111 §5.2.1).
    case confirmOnRequest
}

/// The rules for using a stored response: those of the origin, and those of the client as far as they apply.
package struct UseRules: Sendable {
    /// The origin's freshness setting.
    package var freshness: OriginSettings.Freshness
    /// The origin's `stale-if-error` period; nil: that of the response.
    package var staleIfError: Duration?
    /// The directives of the client; empty if the origin's settings ignore them.
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
    /// The permitted use at `now`.
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
        // A client that states a maximum age gets nothing beyond the freshness lifetime (§5.2.1.1).
        guard asked.maxAge == nil, let window = control.staleWhileRevalidate, staleness(at: now) <= window else {
            return .confirm
        }
        return .staleWhileRevalidate
    }

    /// Whether it may be used at `now` although it is stale, because the upstream fails (RFC 5861 §4). The longer one
    /// of the origin's and the client's period counts.
    package func servesErrors(at now: Timestamp, under rules: UseRules) -> Bool {
        let control = control(under: rules)
        guard !control.forbidsStaleUse, !rules.directives.noCache else { return false }
        let limits = [rules.staleIfError ?? control.staleIfError, rules.directives.staleIfError]
        guard let limit = limits.compactMap(\.self).max() else { return false }
        return staleness(at: now) <= limit
    }

    /// The time since it became stale; if it was never fresh, its age.
    private func staleness(at now: Timestamp) -> Duration {
        freshUntil.map { now.since($0) } ?? age(at: now)
    }

    /// The directives of the response. An administrator's lifetime overrides those that forbid stale use.
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
    /// Whether a shared cache must not use the response when it is stale (RFC 9111 §4.2.4); `s-maxage` also forbids it
    /// (§5.2.2.10).
    var forbidsStaleUse: Bool { noCache || mustRevalidate || proxyRevalidate || sharedMaxAge != nil }
}
