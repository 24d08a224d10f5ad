/// Parses a credentials file: one header field `Name: value` per line. Blank lines and lines that begin with `#` are
/// ignored.
package enum CredentialsText {
    /// The largest size of a file, in bytes.
    package static let maxBytes = 64 << 10
    /// The largest number of fields in a file.
    package static let maxFields = 64
    /// The largest size of a value, in bytes.
    private static let maxValueBytes = 8192

    /// The header fields in file order; at least one.
    ///
    /// Throws `.invalidField("credentialsFile")` with the number of the invalid line, never with its content.
    package static func parse(_ bytes: [UInt8]) throws(CacheError) -> HeaderList {
        guard bytes.count <= maxBytes else { throw malformed("has more than \(maxBytes) bytes") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw malformed("is not valid UTF-8") }
        var fields = HeaderList()
        for (index, line) in text.utf8.split(separator: 10, omittingEmptySubsequences: false).enumerated() {
            let line = FieldText.trimmed(Substring(line.last == 13 ? line.dropLast() : line))
            guard !line.isEmpty, line.utf8.first != UInt8(ascii: "#") else { continue }
            let field = try field(in: line, number: index + 1)
            fields.append(field.name, field.value)
        }
        // A file that is being rewritten may be empty for a moment. That must not remove the credentials.
        guard !fields.fields.isEmpty else { throw malformed("contains no header field") }
        guard fields.fields.count <= maxFields else { throw malformed("contains more than \(maxFields) header fields") }
        return fields
    }

    private static func field(in line: Substring, number: Int) throws(CacheError) -> HeaderList.Field {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), FieldText.isToken(line[..<colon]) else {
            throw malformed("is invalid in line \(number): the format is `Name: value`")
        }
        let value = FieldText.trimmed(line[line.utf8.index(after: colon)...])
        guard !value.isEmpty, FieldText.isValue(value), value.utf8.count <= maxValueBytes else {
            throw malformed("is invalid in line \(number): a value has 1 to \(maxValueBytes) bytes, no control bytes")
        }
        let name = String(line[..<colon])
        guard !OriginSettings.forbiddenHeaders.contains(where: { HeaderList.same($0, name) }) else {
            throw malformed("is invalid in line \(number): Larder sets \(name) itself; remove the line")
        }
        return HeaderList.Field(name, String(value))
    }

    private static func malformed(_ what: String) -> CacheError {
        CacheError(.invalidField("credentialsFile"), "The credentials file \(what).")
    }
}
