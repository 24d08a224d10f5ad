extension JSON {
    /// The value as compact JSON text, without line breaks.
    package var text: String {
        var writer = JSONTextWriter()
        write(to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private func write(to writer: inout JSONTextWriter) {
        let level = writer.level
        switch self {
        case .null: writer.null()
        case .bool(let value): writer.bool(value)
        case .integer(let value): writer.integer(value)
        case .number(let value): writer.number(value)
        case .string(let value): writer.text(value)
        case .array(let values):
            writer.openArray()
            for value in values {
                writer.item(at: level + 1)
                value.write(to: &writer)
            }
            writer.close(to: level)
        case .object(let members):
            writer.openObject()
            for member in members {
                writer.key(member.key, at: level + 1)
                member.value.write(to: &writer)
            }
            writer.close(to: level)
        }
    }
}

extension JSON: Encodable {
    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .array(let values):
            var container = encoder.unkeyedContainer()
            for value in values { try container.encode(value) }
        case .object(let members):
            var container = encoder.container(keyedBy: JSONKey.self)
            for member in members { try container.encode(member.value, forKey: JSONKey(member.key)) }
        default:
            var container = encoder.singleValueContainer()
            switch self {
            case .bool(let value): try container.encode(value)
            case .integer(let value): try container.encode(value)
            case .number(let value): try container.encode(value)
            case .string(let value): try container.encode(value)
            default: try container.encodeNil()
            }
        }
    }
}

/// The name of a member that no type declares.
package struct JSONKey: CodingKey {
    package let stringValue: String
    package var intValue: Int? { nil }

    package init(_ name: String) { stringValue = name }
    package init(stringValue: String) { self.init(stringValue) }
    package init?(intValue: Int) { nil }
}
