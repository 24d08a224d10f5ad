/// A JSON value (RFC 8259); objects keep the order of their members.
package enum JSON: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        package var key: String
        package var value: JSON

        package init(_ key: String, _ value: JSON) {
            self.key = key
            self.value = value
        }
    }

    case null
    case bool(Bool)
    /// Whole numbers, exact.
    case integer(Int64)
    /// All other numbers; never infinite, never NaN.
    case number(Double)
    case string(String)
    case array([JSON])
    case object([Member])

    /// The first member of that name; nil where there is none, or this is no object.
    package subscript(key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key == key }?.value
    }

    /// `null` where there is no value.
    package static func optional<Value>(_ value: Value?, _ json: (Value) -> JSON) -> JSON {
        value.map(json) ?? .null
    }
}

extension JSON: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { Member($0.0, $0.1) })
    }
}

extension JSON: ExpressibleByArrayLiteral {
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }
}

extension JSON: ExpressibleByStringLiteral {
    package init(stringLiteral value: String) { self = .string(value) }
}

extension JSON: ExpressibleByIntegerLiteral {
    package init(integerLiteral value: Int64) { self = .integer(value) }
}
