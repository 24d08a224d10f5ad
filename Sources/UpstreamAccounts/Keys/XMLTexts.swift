import CacheCore

/// The texts of a small XML document, as STS returns it.
enum XMLTexts {
    /// The text of an element without elements. `path`: the names from the root to the element.
    struct Leaf: Hashable {
        var path: [String]
        var text: String
    }

    private static let depthLimit = 16

    /// The texts in document order; nil if the document is not well-formed.
    static func parse(_ bytes: [UInt8]) -> [Leaf]? {
        var reader = XMLReader(bytes, depth: depthLimit)
        var (leaves, path): ([Leaf], [String]) = ([], [])
        // The text of the innermost element since its start tag; nil if it contains an element.
        var text: String?
        while let event = try? reader.next() {
            switch event {
            case .start(let element):
                path.append(element.name)
                text = ""
            case .text(let part): text?.append(part)
            case .end:
                if let text { leaves.append(Leaf(path: path, text: TokenText.trimmed(Array(text.utf8)))) }
                text = nil
                path.removeLast()
            case .finished: return leaves
            }
        }
        return nil
    }
}
