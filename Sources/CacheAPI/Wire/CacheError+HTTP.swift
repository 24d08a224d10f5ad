package import CacheCore
package import HTTPTypes

extension CacheError.Code {
    /// The HTTP status of this code in all responses but those of content reads.
    package var status: Int { row.status }

    /// The HTTP status of this code in the response of a content read. An error status of the upstream is passed on.
    package var contentStatus: Int {
        if case .upstreamRefused(let status, _) = self, Self.isPassedOn(status) { return status }
        return row.contentStatus ?? row.status
    }

    /// The header fields for ``contentStatus``.
    package var contentHeaders: HTTPFields {
        guard case .upstreamRefused(let status, let refusal) = self, contentStatus == status else { return headers }
        var fields: HTTPFields = [:]
        fields[.retryAfter] = refusal.retryAfter.map(Self.seconds)
        // 401 requires a challenge (RFC 9110 §15.5.2). That of the upstream is the reader's only if the reader's own
        // credentials were sent (§11.6.1); otherwise it is for those of the origin.
        if status == 401 {
            fields[values: .wwwAuthenticate] = refusal.challenges.isEmpty ? ["Upstream"] : refusal.challenges
        }
        // 405 requires Allow (§15.5.6). The upstream allows neither GET nor HEAD.
        if status == 405 { fields[.allow] = "OPTIONS" }
        return fields
    }

    /// The header fields for ``status``.
    package var headers: HTTPFields {
        switch self {
        case .unauthorized: [.wwwAuthenticate: BearerChallenge.withoutError]
        case .tokenScope: [.wwwAuthenticate: BearerChallenge.insufficientScope]
        case .methodNotAllowed(let allow): [.allow: allow]
        case .rangeNotSatisfiable(let length?): [.contentRange: "bytes */\(length)"]
        case .upstreamUnreachable(let wait?): [.retryAfter: Self.seconds(wait)]
        default: isTemporary ? [.retryAfter: "5"] : [:]
        }
    }

    /// A duration as a value of `Retry-After` (RFC 9110 §10.2.3): whole seconds, rounded up.
    private static func seconds(_ wait: Duration) -> String { String(max(0, Int64(wait.inSeconds.rounded(.up)))) }
}

extension CacheError {
    /// The header fields for the status of the code.
    package var headers: HTTPFields { challenged(code.headers) }

    /// The header fields for the status of the code in the response of a content read.
    package var contentHeaders: HTTPFields { challenged(code.contentHeaders) }

    private func challenged(_ fields: HTTPFields) -> HTTPFields {
        var fields = fields
        if let challenge { fields[.wwwAuthenticate] = challenge }
        return fields
    }
}
