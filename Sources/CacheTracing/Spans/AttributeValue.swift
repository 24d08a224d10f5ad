/// The value of an attribute (OpenTelemetry specification, common, "Attribute").
package enum AttributeValue: Hashable, Sendable {
    case string(String)
    case integer(Int64)
    case double(Double)
    case bool(Bool)
    case strings([String])
}

extension AttributeValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension AttributeValue {
    /// The value with texts of at most `limit` characters (OpenTelemetry specification, common, "Attribute Limits").
    func limited(to limit: Int) -> AttributeValue {
        switch self {
        case .string(let text): .string(Self.prefix(text, limit))
        case .strings(let texts): .strings(texts.prefix(limit).map { Self.prefix($0, limit) })
        case .integer, .double, .bool: self
        }
    }

    /// The first `limit` characters; a text with so few bytes is not copied.
    private static func prefix(_ text: String, _ limit: Int) -> String {
        text.utf8.count <= limit ? text : String(String.UnicodeScalarView(text.unicodeScalars.prefix(limit)))
    }
}
