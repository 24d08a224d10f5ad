package import CacheCore
package import HTTPTypes

extension CacheError.Code {
    /// The HTTP status of this code (RFC 9110 §15) in all responses but those of content reads, see ``contentStatus``.
    package var status: Int {
        switch self {
        case .malformedRequest: 400
        case .unauthorized: 401
        case .forbidden, .tokenExpired, .tokenInvalid, .tokenScope, .readerRequired, .upstreamForbidden: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .requestTimedOut: 408
        case .conflict, .assetChanged: 409
        case .preconditionFailed: 412
        case .payloadTooLarge: 413
        case .uriTooLong: 414
        case .unsupportedMediaType: 415
        case .rangeNotSatisfiable: 416
        case .invalidField, .unsupportedMedia, .malformedMedia, .mediaIndexTooLarge, .jobTooLarge, .outOfRange: 422
        case .rateLimited: 429
        case .headersTooLarge: 431
        case .internal: 500
        case .notImplemented: 501
        case .upstreamUnreachable, .upstreamProtocol, .upstreamUnusable, .upstreamRefused: 502
        case .overloaded, .shuttingDown, .storageCorrupt, .cancelled: 503
        case .upstreamTimedOut, .notCached: 504
        case .storageFull: 507
        case .loop: 508
        }
    }

    /// The HTTP status of this code in the response of a content read.
    ///
    /// An error status of the upstream is passed on. Exceptions are statuses that would be wrong for the client's own
    /// request or for its connection to Larder, such as 407 and 416.
    package var contentStatus: Int {
        if self == .assetChanged { return 502 }  // not 409: a reader has no state that could conflict
        guard case .upstreamRefused(let status, _) = self, (400...599).contains(status),
            ![407, 412, 416, 417, 421, 426, 431, 511].contains(status)
        else { return self.status }
        return status
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
        case .overloaded, .shuttingDown, .storageCorrupt, .rateLimited: [.retryAfter: "5"]
        case .upstreamUnreachable(let wait?): [.retryAfter: Self.seconds(wait)]
        default: [:]
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
