extension JSON {
    /// Decodes the value. Throws `.invalidField` with the path of the invalid member, for example `items[2].url`.
    ///
    /// Members that `Value` does not decode are errors, and precede other errors. Null is an error too, unless the type
    /// of the member is ``Omittable``.
    ///
    /// - Parameters:
    ///   - path: The path of this value for errors; empty for a whole document.
    ///   - isStrict: False for stored documents: unknown members are ignored, and null is the same as an absent member.
    package func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, at path: String = "", isStrict: Bool = true
    ) throws(CacheError) -> Value {
        do {
            return try JSONTreeDecoder(json: self, path: path, isStrict: isStrict).value()
        } catch let error as CacheError {
            throw error
        } catch {
            throw CacheError(.invalidField(path.isEmpty ? "(body)" : path), "The value is invalid.", cause: error)
        }
    }

    /// The members that `type` decodes, in this order. All of them must be optional, because an empty object is decoded; and
    /// `type` must decode all of them before it validates any.
    package static func keys(of type: (some Decodable).Type) -> [String] {
        let decoder = JSONTreeDecoder(json: [:], path: "", isStrict: true)
        // The validation of the empty object fails after its members are recorded.
        _ = try? type.init(from: decoder)
        return decoder.consumed.keys
    }
}

extension Decoder {
    /// The error for an invalid value, or for an invalid member of an object.
    package func invalid(_ reason: String, at member: String? = nil) -> CacheError {
        let path = (codingPath.map(\.stringValue) + [member].compactMap(\.self)).joined(separator: ".")
        return .invalid(path.isEmpty ? "(body)" : path, reason)
    }
}

/// Decoder over a JSON value. It records the consumed members of an object.
struct JSONTreeDecoder: Decoder {
    /// The consumed members. A reference, because `Decoder` and its containers are values.
    final class Consumed { var keys: [String] = [] }

    let json: JSON
    /// The path of the value from the top of the document; empty for the document itself.
    let path: String
    let isStrict: Bool
    let consumed = Consumed()
    /// The path as one key.
    var codingPath: [any CodingKey] { path.isEmpty ? [] : [JSONKey(path)] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Decodes the value, and rejects members that are not consumed.
    func value<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        do {
            let value = try Value(from: self)
            if !consumed.keys.isEmpty { try checkMembers(consumed.keys) }
            return value
        } catch {
            // Not all members have been consumed.
            let known = JSON.keys(of: type)
            if !known.isEmpty { try checkMembers(known) }
            throw error
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let list) = json else { throw invalid("A JSON object is expected here.") }
        let members = Dictionary(list.map { ($0.key, $0.value) }) { $1 }
        return KeyedDecodingContainer(JSONMembers(decoder: self, members: members))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let items) = json else { throw invalid("An array is expected here.") }
        return JSONItems(decoder: self, items: items)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    private func checkMembers(_ known: [String]) throws {
        guard isStrict, case .object(let members) = json else { return }
        for member in members where !known.contains(member.key) {
            throw invalid("The field is unknown; check its name.", at: member.key)
        }
    }
}

extension JSONTreeDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool { json == .null }

    func decode(_ type: Bool.Type) throws -> Bool {
        guard case .bool(let truth) = json else { throw invalid("true or false is expected here.") }
        return truth
    }

    /// A string. Rejects NUL characters, because C functions would take one for the end of the text.
    func decode(_ type: String.Type) throws -> String {
        guard case .string(let text) = json else { throw invalid("A string is expected here.") }
        guard !text.utf8.contains(0) else { throw invalid("The text contains a NUL character.") }
        return text
    }

    func decode(_ type: Double.Type) throws -> Double {
        switch json {
        case .integer(let whole): return Double(whole)
        case .number(let real): return real
        default: throw invalid("A number is expected here.")
        }
    }

    func decode(_ type: Float.Type) throws -> Float { Float(try decode(Double.self)) }

    func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type) throws -> Number {
        guard case .integer(let whole) = json, let number = Number(exactly: whole) else {
            throw invalid("A whole number is expected here.")
        }
        return number
    }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try value() }
}

/// The members of an object. The generic methods implement those of the protocol for each type.
private struct JSONMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: JSONTreeDecoder
    let members: [String: JSON]
    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { members.keys.compactMap(Key.init(stringValue:)) }

    /// The value of a member; it counts as consumed.
    private func member(_ key: Key) -> JSONTreeDecoder? {
        let name = key.stringValue
        if !decoder.consumed.keys.contains(name) { decoder.consumed.keys.append(name) }
        let path = decoder.path.isEmpty ? name : "\(decoder.path).\(name)"
        return members[name].map { JSONTreeDecoder(json: $0, path: path, isStrict: decoder.isStrict) }
    }

    private func required(_ key: Key) throws -> JSONTreeDecoder {
        guard let member = member(key) else { throw decoder.invalid("The field is missing.", at: key.stringValue) }
        return member
    }

    func contains(_ key: Key) -> Bool { member(key) != nil }

    func decodeNil(forKey key: Key) throws -> Bool {
        guard let member = member(key), member.json == .null else { return false }
        guard !decoder.isStrict else { throw member.invalid("null is not allowed here; leave the field out.") }
        return true
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try required(key).value() }
    func superDecoder() -> any Decoder { decoder }
    func superDecoder(forKey key: Key) throws -> any Decoder { try required(key) }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try required(key).unkeyedContainer()
    }
    func nestedContainer<Inner>(keyedBy type: Inner.Type, forKey key: Key) throws -> KeyedDecodingContainer<Inner> {
        try required(key).container(keyedBy: type)
    }
}

/// The items of an array.
private struct JSONItems: UnkeyedDecodingContainer {
    let decoder: JSONTreeDecoder
    let items: [JSON]
    var currentIndex = 0
    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { items.count }
    var isAtEnd: Bool { currentIndex == items.count }

    private mutating func next() throws -> JSONTreeDecoder {
        guard !isAtEnd else { throw decoder.invalid("Another entry is expected here.") }
        defer { currentIndex += 1 }
        return JSONTreeDecoder(
            json: items[currentIndex], path: "\(decoder.path)[\(currentIndex)]", isStrict: decoder.isStrict)
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, items[currentIndex] == .null else { return false }
        return try next().decodeNil()
    }
    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try next().value() }
    mutating func superDecoder() throws -> any Decoder { try next() }
    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try next().unkeyedContainer() }
    mutating func nestedContainer<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try next().container(keyedBy: type)
    }
}
