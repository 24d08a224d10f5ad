import RawStructuredFieldValues

/// A hashing algorithm of the digest fields, with its name there (RFC 9530 §5).
package enum DigestAlgorithm: String, Hashable, Sendable {
    case sha256 = "sha-256"
    case sha512 = "sha-512"
    /// Deprecated; only used to check digests of upstreams.
    case md5

    /// The algorithms that clients can request. At equal preference the first one is chosen.
    private static let offered: [DigestAlgorithm] = [.sha256, .sha512]

    /// The largest field, in bytes; a longer one is ignored.
    private static let maxBytes = 1024

    /// The preferred algorithm of a `Want-Content-Digest` or `Want-Repr-Digest` field (RFC 9530 §4). Nil if the field
    /// requests none that is offered.
    ///
    /// A field that is not a dictionary of structured fields is ignored (RFC 9651 §4.2). So are members with a value
    /// other than an integer from 1 to 10; 0 states that the algorithm is not acceptable.
    package static func preferred(in lines: [String]) -> DigestAlgorithm? {
        guard !lines.isEmpty, lines.reduce(0, { $0 + $1.utf8.count }) <= maxBytes else { return nil }
        var parser = StructuredFieldValueParser(Array(lines.joined(separator: ", ").utf8))
        // A client that sent an invalid field gets the response to a request without it.
        guard let members = try? parser.parseDictionaryFieldValue() else { return nil }
        var best: (algorithm: DigestAlgorithm, weight: Int)?
        for algorithm in offered {
            guard case .item(let item)? = members[algorithm.rawValue], case .integer(let weight) = item.rfc9651BareItem,
                (1...10).contains(weight), weight > best?.weight ?? 0
            else { continue }
            best = (algorithm, Int(weight))
        }
        return best?.algorithm
    }
}
