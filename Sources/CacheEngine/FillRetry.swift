import CacheCore

/// How a fill goes on from the failure before it.
struct FillRetry: Hashable, Sendable {
    /// How long it waits, in place of the backoff; nil: the backoff.
    var delay: Duration?
    /// What the upstream has asked to wait in a row, `delay` included.
    var waited = Duration.zero
    /// The origin's credentials were read again for it: it is one try more than the settings give.
    var hasNewCredentials = false

    /// How the transfer that was refused with a 401 is begun again once the credentials are read.
    static let withNewCredentials = FillRetry(delay: .zero, hasNewCredentials: true)
}

extension CacheError.Code {
    /// How a transfer that failed so is begun again; nil: not at all.
    ///
    /// The wait a 429 or 503 asks for is kept (RFC 9110 §10.2.3) as long as such waits, `previous` included, fit into
    /// `limit`, what a reader is ready to wait.
    func retry(after previous: FillRetry, within limit: Duration) -> FillRetry? {
        guard isWorthRetrying else { return nil }
        guard case .upstreamRefused(let status, let wait?) = self, [429, 503].contains(status) else {
            return FillRetry()
        }
        let waited = previous.waited + wait
        return waited < limit ? FillRetry(delay: wait, waited: waited) : nil
    }

    /// Whether the same request may well succeed a moment later.
    private var isWorthRetrying: Bool {
        switch self {
        case .upstreamUnreachable, .upstreamProtocol, .upstreamTimedOut: true
        case .upstreamRefused(let status, _): [408, 429, 500, 502, 503, 504].contains(status)
        default: false
        }
    }
}
