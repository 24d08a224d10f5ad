extension JSON {
    /// The value at a JSON pointer (RFC 6901); nil if there is none, or if the pointer is malformed.
    package func value(at pointer: String) -> JSON? {
        guard !pointer.isEmpty else { return self }
        guard pointer.hasPrefix("/") else { return nil }
        var value = self
        for token in pointer.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let name = Self.unescaped(token) else { return nil }
            switch value {
            case .object(let members):
                guard let member = members.first(where: { $0.key.utf8.elementsEqual(name.utf8) }) else { return nil }
                value = member.value
            case .array(let items):
                // An index has no leading zero (RFC 6901 §4).
                guard let index = Int(name), index >= 0, String(index) == name, index < items.count else { return nil }
                value = items[index]
            case .null, .bool, .integer, .number, .string: return nil
            }
        }
        return value
    }

    /// A reference token with `~1` and `~0` replaced; nil if another character follows a tilde.
    private static func unescaped(_ token: Substring) -> String? {
        let escapes = token.split(separator: "~", omittingEmptySubsequences: false).dropFirst()
        guard escapes.allSatisfy({ $0.first == "0" || $0.first == "1" }) else { return nil }
        return String(token.replacing("~1", with: "/").replacing("~0", with: "~"))
    }
}
