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

    package var code: Code
    /// One plain sentence for an administrator, without secrets and without the query of a signed URL.
    package var message: String
    /// The underlying error, for the log.
    package var cause: (any Error)?
    /// The value of `WWW-Authenticate` in the response; nil for that of the code.
    package var challenge: String?
    /// Whether a connection failed for a reason on this machine; this is no evidence about the upstream.
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

    /// The same error of a document that is a member of another one: the name of an invalid field gets the member before it.
    package func below(_ member: String) -> CacheError {
        guard case .invalidField(let field) = code else { return self }
        var error = self
        error.code = .invalidField(field.isEmpty || field == "(body)" ? member : "\(member).\(field)")
        return error
    }
}

extension CacheError: CustomStringConvertible {
    package var description: String { "\(code.name): \(message)" }
}
