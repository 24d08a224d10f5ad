package import CacheCore
import Foundation

/// Where a page ended, as an opaque text that a client gives back.
package struct PageCursor: Hashable {
    /// The list and its order; a cursor of another one is refused.
    let list: String
    /// The last row's value in that order…
    let value: Int64
    /// …and what tells rows of the same value apart; empty where the value does.
    let tie: String

    init(list: String, value: Int64, tie: String = "") {
        self.list = list
        self.value = value
        self.tie = tie
    }

    /// Throws `invalidField("cursor")` where `text` is not a cursor of that list.
    package init(_ text: String, list: String) throws(CacheError) {
        guard text.utf8.count <= Self.mostBytes, let bytes = Self.decoded(text) else { throw Self.refusal }
        let parts = String(decoding: bytes, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == list, let value = Int64(parts[1]) else { throw Self.refusal }
        self.init(list: list, value: value, tie: String(parts[2]))
        guard self.text == text else { throw Self.refusal }
    }

    /// The cursor in base64url without padding (RFC 4648 §5).
    package var text: String {
        Data("\(list) \(value) \(tie)".utf8).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// No key is so long that a cursor could be longer.
    private static let mostBytes = 64 << 10

    static let refusal = CacheError(.invalidField("cursor"), "The cursor is not one that this list has given out.")

    private static func decoded(_ text: String) -> Data? {
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        return Data(base64Encoded: text.replacing("-", with: "+").replacing("_", with: "/") + padding)
    }
}
