package import CacheCore

/// One POST request to a receiver (OTLP specification, "OTLP/HTTP Request"). Its description contains neither the
/// header fields nor the query of the URL.
package struct OTLPRequest: Sendable {
    package let endpoint: OTLPEndpoint
    /// All header fields that the transport must send, including `Content-Type` and credentials.
    package let headers: SecretHeaders
    /// A JSON text.
    package let body: [UInt8]
    /// The time limit for the whole exchange.
    package let timeout: Duration
}

/// The result of a request.
package enum OTLPResponse: Sendable, Hashable {
    /// The receiver answered.
    case response(status: Int, headers: HeaderList = HeaderList(), body: [UInt8] = [])
    /// There was no response. The reason is a sentence for the log, without a secret.
    case failure(String)
}

extension OTLPRequest: CustomStringConvertible, CustomReflectable {
    package var description: String { "POST \(endpoint), \(body.count) bytes" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
