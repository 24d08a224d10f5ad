/// A glob pattern for asset keys: `*` matches any characters except `/`, `**` any characters, and `**/` any number of
/// directories, including none. A backslash makes the next character literal.
package struct KeyPattern: Hashable, Sendable, TextDecodable {
    package static let expectation = "A pattern has 1 to 2048 characters and no backslash at its end."

    private enum Token: Hashable {
        case byte(UInt8)
        /// Any bytes except `/`.
        case name
        /// Any bytes.
        case anything
        /// The beginning of `**/`. Because there may be no directory, it leads to the next token and to the one behind
        /// that.
        case enter
        /// Any bytes up to a `/`, then the next directory.
        case directories
    }

    private let tokens: [Token]

    /// Parses the pattern; nil unless it has 1 to 2048 characters and no unpaired backslash at its end.
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

    /// The characters with which every matching key begins.
    package var prefix: String {
        let bytes = tokens.prefix { if case .byte = $0 { true } else { false } }.compactMap { token -> UInt8? in
            if case .byte(let byte) = token { byte } else { nil }
        }
        // The literal bytes may end inside a character.
        return String(validating: bytes, as: UTF8.self) ?? ""
    }

    /// Whether the whole key matches. The time is proportional to the product of both lengths for any pattern
    /// (simulation of all states at once, without backtracking).
    package func matches(_ key: String) -> Bool {
        // The tokens that may match the next byte. The last element stands for the end of the pattern.
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

    /// Adds the tokens that can be reached without a byte.
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
