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
            return try JSONTreeDecoder(json: self, parent: path, isStrict: isStrict).value()
        } catch let error as CacheError {
            throw error
        } catch {
            throw CacheError(.invalidField(path.isEmpty ? "(body)" : path), "The value is invalid.", cause: error)
        }
    }

    /// The members that `type` decodes, in this order. All of them must be optional, because an empty object is decoded; and
    /// `type` must decode all of them before it validates any.
    package static func keys(of type: (some Decodable).Type) -> [String] {
        let decoder = JSONTreeDecoder(json: [:], parent: "", isStrict: true)
        // The validation of the empty object fails after its members are recorded.
        _ = try? type.init(from: decoder)
        return decoder.missing
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
///
/// It is made for each value of a document, and documents can have 100,000 of them: texts for errors are built when there
/// is one, and only objects with many members are indexed.
final class JSONTreeDecoder: Decoder {
    /// The place of a value in the array or object around it.
    enum Place {
        case whole
        case member(String)
        case item(Int)
    }

    /// The most members that are searched one by one.
    private static let fewMembers = 16

    let json: JSON
    let isStrict: Bool
    /// The path of the array or object around the value; empty at the top of the document.
    private let parent: String
    private let place: Place
    /// Whether each member of an object is consumed; empty before the first one.
    private var isConsumed: [Bool] = []
    /// The places of the members of an object with many of them.
    private lazy var index = Dictionary(members.enumerated().map { ($1.key, $0) }) { $1 }
    /// The members that were looked for in an empty object.
    fileprivate private(set) var missing: [String] = []

    /// - Parameter parent: The path of the array or object around the value.
    init(json: JSON, parent: String, place: Place = .whole, isStrict: Bool) {
        (self.json, self.parent, self.place, self.isStrict) = (json, parent, place, isStrict)
    }

    /// The path of the value from the top of the document; empty for the document itself.
    var path: String {
        switch place {
        case .whole: parent
        case .member(let name): parent.isEmpty ? name : "\(parent).\(name)"
        case .item(let number): "\(parent)[\(number)]"
        }
    }

    /// The path as one key.
    var codingPath: [any CodingKey] {
        let path = path
        return path.isEmpty ? [] : [JSONKey(path)]
    }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The members of an object, none for other values.
    fileprivate var members: [JSON.Member] { if case .object(let members) = json { members } else { [] } }

    /// Decodes the value, and rejects members that are not consumed.
    func value<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        do {
            let value = try Value(from: self)
            if isStrict, let unknown = isConsumed.firstIndex(of: false) { throw self.unknown(members[unknown].key) }
            return value
        } catch {
            // Not all members have been consumed.
            let known = JSON.keys(of: type)
            if isStrict, !known.isEmpty, let unknown = members.first(where: { !known.contains($0.key) }) {
                throw self.unknown(unknown.key)
            }
            throw error
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object = json else { throw invalid("A JSON object is expected here.") }
        return KeyedDecodingContainer(JSONMembers(decoder: self, path: path))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let items) = json else { throw invalid("An array is expected here.") }
        return JSONItems(decoder: self, path: path, items: items)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    /// The value of a member; it counts as consumed.
    fileprivate func member(_ name: String) -> JSON? {
        guard case .object(let members) = json, !members.isEmpty else {
            if !missing.contains(name) { missing.append(name) }
            return nil
        }
        if isConsumed.isEmpty { isConsumed = Array(repeating: false, count: members.count) }
        let place = members.count > Self.fewMembers ? index[name] : members.lastIndex { $0.key == name }
        guard let place else { return nil }
        isConsumed[place] = true
        return members[place].value
    }

    private func unknown(_ member: String) -> CacheError {
        invalid("The field is unknown; check its name.", at: member)
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
    /// The path of the object.
    let path: String
    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { decoder.members.compactMap { Key(stringValue: $0.key) } }

    /// The decoder of a member.
    private func inner(_ json: JSON, _ name: String) -> JSONTreeDecoder {
        JSONTreeDecoder(json: json, parent: path, place: .member(name), isStrict: decoder.isStrict)
    }

    private func required(_ key: Key) throws -> JSONTreeDecoder {
        let name = key.stringValue
        guard let json = decoder.member(name) else { throw decoder.invalid("The field is missing.", at: name) }
        return inner(json, name)
    }

    func contains(_ key: Key) -> Bool { decoder.member(key.stringValue) != nil }

    func decodeNil(forKey key: Key) throws -> Bool {
        let name = key.stringValue
        guard let json = decoder.member(name), json == .null else { return false }
        guard !decoder.isStrict else {
            throw inner(json, name).invalid("null is not allowed here; leave the field out.")
        }
        return true
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try required(key).value() }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        let name = key.stringValue
        guard let json = decoder.member(name), try json != .null || !decodeNil(forKey: key) else { return nil }
        return try inner(json, name).value(type)
    }

    /// The overload for texts; the protocol's implementation would look the member up three times.
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        let name = key.stringValue
        guard let json = decoder.member(name), try json != .null || !decodeNil(forKey: key) else { return nil }
        return try inner(json, name).decode(type)
    }

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
    /// The path of the array.
    let path: String
    let items: [JSON]
    var currentIndex = 0
    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { items.count }
    var isAtEnd: Bool { currentIndex == items.count }

    private mutating func next() throws -> JSONTreeDecoder {
        guard !isAtEnd else { throw decoder.invalid("Another entry is expected here.") }
        defer { currentIndex += 1 }
        return JSONTreeDecoder(
            json: items[currentIndex], parent: path, place: .item(currentIndex), isStrict: decoder.isStrict)
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
