/// A member that can be absent, null or have a value. In a merge patch (RFC 7396) the value of an absent member stays,
/// and null removes it; `decodeIfPresent` would treat null as absent. A response leaves an absent member out.
package enum Omittable<Value> {
    case absent
    case null
    case value(Value)

    /// Null or a value.
    package init(_ value: Value?) { self = value.map(Self.value) ?? .null }

    /// A value, or no member.
    package static func present(_ value: Value?) -> Self { value.map(Self.value) ?? .absent }

    /// The value; nil for null and for an absent member.
    package var value: Value? { if case .value(let value) = self { value } else { nil } }
    /// The new value; nil if the value stays.
    package var update: Value?? { if case .absent = self { nil } else { .some(value) } }

    package func map<Other>(_ convert: (Value) -> Other) -> Omittable<Other> {
        update.map { $0.map { .value(convert($0)) } ?? .null } ?? .absent
    }
}

extension Omittable: Equatable where Value: Equatable {}
extension Omittable: Hashable where Value: Hashable {}
extension Omittable: Sendable where Value: Sendable {}

extension Omittable: Decodable where Value: Decodable {
    package init(from decoder: any Decoder) throws {
        self = try decoder.singleValueContainer().decodeNil() ? .null : .value(Value(from: decoder))
    }
}

extension KeyedDecodingContainer {
    /// Synthesized conformances call this overload, so that an absent member is no error.
    package func decode<Value: Decodable>(_ type: Omittable<Value>.Type, forKey key: Key) throws -> Omittable<Value> {
        contains(key) ? try required(key) : .absent
    }

    private func required<Value: Decodable>(_ key: Key) throws -> Value { try decode(Value.self, forKey: key) }
}

extension Omittable: Encodable where Value: Encodable {
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let value { try container.encode(value) } else { try container.encodeNil() }
    }
}

extension KeyedEncodingContainer {
    /// Synthesized conformances call this overload, so that an absent member is left out.
    package mutating func encode<Value: Encodable>(_ value: Omittable<Value>, forKey key: Key) throws {
        switch value {
        case .absent: break
        case .null: try encodeNil(forKey: key)
        case .value(let value): try encode(value, forKey: key)
        }
    }
}

/// An object with names that no type declares, in their order.
package struct NamedValues<Value> {
    package var members: [(name: String, value: Value)]

    package init(_ members: [(name: String, value: Value)]) { self.members = members }

    /// The value of the first member with this name.
    package subscript(name: String) -> Value? { members.first { $0.name == name }?.value }
}

extension NamedValues: Sendable where Value: Sendable {}

extension NamedValues: Encodable where Value: Encodable {
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: JSONKey.self)
        for member in members { try container.encode(member.value, forKey: JSONKey(member.name)) }
    }
}

extension NamedValues: Decodable where Value: Decodable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: JSONKey.self)
        members = try container.allKeys.map { ($0.stringValue, try container.decode(Value.self, forKey: $0)) }
    }
}

/// The permitted numbers of a ``Limited`` member.
package protocol NumberLimits {
    associatedtype Number: Comparable & Decodable & Sendable
    static var range: ClosedRange<Number> { get }
}

package enum NotNegative: NumberLimits { package static let range = 0...Int64.max }
package enum Positive: NumberLimits { package static let range = 1...Int64.max }
/// At most ten years in seconds, also below.
package enum AnySeconds: NumberLimits { package static let range = 0...315_360_000.0 }
package enum SignedSeconds: NumberLimits { package static let range = -315_360_000...315_360_000.0 }
package enum SecondsAboveZero: NumberLimits { package static let range = 0.001...315_360_000.0 }
package enum SecondsFromOne: NumberLimits { package static let range = 1...315_360_000.0 }

/// A number between limits.
package struct Limited<Limits: NumberLimits>: Decodable, Sendable {
    package let value: Limits.Number

    package init(from decoder: any Decoder) throws {
        value = try Limits.Number(from: decoder)
        let range = Limits.range
        guard range.contains(value) else {
            throw decoder.invalid("The number must lie between \(range.lowerBound) and \(range.upperBound).")
        }
    }
}

extension Limited where Limits.Number == Double {
    package var duration: Duration { .seconds(value) }
}

/// An array of at most `most` values.
package struct List<let most: Int, Element: Decodable & Sendable>: Decodable, Sendable {
    package let values: [Element]

    package init(from decoder: any Decoder) throws {
        guard try decoder.unkeyedContainer().count ?? 0 <= most else {
            throw decoder.invalid("At most \(most) entries are allowed.")
        }
        values = try [Element](from: decoder)
    }
}

/// A type that is coded as a string.
package protocol TextCodable: TextDecodable, Encodable, CustomStringConvertible {}

extension TextCodable {
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

/// A type that is decoded from a string.
package protocol TextDecodable: Decodable {
    /// Nil if the text has another form.
    init?(_ text: String)
    /// The error message for other texts.
    static var expectation: String { get }
}

extension TextDecodable {
    package init(from decoder: any Decoder) throws {
        guard let value = Self(try String(from: decoder)) else { throw decoder.invalid(Self.expectation) }
        self = value
    }
}

/// One of a few names.
package protocol ChoiceCodable: TextDecodable, Encodable, CaseIterable, RawRepresentable<String> {}

extension ChoiceCodable {
    package init?(_ text: String) { self.init(rawValue: text) }
    package static var expectation: String {
        "One of \(allCases.map(\.rawValue).joined(separator: ", ")) is expected here."
    }

    /// Takes precedence over the initializer of `RawRepresentable`, which has another error.
    package init(from decoder: any Decoder) throws {
        guard let value = Self(try String(from: decoder)) else { throw decoder.invalid(Self.expectation) }
        self = value
    }
}

/// The permitted texts of a ``Checked`` member.
package protocol TextRule {
    static var expectation: String { get }
    static func permits(_ text: String) -> Bool
}

package enum NotEmpty: TextRule {
    package static let expectation = "The string must not be empty."
    package static func permits(_ text: String) -> Bool { !text.isEmpty }
}

/// A string with a rule.
package struct Checked<Rule: TextRule>: TextDecodable, Sendable {
    package static var expectation: String { Rule.expectation }
    package let text: String

    package init?(_ text: String) {
        guard Rule.permits(text) else { return nil }
        self.text = text
    }
}

extension JSON: Decodable {
    /// Any value, in ``JSONTreeDecoder`` only.
    package init(from decoder: any Decoder) throws {
        guard let decoder = decoder as? JSONTreeDecoder else { throw decoder.invalid("JSON is expected here.") }
        self = decoder.json
    }
}

extension Timestamp: TextCodable {
    /// The form of RFC 3339.
    package var description: String { RFC3339.format(self) }
    package static let expectation = "An instant like 2026-01-31T12:00:00Z is expected here."

    /// Nil unless the text has the form of RFC 3339.
    package init?(_ text: String) {
        guard let time = RFC3339.parse(text) else { return nil }
        self = time
    }
}
