/// Header fields in the order they came, names compared without regard to case (RFC 9110 §5.1).
package struct HeaderList: Hashable, Sendable {
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

    /// The first value of that name.
    package subscript(name: String) -> String? {
        fields.first { Self.same($0.name, name) }?.value
    }

    /// Every value of that name, in order.
    package func values(_ name: String) -> [String] {
        fields.lazy.filter { Self.same($0.name, name) }.map(\.value)
    }

    /// All values of that name as one comma-separated list (RFC 9110 §5.3); nil where there is none.
    package func combined(_ name: String) -> String? {
        let all = values(name)
        return all.isEmpty ? nil : all.joined(separator: ", ")
    }

    package mutating func append(_ name: String, _ value: String) { fields.append(Field(name, value)) }

    package mutating func remove(_ name: String) { fields.removeAll { Self.same($0.name, name) } }

    /// Replaces every field of that name by one.
    package mutating func set(_ name: String, _ value: String) {
        remove(name)
        append(name, value)
    }

    /// Whether two field names are the same: ASCII letters compared without case.
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
