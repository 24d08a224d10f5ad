/// An entity tag (RFC 9110 §8.8.3): an opaque text, weak or strong.
package struct EntityTag: Hashable, Sendable {
    /// The text between the quotes.
    package let opaque: String
    package let isWeak: Bool

    /// Parses an `entity-tag`; nil if the text is not valid.
    package init?(_ text: some StringProtocol) {
        var text = Substring(text)
        guard let tag = text.withUTF8({ EntityTag(bytes: $0[...]) }) else { return nil }
        self = tag
    }

    /// Parses the bytes of an `entity-tag`; nil if they are not valid.
    init?(bytes: Slice<UnsafeBufferPointer<UInt8>>) {
        isWeak = bytes.starts(with: "W/".utf8)
        let rest = bytes.dropFirst(isWeak ? 2 : 0)
        let quote = UInt8(ascii: "\"")
        guard rest.count >= 2, rest.first == quote, rest.last == quote else { return nil }
        let inner = UnsafeBufferPointer(rebasing: rest.dropFirst().dropLast())
        guard inner.allSatisfy({ $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80 }) else { return nil }
        opaque = String(decoding: inner, as: UTF8.self)
    }

    /// Strong comparison: both are strong and have the same text (§8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && matchesWeakly(other) }

    /// Weak comparison: both have the same text (§8.8.3.2), byte by byte. The comparison of strings would treat
    /// canonically equivalent texts as equal.
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque.utf8.elementsEqual(other.opaque.utf8) }

    package static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.isWeak == right.isWeak && left.matchesWeakly(right)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(isWeak)
        for byte in opaque.utf8 { hasher.combine(byte) }
    }
}

extension EntityTag: CustomStringConvertible {
    /// The value of an `ETag` field.
    package var description: String { (isWeak ? "W/\"" : "\"") + opaque + "\"" }
}

/// The validators of a generation: they distinguish it from other generations of the asset.
package struct Validators: Hashable, Sendable {
    package var entityTag: EntityTag?
    /// The unchanged text of the upstream, for `If-Range` and `Last-Modified`; nil: none.
    package var lastModified: String?
    /// Whether `lastModified` is at least a minute older than the `Date` of its response (RFC 9110 §8.8.2.2).
    package var lastModifiedIsStrong: Bool

    package init(entityTag: EntityTag? = nil, lastModified: String? = nil, lastModifiedIsStrong: Bool = false) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.lastModifiedIsStrong = lastModifiedIsStrong
    }

    /// The validator for `If-Range` (§13.1.5): a strong tag, otherwise a strong date. Nil if windows cannot be
    /// combined.
    package var strong: String? {
        if let entityTag { return entityTag.isWeak ? nil : entityTag.description }
        return lastModifiedIsStrong ? lastModified : nil
    }
}
