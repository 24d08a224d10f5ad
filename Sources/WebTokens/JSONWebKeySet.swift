package import CacheCore

/// A set of verification keys (RFC 7517 §5). Keys that cannot be used are skipped, as §5 demands.
package struct JSONWebKeySet: Sendable {
    /// The maximum number of keys in a document.
    private static let keyLimit = 256
    /// The maximum number of keys that one token is checked against; it bounds the work that a forged token causes.
    private static let tryLimit = 8

    /// The usable keys in the order of the document.
    package let keys: [VerificationKey]
    /// The number of skipped keys: of an unknown type, for encryption, too short, or malformed.
    package let skipped: Int

    package init(_ keys: [VerificationKey]) {
        self.keys = keys
        skipped = 0
    }

    /// Makes a set from a JWK set document.
    ///
    /// Throws `.invalidField("keys")` if `keys` is no array, or has more than 256 elements.
    package init(_ document: JSON) throws(CacheError) {
        guard case .array(let entries)? = document["keys"] else {
            throw .invalid("keys", "The document is no JSON Web Key set: keys must be an array.")
        }
        guard entries.count <= Self.keyLimit else {
            throw .invalid("keys", "The key set has more than \(Self.keyLimit) keys.")
        }
        // An unusable key must not make the others unusable.
        keys = entries.compactMap { try? VerificationKey(jwk: $0) }
        skipped = entries.count - keys.count
    }

    /// Parses the text of a JWK set document. Throws `.malformedRequest` if it is not JSON, else as ``init(_:)``.
    package static func parse(_ text: some Sequence<UInt8>) throws(CacheError) -> JSONWebKeySet {
        try JSONWebKeySet(try JSONParser.parse(text))
    }

    /// The keys that may have signed a token: those with its `kid`, or all if it has none, that fit the algorithm; at
    /// most 8.
    package func candidates(id: String?, algorithm: TokenAlgorithm) -> [VerificationKey] {
        Array(
            keys.lazy.filter { $0.algorithms.contains(algorithm) && (id == nil || $0.id == id) }
                .prefix(Self.tryLimit))
    }
}
