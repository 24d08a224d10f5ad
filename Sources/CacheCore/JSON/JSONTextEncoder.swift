extension Encodable {
    /// The value as compact JSON text, without line breaks. A member with the value nil is written as null; an
    /// ``Omittable`` that is absent is left out.
    package var jsonText: String { String(decoding: jsonBytes, as: UTF8.self) }

    /// ``jsonText`` in UTF-8.
    package var jsonBytes: [UInt8] {
        let encoder = JSONTextEncoder()
        // Synthesized conformances throw errors of the encoder only, and this one has none.
        guard (try? encoder.encode(self, inside: 0)) != nil else { return Array("null".utf8) }
        return encoder.writer.bytes
    }
}

/// Encoder that writes JSON text directly, without a tree of values. Several containers of one value add their members
/// to the same object.
final class JSONTextEncoder: Encoder {
    fileprivate(set) var writer = JSONTextWriter()
    /// The number of open objects and arrays around the value that is encoded.
    private var level = 0

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Encodes a value inside `level` objects and arrays.
    fileprivate func encode(_ value: some Encodable, inside level: Int) throws {
        let (outer, start) = (self.level, writer.bytes.count)
        self.level = level
        try value.encode(to: self)
        // A value without members requests no container.
        if writer.bytes.count == start { writer.openObject() }
        writer.close(to: level)
        self.level = outer
    }

    /// Opens an object as the current value, or continues the one that this value has opened.
    fileprivate func object<Key: CodingKey>(_ type: Key.Type, inside level: Int) -> KeyedEncodingContainer<Key> {
        if writer.level > level { writer.close(to: level + 1) } else { writer.openObject() }
        return KeyedEncodingContainer(JSONMemberWriter(encoder: self, level: level + 1))
    }

    fileprivate func array(inside level: Int) -> any UnkeyedEncodingContainer {
        if writer.level > level { writer.close(to: level + 1) } else { writer.openArray() }
        return JSONItemWriter(encoder: self, level: level + 1)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        object(type, inside: level)
    }
    func unkeyedContainer() -> any UnkeyedEncodingContainer { array(inside: level) }
    func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension JSONTextEncoder: SingleValueEncodingContainer {
    func encodeNil() { writer.null() }
    func encode(_ value: Bool) { writer.bool(value) }
    func encode(_ value: String) { writer.text(value) }
    func encode(_ value: Double) { writer.number(value) }
    func encode(_ value: Float) { writer.number(Double(value)) }
    func encode(_ value: some FixedWidthInteger & Encodable) { writer.integer(value) }
    func encode(_ value: some Encodable) throws { try encode(value, inside: level) }
}

/// Writes the members of an object. The generic methods implement those of the protocol for all other types.
private struct JSONMemberWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: JSONTextEncoder
    let level: Int
    var codingPath: [any CodingKey] { [] }

    /// Writes the key, and then the value by `write`.
    @inline(__always)
    private func member(_ key: Key, _ write: (inout JSONTextWriter) -> Void) {
        let key = key.stringValue
        // One access to the writer for both.
        func both(_ writer: inout JSONTextWriter) {
            writer.key(key, at: level)
            write(&writer)
        }
        both(&encoder.writer)
    }

    func encodeNil(forKey key: Key) { member(key) { $0.null() } }
    func encode(_ value: Bool, forKey key: Key) { member(key) { $0.bool(value) } }
    func encode(_ value: String, forKey key: Key) { member(key) { $0.text(value) } }
    func encode(_ value: Double, forKey key: Key) { member(key) { $0.number(value) } }
    func encode(_ value: some FixedWidthInteger & Encodable, forKey key: Key) { member(key) { $0.integer(value) } }
    func encode(_ value: some Encodable, forKey key: Key) throws {
        member(key) { _ in }
        try encoder.encode(value, inside: level)
    }

    // A generic method would not replace the methods of the protocol for these types; they leave nil out.
    func encodeIfPresent(_ value: Bool?, forKey key: Key) { optional(value, key) { $0.bool($1) } }
    func encodeIfPresent(_ value: String?, forKey key: Key) { optional(value, key) { $0.text($1) } }
    func encodeIfPresent(_ value: Double?, forKey key: Key) { optional(value, key) { $0.number($1) } }
    func encodeIfPresent(_ value: Float?, forKey key: Key) { optional(value, key) { $0.number(Double($1)) } }
    func encodeIfPresent(_ value: Int?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: Int8?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: Int16?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: Int32?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: UInt?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: UInt8?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: UInt16?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: UInt32?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent(_ value: UInt64?, forKey key: Key) { optional(value, key) { $0.integer($1) } }
    func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { encodeNil(forKey: key) }
    }

    @inline(__always)
    private func optional<Value>(_ value: Value?, _ key: Key, _ write: (inout JSONTextWriter, Value) -> Void) {
        member(key) { writer in
            if let value { write(&writer, value) } else { writer.null() }
        }
    }

    func superEncoder() -> any Encoder { encoder }
    func superEncoder(forKey key: Key) -> any Encoder { begun(key) }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { begun(key).array(inside: level) }
    func nestedContainer<Inner>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedEncodingContainer<Inner> {
        begun(key).object(type, inside: level)
    }

    private func begun(_ key: Key) -> JSONTextEncoder {
        member(key) { _ in }
        return encoder
    }
}

/// Writes the items of an array.
private struct JSONItemWriter: UnkeyedEncodingContainer {
    let encoder: JSONTextEncoder
    let level: Int
    private(set) var count = 0
    var codingPath: [any CodingKey] { [] }

    init(encoder: JSONTextEncoder, level: Int) { (self.encoder, self.level) = (encoder, level) }

    private mutating func begin() -> JSONTextEncoder {
        encoder.writer.item(at: level)
        count += 1
        return encoder
    }

    mutating func encodeNil() { begin().writer.null() }
    mutating func encode(_ value: some Encodable) throws { try begin().encode(value, inside: level) }
    mutating func superEncoder() -> any Encoder { begin() }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { begin().array(inside: level) }
    mutating func nestedContainer<Inner>(keyedBy type: Inner.Type) -> KeyedEncodingContainer<Inner> {
        begin().object(type, inside: level)
    }
}
