/// A part of a name, found in keys and URLs as people read them: without escapes, and without regard to case.
package struct NamePart: Hashable, Sendable {
    /// The part in the form in which texts are compared.
    package let folded: [UInt8]

    package init(_ text: String) { folded = Self.folded(text) }

    /// A part that was folded before.
    package init(folded: [UInt8]) { self.folded = folded }

    /// Whether the text contains the part.
    package func isIn(_ text: String) -> Bool {
        guard let first = folded.first else { return true }
        let bytes = Self.folded(text)
        guard folded.count <= bytes.count else { return false }
        return (0...bytes.count - folded.count).contains { start in
            bytes[start] == first && bytes[start..<start + folded.count].elementsEqual(folded)
        }
    }

    /// The text without escapes, in lower case, in UTF-8.
    private static func folded(_ text: String) -> [UInt8] {
        let decoded = PercentEncoding.decoded(text)
        // The first test finds texts for which no string must be built.
        guard decoded.allSatisfy({ $0 < 0x80 }) else {
            return Array(String(decoding: decoded, as: UTF8.self).lowercased().utf8)
        }
        return decoded.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }
}
