extension JSON {
    /// The value as compact JSON text, without line breaks.
    package var text: String {
        var text = ""
        append(to: &text)
        return text
    }

    /// Appends the value's text.
    private func append(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .number(let value): text += Self.text(of: value)
        case .string(let value): Self.append(value, to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.append(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.append(member.key, to: &text)
                text += ":"
                member.value.append(to: &text)
            }
            text += "}"
        }
    }

    /// The text of a number. JSON has no infinity and no NaN (RFC 8259 §6); they become `null`. Whole numbers below
    /// 10^15 get no fraction.
    private static func text(of value: Double) -> String {
        guard value.isFinite else { return "null" }
        if value == value.rounded(), abs(value) < 1e15 { return String(Int64(value)) }
        return "\(value)"
    }

    /// Appends a string with quotes. Escapes quotes, backslashes and control characters (RFC 8259 §7).
    ///
    /// - Parameter others: Further characters to escape, below U+10000.
    package static func append(_ value: String, escaping others: Set<Unicode.Scalar> = [], to text: inout String) {
        text += "\""
        defer { text += "\"" }
        let isPlain = value.utf8.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        guard !isPlain || !others.isEmpty else { return text += value }
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.value < 0x20 || others.contains(scalar):
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
}
