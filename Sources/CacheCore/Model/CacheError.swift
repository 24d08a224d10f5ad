/// An error as a code for callers and a message for people.
package struct CacheError: Error, Sendable {
    /// The wait that exceeded its limit.
    package enum Timeout: String, Sendable, Hashable, Codable {
        /// Name look-up, TCP and TLS together.
        case connect
        /// From the last byte of the request to the first byte of the response.
        case firstByte
        /// Between two arrivals of body bytes.
        case idle
        /// One upstream request from its beginning to its end.
        case total
        /// The wait of a reader for its first byte.
        case read
        /// The timeout or deadline of a prefetch job.
        case job
    }

    /// The fields of an upstream's error response that are passed on.
    package struct RefusalFields: Hashable, Sendable {
        /// The wait of `Retry-After`; nil if the upstream sent none.
        package var retryAfter: Duration?
        /// The values of `WWW-Authenticate`, if the reader's own credentials were sent.
        package var challenges: [String]
        /// The reason in the body; nil: none is known.
        package var reason: ErrorDocument.Reason?

        package init(retryAfter: Duration? = nil, challenges: [String] = [], reason: ErrorDocument.Reason? = nil) {
            self.retryAfter = retryAfter
            self.challenges = challenges
            self.reason = reason
        }
    }

    /// The closed list of errors. One place derives the HTTP status from them.
    package enum Code: Hashable, Sendable {
        case malformedRequest
        case unauthorized
        case forbidden
        /// The token or the signed URL is known and correct, but has expired.
        case tokenExpired
        /// The token or the signed URL is malformed, altered, or signed with an unknown key.
        case tokenInvalid
        /// The token or the signed URL is valid, but does not permit the request.
        case tokenScope
        /// A request to the upstream needs the header fields of a reader (`forward`), and no reader's request causes it.
        case readerRequired
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
        /// The length of the asset; nil if unknown.
        case rangeNotSatisfiable(length: Int64?)
        /// The name of the field, as the client wrote it.
        case invalidField(String)
        case rateLimited
        case `internal`
        /// A method or a transfer coding that no resource supports.
        case notImplemented
        /// `retryAfter`: the time until the next request to the upstream; nil if a request was sent.
        case upstreamUnreachable(retryAfter: Duration? = nil)
        case upstreamProtocol
        /// A well-formed response that cannot be used; a repeated request would get the same. `asRange`: a request
        /// without `Range` may get a usable one.
        case upstreamUnusable(asRange: Bool = false)
        /// The status of the upstream.
        case upstreamRefused(status: Int, RefusalFields = RefusalFields())
        case overloaded
        case shuttingDown
        case storageCorrupt
        case upstreamTimedOut(Timeout)
        /// The reader accepts cached content only (`only-if-cached`, RFC 9111 §5.2.1.7), and the content is not cached.
        case notCached
        case storageFull
        /// The bytes are no media of a known format.
        case unsupportedMedia
        /// The media contradicts its own format.
        case malformedMedia
        /// The index of the media, or the playlist, exceeds a limit.
        case mediaIndexTooLarge
        /// A job, or all jobs together, would have more items than permitted.
        case jobTooLarge
        /// A time lies behind the end of the media.
        case outOfRange
        /// The request has passed through this service before.
        case loop
        /// The caller has cancelled the operation and does not read the error.
        case cancelled
    }

    package var code: Code
    /// One plain sentence for an administrator, without secrets and without the query of a signed URL.
    package var message: String
    /// The underlying error, for the log.
    package var cause: (any Error)?
    /// The value of `WWW-Authenticate` in the response; nil for that of the code.
    package var challenge: String?
    /// Whether a connection failed for a reason on this machine, which is no evidence about the upstream.
    package var isLocal = false

    package init(_ code: Code, _ message: String, cause: (any Error)? = nil, challenge: String? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
        self.challenge = challenge
    }

    /// The error for an invalid field of a request or a document.
    package static func invalid(_ field: String, _ reason: String) -> CacheError {
        CacheError(.invalidField(field), reason)
    }
}

extension CacheError: CustomStringConvertible {
    package var description: String { "\(code.name): \(message)" }
}

extension CacheError.Code {
    /// The refusal of an upstream that asks for a wait.
    package static func upstreamRefused(status: Int, retryAfter: Duration?) -> Self {
        .upstreamRefused(status: status, CacheError.RefusalFields(retryAfter: retryAfter))
    }

    /// Whether the status asks for the same request a moment later: the server is busy, or it is failing.
    package static func isTransient(_ status: Int) -> Bool {
        status == 408 || isOfBusyServer(status) || isOfFailingServer(status)
    }

    /// Whether the same request may succeed a moment later.
    package var isWorthRetrying: Bool {
        switch self {
        // `.overloaded`: no memory is left for spilled bytes; readers that advance free some.
        case .upstreamUnreachable, .upstreamProtocol, .upstreamTimedOut, .storageFull, .overloaded: true
        case .upstreamRefused(let status, let fields): fields.reason == .transient || Self.isTransient(status)
        default: false
        }
    }

    /// Whether the server limits the rate, or cannot accept the request for a moment.
    package var isOfBusyServer: Bool {
        guard case .upstreamRefused(let status, let fields) = self else { return false }
        return fields.reason == .transient || Self.isOfBusyServer(status)
    }

    /// Too Early (RFC 8470), Too Many Requests, Service Unavailable, and the statuses with which Cloudflare reports an
    /// origin that does not answer.
    private static func isOfBusyServer(_ status: Int) -> Bool {
        [425, 429, 503].contains(status) || (520...529).contains(status)
    }

    /// Whether the status reports a failure of the server.
    package static func isOfFailingServer(_ status: Int) -> Bool {
        [500, 502, 503, 504].contains(status) || (520...529).contains(status)
    }

    /// The name of the code in the API, without its payload.
    package var name: String {
        switch self {
        case .malformedRequest: "malformedRequest"
        case .unauthorized: "unauthorized"
        case .forbidden: "forbidden"
        case .tokenExpired: "tokenExpired"
        case .tokenInvalid: "tokenInvalid"
        case .tokenScope: "tokenScope"
        case .readerRequired: "readerRequired"
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
        case .unsupportedMedia: "unsupportedMedia"
        case .malformedMedia: "malformedMedia"
        case .mediaIndexTooLarge: "mediaIndexTooLarge"
        case .jobTooLarge: "jobTooLarge"
        case .outOfRange: "outOfRange"
        case .loop: "loop"
        case .cancelled: "cancelled"
        }
    }
}
