/// A named upstream base URL with its settings; mounted at `/o/{name}/…`.
package struct Origin: Hashable, Sendable {
    package var name: String
    package var settings: OriginSettings

    package init(name: String, settings: OriginSettings) {
        self.name = name
        self.settings = settings
    }

    /// The name under which reads of absolute URLs are counted; no mounted origin can have it.
    package static let absoluteName = "(url)"

    /// Whether `name` may be mounted: 1–64 of a–z, 0–9, `.`, `_`, `-`, the first a letter or digit.
    package static func isValid(name: String) -> Bool {
        func isAlphanumeric(_ byte: UInt8) -> Bool { (97...122).contains(byte) || (48...57).contains(byte) }
        guard let first = name.utf8.first, name.utf8.count <= 64, isAlphanumeric(first) else { return false }
        return name.utf8.allSatisfy { isAlphanumeric($0) || $0 == 45 || $0 == 46 || $0 == 95 }
    }
}

package struct OriginSettings: Hashable, Sendable {
    /// How long what the upstream sent may be used without asking again.
    package enum Freshness: Hashable, Sendable {
        /// As the response's own headers say (RFC 9111 §4.2).
        case respect
        /// This long, whatever they say.
        case ttl(Duration)
    }

    /// Which part of the query names the asset.
    package enum KeyQuery: Hashable, Sendable {
        case all
        case none
        case include([String])
        case exclude([String])
    }

    package enum Access: String, Hashable, Sendable, CaseIterable { case `public`, token }

    package var baseURL: String
    /// Sent with each request to the origin's own host; values are secrets.
    package var headers: HeaderList
    package var freshness: Freshness
    package var keyQuery: KeyQuery
    package var timeouts: TransferTimeouts
    /// To the first byte of a read; then 504.
    package var readTimeout: Duration
    /// How often a broken transfer is begun again.
    package var retries: Int
    package var maxTransfers: Int
    package var maxBytesPerSecond: Int64?
    /// How far windows may grow ahead of a sequential reader.
    package var readAheadBytes: Int64
    /// A window that its last reader left is finished where no more than this is missing; else it is cut.
    package var finishIfRemainingBytes: Int64
    package var allowPrivateAddresses: Bool
    package var tls: TLSSettings
    /// Nil: `token` where the origin has headers of its own, else `public`.
    package var access: Access?

    package init(baseURL: String) {
        self.baseURL = baseURL
        headers = [:]
        freshness = .respect
        keyQuery = .all
        timeouts = TransferTimeouts()
        readTimeout = .seconds(30)
        retries = 3
        maxTransfers = 16
        maxBytesPerSecond = nil
        readAheadBytes = 8 << 20
        finishIfRemainingBytes = 8 << 20
        allowPrivateAddresses = false
        tls = TLSSettings()
        access = nil
    }

    /// Whether content needs a token.
    package var effectiveAccess: Access { access ?? (headers.fields.isEmpty ? .public : .token) }
}
