package import CacheCore
package import HTTPTypes

extension CacheError.Code {
    /// The status that answers this code everywhere but in content reads (RFC 9110 §15).
    package var status: Int {
        switch self {
        case .malformedRequest: 400
        case .unauthorized: 401
        case .forbidden, .upstreamForbidden: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .requestTimedOut: 408
        case .conflict, .assetChanged: 409
        case .preconditionFailed: 412
        case .payloadTooLarge: 413
        case .uriTooLong: 414
        case .unsupportedMediaType: 415
        case .rangeNotSatisfiable: 416
        case .invalidField: 422
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

    /// The status of a content read: a refusal of the upstream is passed on, but for what would say something untrue
    /// of the reader's own request, or of its connection to Larder.
    package var contentStatus: Int {
        if self == .assetChanged { return 502 }  // a reader has no state that it could be in conflict with
        guard case .upstreamRefused(let status, _) = self, (400...599).contains(status),
            ![407, 412, 416, 417, 421, 426, 431, 511].contains(status)
        else { return self.status }
        return status
    }

    /// The header fields that belong to the status of a content read.
    package var contentHeaders: HTTPFields {
        guard case .upstreamRefused(let status, let wait) = self, contentStatus == status else { return headers }
        var fields: HTTPFields = [:]
        fields[.retryAfter] = wait.map(Self.seconds)
        // A challenge must come along (RFC 9110 §15.5.2), but the upstream's own is for Larder's credentials.
        if status == 401 { fields[.wwwAuthenticate] = "Upstream" }
        // GET and HEAD are what the upstream does not allow (§15.5.6).
        if status == 405 { fields[.allow] = "OPTIONS" }
        return fields
    }

    /// The header fields that belong to the status.
    package var headers: HTTPFields {
        switch self {
        case .unauthorized: [.wwwAuthenticate: "Bearer"]
        case .methodNotAllowed(let allow): [.allow: allow]
        case .rangeNotSatisfiable(let length?): [.contentRange: "bytes */\(length)"]
        case .overloaded, .shuttingDown, .storageCorrupt, .rateLimited: [.retryAfter: "5"]
        case .upstreamUnreachable(let wait?): [.retryAfter: Self.seconds(wait)]
        default: [:]
        }
    }

    /// A wait as `Retry-After` tells it (RFC 9110 §10.2.3).
    private static func seconds(_ wait: Duration) -> String { String(max(0, Int64(wait.inSeconds.rounded(.up)))) }
}
