extension ContentPlan {
    /// The answer for where its bytes stand in for those of another asset: what they are and how many, and nothing by which
    /// a client or cache could take them for the other's. Nil where it is not the whole.
    package var standingIn: ContentPlan? {
        guard status == 200, headers["Content-Encoding"] == nil else { return nil }
        var plan = self
        plan.headers = ["Cache-Control": "no-store"]
        for name in ["Content-Type", "Content-Length"] {
            if let value = headers[name] { plan.headers.append(name, value) }
        }
        return plan
    }
}

extension CacheError.Code {
    /// Whether a read that failed so is answered with the origin's fallback: where the upstream failed or refused, not
    /// where the request itself, the configuration or the store is to blame, or nobody waits any more.
    package var deservesFallback: Bool {
        switch self {
        case .upstreamRefused, .upstreamUnreachable, .upstreamProtocol, .upstreamUnusable, .upstreamTimedOut,
            .assetChanged:
            true
        default: false
        }
    }
}
