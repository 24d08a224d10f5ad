import CacheCore

/// The attribute list of a tag (RFC 8216 §4.2), with substituted variables.
struct HLSAttributes {
    /// The maximum number of attributes of one tag.
    private static let countLimit = 256

    private var values: [String: String] = [:]
    private let tag: HLSTag

    /// Parses the value of a tag. Of repeated attributes the first one counts. Variables in quoted strings are
    /// substituted. Throws `.malformed` with the name of the tag.
    init(_ tag: HLSTag, variables: inout HLSVariables) throws(MediaError) {
        self.tag = tag
        var rest = tag.value
        while !rest.isEmpty {
            guard let equals = rest.firstIndex(of: UInt8(ascii: "=")), values.count < Self.countLimit else {
                throw tag.malformed
            }
            let name = try MediaText.string(MediaText.trimmed(rest[..<equals]))
            guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: ",")) else { throw tag.malformed }
            rest = rest[(equals + 1)...]
            let value: String
            if rest.first == UInt8(ascii: "\"") {
                rest = rest.dropFirst()
                guard let end = rest.firstIndex(of: UInt8(ascii: "\"")) else { throw tag.malformed }
                value = try variables.substituted(rest[..<end])
                rest = rest[(end + 1)...]
                guard MediaText.trimmed(rest.prefix { $0 != UInt8(ascii: ",") }).isEmpty else { throw tag.malformed }
            } else {
                value = try MediaText.string(MediaText.trimmed(rest.prefix { $0 != UInt8(ascii: ",") }))
            }
            if values[name] == nil { values[name] = value }
            rest = rest[(rest.firstIndex(of: UInt8(ascii: ",")).map { $0 + 1 } ?? rest.endIndex)...]
        }
    }

    /// The value of an attribute without its quotes; nil if it is absent.
    subscript(name: String) -> String? { values[name] }

    /// The value of an attribute that must be present and not empty. Throws `.malformed` with the name of the tag.
    func required(_ name: String) throws(MediaError) -> String {
        guard let value = values[name], !value.isEmpty else { throw tag.malformed }
        return value
    }

    /// The value as a whole number; nil if it is absent. Throws `.malformed` with the name of the tag.
    func number(_ name: String) throws(MediaError) -> Int64? {
        guard let value = values[name] else { return nil }
        guard let number = FieldText.number(value.utf8) else { throw tag.malformed }
        return number
    }
}
