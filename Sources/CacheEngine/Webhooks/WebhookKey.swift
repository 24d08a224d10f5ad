import CacheCore
import Cryptography
import Foundation

/// A key of the signatures of a webhook (Standard Webhooks, symmetric signatures).
package struct WebhookKey: Hashable, Sendable {
    /// The permitted lengths in bytes.
    package static let lengths = 24...64
    private static let prefix = "whsec_"

    private let bytes: [UInt8]

    /// Parses `whsec_` and the key in Base64, with or without padding. Nil if it has another form or length.
    package init?(_ text: some StringProtocol) {
        guard text.hasPrefix(Self.prefix) else { return nil }
        let encoded = text.dropFirst(Self.prefix.count).prefix { $0 != "=" }
        let padding = String(repeating: "=", count: (4 - encoded.utf8.count % 4) % 4)
        guard text.dropFirst(Self.prefix.count + encoded.count).utf8.count <= 2,
            let data = Data(base64Encoded: encoded + padding), Self.lengths.contains(data.count)
        else { return nil }
        bytes = Array(data)
    }

    /// The signature of a message, in version 1.
    ///
    /// - Parameter timestamp: The time of the request in seconds since 1970.
    func signature(of payload: String, message: String, timestamp: Int64) -> String {
        let code = HashFunction.sha256.code(of: "\(message).\(timestamp).\(payload)".utf8, SymmetricKey(bytes))
        return "v1,\(Data(code).base64EncodedString())"
    }
}

extension WebhookKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "WebhookKey" }
    package var debugDescription: String { "WebhookKey" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension [WebhookKey] {
    /// The header fields of a request with a message.
    func fields(of payload: String, message: String, at time: Timestamp) -> HeaderList {
        let signatures = map { $0.signature(of: payload, message: message, timestamp: time.seconds) }
        return [
            "Content-Type": "application/json", "webhook-id": message, "webhook-timestamp": String(time.seconds),
            "webhook-signature": signatures.joined(separator: " "),
        ]
    }
}
