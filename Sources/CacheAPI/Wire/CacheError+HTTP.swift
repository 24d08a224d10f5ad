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
        case .upstreamUnreachable, .upstreamProtocol, .upstreamRefused: 502
        case .overloaded, .shuttingDown, .storageCorrupt, .cancelled: 503
        case .upstreamTimedOut, .notCached: 504
        case .storageFull: 507
        case .loop: 508
        }
    }

    /// The status of a content read: where the upstream said that the asset is not to be had, the reader hears just that;
    /// a refusal of Larder's own credentials stays a 502.
    package var contentStatus: Int {
        guard case .upstreamRefused(let status, _) = self, [403, 404, 410, 429, 451].contains(status) else {
            return self.status
        }
        return status
    }

    /// The header fields that belong to the status.
    package var headers: HTTPFields {
        switch self {
        case .unauthorized: [.wwwAuthenticate: "Bearer"]
        case .methodNotAllowed(let allow): [.allow: allow]
        case .rangeNotSatisfiable(let length?): [.contentRange: "bytes */\(length)"]
        case .overloaded, .shuttingDown, .storageCorrupt, .rateLimited: [.retryAfter: "5"]
        default: [:]
        }
    }
}
