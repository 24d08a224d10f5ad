/// A JSON value (RFC 8259). Objects keep the order of their members.
package enum JSON: Hashable, Sendable {
    /// A member of an object.
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
    /// A whole number in the range of `Int64`, exact.
    case integer(Int64)
    /// Any other number. The parser makes neither infinity nor NaN; ``text`` writes them as null.
    case number(Double)
    case string(String)
    case array([JSON])
    case object([Member])

    /// The value of the first member with this name; nil without such a member or if this is not an object.
    package subscript(key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key == key }?.value
    }

    /// The text of a string; nil for other values.
    package var string: String? { if case .string(let text) = self { text } else { nil } }

    /// An object without the members that are nil.
    package init(present members: KeyValuePairs<String, JSON?>) {
        self = .object(members.compactMap { key, value in value.map { Member(key, $0) } })
    }

    /// An object without its members with the value null; other values unchanged.
    package var withoutNullMembers: JSON {
        guard case .object(let members) = self else { return self }
        return .object(members.filter { $0.value != .null })
    }

    /// Converts an optional value: nil becomes `null`.
    package static func optional<Value>(_ value: Value?, _ json: (Value) -> JSON) -> JSON {
        value.map(json) ?? .null
    }

    /// A duration in seconds, rounded to microseconds.
    package static func seconds(_ duration: Duration) -> JSON {
        .number((duration.inSeconds * 1e6).rounded() / 1e6)
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
