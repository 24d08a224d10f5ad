import ArgumentParser
import CacheCore

/// Members of a document on the command line, such as `timeouts.idleSeconds=30`.
enum Assignments {
    /// The document with these members. A value is JSON, or a text; a size such as `2TiB` is possible for members whose name
    /// ends in `Bytes`. Throws `ValidationError` for a text without `=`.
    static func document(_ words: [String]) throws -> JSON {
        var document: JSON = .object([])
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let path = parts[0].split(separator: ".").map(String.init)
            guard parts.count == 2, let last = path.last else {
                throw ValidationError("\(word) is no setting: write name=value, such as retries=3.")
            }
            document.insert(value(String(parts[1]), of: last), at: path)
        }
        return document
    }

    private static func value(_ text: String, of name: String) -> JSON {
        if let json = try? JSONParser.parse(text.utf8) { return json }
        if name.hasSuffix("Bytes") || name.hasSuffix("PerSecond"), let size = try? ByteSize.parse(text) {
            return .integer(size)
        }
        return .string(text)
    }

    /// The members of a document as lines `name  value`, with the names of inner members joined by dots.
    static func table(of document: JSON) -> String {
        var table = TextTable()
        add(document, at: "", to: &table)
        return table.text
    }

    private static func add(_ json: JSON, at path: String, to table: inout TextTable) {
        guard case .object(let members) = json, !members.isEmpty else {
            return table.add(path, json.string ?? json.text)
        }
        for member in members { add(member.value, at: path.isEmpty ? member.key : "\(path).\(member.key)", to: &table) }
    }
}
