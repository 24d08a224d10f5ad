/// An entity tag (RFC 9110 §8.8.3): an opaque text, weak or strong.
package struct EntityTag: Hashable, Sendable {
    package let opaque: String
    package let isWeak: Bool

    /// Parses one `entity-tag`; nil where the text is not one.
    package init?(_ text: some StringProtocol) {
        var text = Substring(text)
        guard let tag = text.withUTF8({ EntityTag(bytes: $0[...]) }) else { return nil }
        self = tag
    }

    /// As above, of its bytes.
    init?(bytes: Slice<UnsafeBufferPointer<UInt8>>) {
        isWeak = bytes.starts(with: "W/".utf8)
        let rest = bytes.dropFirst(isWeak ? 2 : 0)
        let quote = UInt8(ascii: "\"")
        guard rest.count >= 2, rest.first == quote, rest.last == quote else { return nil }
        let inner = UnsafeBufferPointer(rebasing: rest.dropFirst().dropLast())
        guard inner.allSatisfy({ $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80 }) else { return nil }
        opaque = String(decoding: inner, as: UTF8.self)
    }

    /// Both strong, and the same text (§8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// The same text, weak or not (§8.8.3.2).
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }
}

extension EntityTag: CustomStringConvertible {
    package var description: String { (isWeak ? "W/\"" : "\"") + opaque + "\"" }
}

/// What tells one generation of an asset from the next.
package struct Validators: Hashable, Sendable {
    package var entityTag: EntityTag?
    /// As the upstream wrote it, for `If-Range` and `Last-Modified`.
    package var lastModified: String?
    /// Whether `lastModified` is at least a minute older than the `Date` it came with (RFC 9110 §8.8.2.2).
    package var lastModifiedIsStrong: Bool

    package init(entityTag: EntityTag? = nil, lastModified: String? = nil, lastModifiedIsStrong: Bool = false) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.lastModifiedIsStrong = lastModifiedIsStrong
    }

    /// What an `If-Range` may carry (§13.1.5): a strong tag, else a strong date; nil where windows cannot be joined.
    package var strong: String? {
        if let entityTag { return entityTag.isWeak ? nil : entityTag.description }
        return lastModifiedIsStrong ? lastModified : nil
    }
}
