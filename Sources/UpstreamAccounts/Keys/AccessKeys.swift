import CacheCore

/// Keys for signatures.
struct AccessKeys: Hashable, Sendable {
    let accessKeyID: String
    /// A secret.
    let secretAccessKey: String
    /// A secret of temporary keys, sent in `X-Amz-Security-Token`; nil for permanent keys.
    let sessionToken: String?

    /// An empty session token is none, because some tools write one for permanent keys.
    ///
    /// Throws `.upstreamProtocol` if a key is empty or cannot be part of a field value. `source`: the place of the
    /// keys, for the message.
    init(_ accessKeyID: String?, _ secretAccessKey: String?, _ sessionToken: String?, from source: String)
        throws(CacheError)
    {
        let sessionToken = sessionToken.flatMap { $0.isEmpty ? nil : $0 }
        guard let accessKeyID, let secretAccessKey, Self.isUsable(accessKeyID), Self.isUsable(secretAccessKey),
            sessionToken.map(Self.isUsable) ?? true
        else {
            throw CacheError(
                .upstreamProtocol,
                "\(source) contains no usable keys: an access key ID and a secret access key without blanks are needed."
            )
        }
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
    }

    private static func isUsable(_ key: String) -> Bool {
        !key.isEmpty && key.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}

extension AccessKeys: CustomStringConvertible {
    /// Without the secrets.
    var description: String { "AccessKeys" }
}

/// Keys and the time until which they are valid.
struct IssuedKeys: Sendable {
    var keys: AccessKeys
    /// In local time; nil: without a stated end.
    var expiresAt: Timestamp?
}
