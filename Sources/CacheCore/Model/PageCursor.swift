/// Position of the last row of a page, as an opaque text for the client.
package struct PageCursor: Hashable {
    /// The list and its order. A cursor of a different list is rejected.
    package let list: String
    /// Sort value of the last row.
    package let value: Int64
    /// Tie-breaker for rows with the same sort value; empty if the value is unique.
    package let tie: String

    package init(list: String, value: Int64, tie: String = "") {
        self.list = list
        self.value = value
        self.tie = tie
    }

    /// Parses a cursor. Throws `invalidField("cursor")` if `text` is not a cursor of this list.
    package init(_ text: String, list: String) throws(CacheError) {
        guard text.utf8.count <= Self.mostBytes, let bytes = Base64URL.decode(text) else { throw Self.refusal }
        let parts = String(decoding: bytes, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == list, let value = Int64(parts[1]) else { throw Self.refusal }
        self.init(list: list, value: value, tie: String(parts[2]))
        // Only the canonical encoding is accepted.
        guard self.text == text else { throw Self.refusal }
    }

    /// The cursor in base64url without padding (RFC 4648 §5).
    package var text: String { Base64URL.encode("\(list) \(value) \(tie)".utf8) }

    /// Maximum length of a cursor's text: no key is long enough for a longer cursor.
    private static let mostBytes = 64 << 10

    /// The error for an invalid cursor.
    package static let refusal = CacheError(.invalidField("cursor"), "The cursor is not a nextCursor of this list.")
}
