/// What a file of credentials holds: header fields, `Name: value` on each line; blank lines and those that begin with `#`
/// are passed over.
package enum CredentialsText {
    /// A file is no longer than this…
    package static let maxBytes = 64 << 10
    /// …and holds no more fields than this.
    package static let maxFields = 64
    private static let maxValueBytes = 8192

    /// The fields in the order they stand, at least one.
    ///
    /// Throws `.invalidField("credentialsFile")`, which names the line that is wrong and never what stands there.
    package static func parse(_ bytes: [UInt8]) throws(CacheError) -> HeaderList {
        guard bytes.count <= maxBytes else { throw malformed("has more than \(maxBytes) bytes") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw malformed("is no UTF-8") }
        var fields = HeaderList()
        for (index, line) in text.utf8.split(separator: 10, omittingEmptySubsequences: false).enumerated() {
            let line = FieldText.trimmed(Substring(line.last == 13 ? line.dropLast() : line))
            guard !line.isEmpty, line.utf8.first != UInt8(ascii: "#") else { continue }
            let field = try field(in: line, number: index + 1)
            fields.append(field.name, field.value)
        }
        // A file that is just being written anew may be seen empty: that is no word to do without credentials.
        guard !fields.fields.isEmpty else { throw malformed("holds no header field") }
        guard fields.fields.count <= maxFields else { throw malformed("holds more than \(maxFields) header fields") }
        return fields
    }

    private static func field(in line: Substring, number: Int) throws(CacheError) -> HeaderList.Field {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), FieldText.isToken(line[..<colon]) else {
            throw malformed("has a line, number \(number), that is no `Name: value`")
        }
        let value = FieldText.trimmed(line[line.utf8.index(after: colon)...])
        guard !value.isEmpty, FieldText.isValue(value), value.utf8.count <= maxValueBytes else {
            throw malformed("has a line, number \(number), whose value is empty, too long or holds control characters")
        }
        let name = String(line[..<colon])
        guard !OriginSettings.forbiddenHeaders.contains(where: { HeaderList.same($0, name) }) else {
            throw malformed("has a line, number \(number), for \(name), which the transfer sets itself")
        }
        return HeaderList.Field(name, String(value))
    }

    private static func malformed(_ what: String) -> CacheError {
        CacheError(.invalidField("credentialsFile"), "The file of credentials \(what).")
    }
}
