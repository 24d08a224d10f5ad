/// A glob over asset keys: `*` matches any characters but `/`, `**` any characters, and `**/` any number of directories, also
/// none. A backslash makes the next character literal.
package struct KeyPattern: Hashable, Sendable {
    private enum Token: Hashable {
        case byte(UInt8)
        /// Any bytes but `/`.
        case name
        case anything
        /// Begins directories, of which there may be none: leads to the next token and to the one behind that.
        case enter
        /// Any bytes up to a `/`, and on to the next directory.
        case directories
    }

    private let tokens: [Token]

    /// Nil unless the text has 1 to 2048 characters and does not end with a single backslash.
    package init?(_ text: String) {
        guard (1...2048).contains(text.unicodeScalars.count) else { return nil }
        var (tokens, rest): ([Token], ArraySlice<UInt8>) = ([], Array(text.utf8)[...])
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\\"):
                guard let literal = rest.popFirst() else { return nil }
                tokens.append(.byte(literal))
            case UInt8(ascii: "*"):
                guard rest.first == byte else {
                    tokens.append(.name)
                    continue
                }
                while rest.first == byte { rest.removeFirst() }
                let isWhole = tokens.isEmpty || [.byte(UInt8(ascii: "/")), .directories].contains(tokens.last)
                guard isWhole, rest.first == UInt8(ascii: "/") else {
                    tokens.append(.anything)
                    continue
                }
                rest.removeFirst()
                tokens += [.enter, .directories]
            default: tokens.append(.byte(byte))
            }
        }
        self.tokens = tokens
    }

    /// The characters that every matching key begins with.
    package var prefix: String {
        let bytes = tokens.prefix { if case .byte = $0 { true } else { false } }.compactMap { token -> UInt8? in
            if case .byte(let byte) = token { byte } else { nil }
        }
        // A character may be cut by a pattern that names its first bytes only.
        return String(validating: bytes, as: UTF8.self) ?? ""
    }

    /// Whether the whole key matches. Takes time proportional to both lengths, whatever the pattern.
    package func matches(_ key: String) -> Bool {
        // The tokens that may come next, for the bytes so far; the last place is the pattern's end.
        var places = [Bool](repeating: false, count: tokens.count + 1)
        places[0] = true
        skip(&places)
        for byte in key.utf8 {
            var next = [Bool](repeating: false, count: places.count)
            for (index, token) in tokens.enumerated() where places[index] {
                switch token {
                case .byte(let wanted): if wanted == byte { next[index + 1] = true }
                case .name: if byte != UInt8(ascii: "/") { next[index] = true }
                case .anything: next[index] = true
                case .enter: break
                case .directories:
                    next[index] = true
                    if byte == UInt8(ascii: "/") { next[index + 1] = true }
                }
            }
            guard next.contains(true) else { return false }
            places = next
            skip(&places)
        }
        return places[tokens.count]
    }

    /// Adds the tokens behind those that may match nothing.
    private func skip(_ places: inout [Bool]) {
        for (index, token) in tokens.enumerated() where places[index] {
            switch token {
            case .byte, .directories: break
            case .name, .anything: places[index + 1] = true
            case .enter: (places[index + 1], places[index + 2]) = (true, true)
            }
        }
    }
}
