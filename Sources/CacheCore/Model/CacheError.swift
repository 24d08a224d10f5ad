/// What went wrong, as a code that callers compare and a sentence that people read.
package struct CacheError: Error, Sendable {
    /// Which wait ran out.
    package enum Timeout: String, Sendable, Hashable, Codable {
        /// Name look-up, TCP and TLS together.
        case connect
        /// From the request's last byte to the response's first.
        case firstByte
        /// No byte arrived for this long in the middle of a body.
        case idle
        /// One upstream request from beginning to end.
        case total
        /// What the reader was ready to wait for its first byte.
        case read
        /// A prefetch job's own limit.
        case job
    }

    /// The closed list of outcomes that are not success; HTTP statuses are chosen from it in one place.
    package enum Code: Hashable, Sendable {
        case malformedRequest
        case unauthorized
        case forbidden
        case upstreamForbidden
        case notFound
        case methodNotAllowed(allow: String)
        case requestTimedOut
        case conflict
        case assetChanged
        case preconditionFailed
        case payloadTooLarge
        case uriTooLong
        case headersTooLarge
        case unsupportedMediaType
        /// The asset's length, where it is known.
        case rangeNotSatisfiable(length: Int64?)
        /// The field's name as the client wrote it.
        case invalidField(String)
        case rateLimited
        case `internal`
        /// A method or a transfer coding that no resource supports.
        case notImplemented
        /// How long it is left alone, where it is not even asked.
        case upstreamUnreachable(retryAfter: Duration? = nil)
        case upstreamProtocol
        /// A well-formed response that cannot be used: the same request would get it again. `asRange`: one without `Range`
        /// may get a usable one.
        case upstreamUnusable(asRange: Bool = false)
        /// The upstream's own status, and how long it wants to be left alone, where it said so.
        case upstreamRefused(status: Int, retryAfter: Duration? = nil)
        case overloaded
        case shuttingDown
        case storageCorrupt
        case upstreamTimedOut(Timeout)
        /// The reader wants what is cached or nothing, and it is not (RFC 9111 §5.2.1.7).
        case notCached
        case storageFull
        case loop
        /// The caller gave up; nobody is left to read it.
        case cancelled
    }

    package var code: Code
    /// One plain sentence for an administrator; never holds a secret or a signed URL's query.
    package var message: String
    /// The foreign error underneath, for the log.
    package var cause: (any Error)?

    package init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension CacheError: CustomStringConvertible {
    package var description: String { "\(code.name): \(message)" }
}

extension CacheError.Code {
    /// The code's name in the API, without its payload.
    package var name: String {
        switch self {
        case .malformedRequest: "malformedRequest"
        case .unauthorized: "unauthorized"
        case .forbidden: "forbidden"
        case .upstreamForbidden: "upstreamForbidden"
        case .notFound: "notFound"
        case .methodNotAllowed: "methodNotAllowed"
        case .requestTimedOut: "requestTimedOut"
        case .conflict: "conflict"
        case .assetChanged: "assetChanged"
        case .preconditionFailed: "preconditionFailed"
        case .payloadTooLarge: "payloadTooLarge"
        case .uriTooLong: "uriTooLong"
        case .headersTooLarge: "headersTooLarge"
        case .unsupportedMediaType: "unsupportedMediaType"
        case .rangeNotSatisfiable: "rangeNotSatisfiable"
        case .invalidField: "invalidField"
        case .rateLimited: "rateLimited"
        case .internal: "internal"
        case .notImplemented: "notImplemented"
        case .upstreamUnreachable: "upstreamUnreachable"
        case .upstreamProtocol, .upstreamUnusable: "upstreamProtocol"
        case .upstreamRefused: "upstreamRefused"
        case .overloaded: "overloaded"
        case .shuttingDown: "shuttingDown"
        case .storageCorrupt: "storageCorrupt"
        case .upstreamTimedOut: "upstreamTimedOut"
        case .notCached: "notCached"
        case .storageFull: "storageFull"
        case .loop: "loop"
        case .cancelled: "cancelled"
        }
    }
}
