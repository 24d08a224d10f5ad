/// Header fields in their original order. Names are compared without case (RFC 9110 §5.1).
package struct HeaderList: Hashable, Sendable {
    /// One field line.
    package struct Field: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package private(set) var fields: [Field] = []

    package init(_ fields: [Field] = []) { self.fields = fields }

    /// The first value of a field; nil if the field is absent.
    package subscript(name: String) -> String? {
        fields.first { Self.same($0.name, name) }?.value
    }

    /// All values of a field, in order.
    package func values(_ name: String) -> [String] {
        fields.lazy.filter { Self.same($0.name, name) }.map(\.value)
    }

    /// All values of a field as one comma-separated list (RFC 9110 §5.3); nil if the field is absent.
    package func combined(_ name: String) -> String? {
        let all = values(name)
        return all.isEmpty ? nil : all.joined(separator: ", ")
    }

    package mutating func append(_ name: String, _ value: String) { fields.append(Field(name, value)) }

    /// Removes all lines of a field.
    package mutating func remove(_ name: String) { fields.removeAll { Self.same($0.name, name) } }

    /// Removes all lines of the fields with these names.
    package mutating func removeAll(where isRemoved: (String) -> Bool) { fields.removeAll { isRemoved($0.name) } }

    /// Replaces all lines of a field by one, at the end.
    package mutating func set(_ name: String, _ value: String) {
        remove(name)
        append(name, value)
    }

    /// Whether two field names are equal, ignoring the case of ASCII letters.
    package static func same(_ left: String, _ right: String) -> Bool {
        left.utf8.count == right.utf8.count
            && zip(left.utf8, right.utf8).allSatisfy { lowered($0) == lowered($1) }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 0x20 : byte }
}

extension HeaderList: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field($0.0, $0.1) }
    }
}
