import CacheCore

/// Text format of a setting's value: parser and inverse output.
struct SettingCodec<Value> {
    /// The format with its article, for "… is not a byte size".
    let name: String
    /// A valid text; empty if the name is sufficient.
    let example: String
    /// Nil if the text is invalid.
    let parse: (String) -> Value?
    /// Inverse of `parse`.
    let write: (Value) -> String

    /// The error message for an invalid text.
    func refusal(of text: String) -> String {
        "\"\(text)\" is not \(name)" + (example.isEmpty ? "" : " (try \(example))")
    }
}

extension SettingCodec {
    /// The same format with `none` for nil.
    var orNone: SettingCodec<Value?> {
        SettingCodec<Value?>(
            name: "\(name) or none", example: example,
            parse: { text in text == "none" ? .some(nil) : parse(text).map(Optional.some) },
            write: { value in value.map(write) ?? "none" })
    }

    /// The same format, restricted to values that `isAllowed` accepts.
    func limited(name: String, example: String, where isAllowed: @escaping (Value) -> Bool) -> SettingCodec {
        SettingCodec(
            name: name, example: example, parse: { text in parse(text).flatMap { isAllowed($0) ? $0 : nil } },
            write: write)
    }
}

extension SettingCodec<String> {
    /// Any non-empty text.
    static func text(_ name: String, example: String) -> SettingCodec {
        SettingCodec(name: name, example: example, parse: { $0.isEmpty ? nil : $0 }, write: { $0 })
    }
}

extension SettingCodec<Bool> {
    /// A Boolean; also accepts yes, no, on, off, 1 and 0.
    static var flag: SettingCodec {
        SettingCodec(name: "true or false", example: "true", parse: Self.parseFlag, write: { $0 ? "true" : "false" })
    }

    private static func parseFlag(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "yes", "on", "1": true
        case "false", "no", "off", "0": false
        default: nil
        }
    }
}

extension SettingCodec<Int> {
    /// An integer in `range`.
    static func count(_ range: ClosedRange<Int>, example: Int) -> SettingCodec {
        SettingCodec(
            name: "a whole number from \(range.lowerBound) to \(range.upperBound)", example: String(example),
            parse: { text in Int(text).flatMap { range.contains($0) ? $0 : nil } }, write: { String($0) })
    }

    /// A byte size in `range` that must fit into memory.
    static func memory(_ range: ClosedRange<Int>, example: String) -> SettingCodec {
        let size = SettingCodec<Int64>.size
        return SettingCodec(
            name:
                "a byte size from \(ByteSize.format(Int64(range.lowerBound))) to \(ByteSize.format(Int64(range.upperBound)))",
            example: example,
            parse: { text in size.parse(text).flatMap(Int.init(exactly:)).flatMap { range.contains($0) ? $0 : nil } },
            write: { size.write(Int64($0)) })
    }
}

extension SettingCodec<Double> {
    /// A fraction above 0 and at most 1.
    static var fraction: SettingCodec {
        SettingCodec(
            name: "a fraction above 0 and up to 1", example: "0.9",
            parse: { text in Double(text).flatMap { $0 > 0 && $0 <= 1 ? $0 : nil } }, write: { String($0) })
    }
}

extension SettingCodec<Double> {
    /// A price per unit; not negative.
    static var price: SettingCodec {
        SettingCodec(
            name: "a price", example: "0.05",
            parse: { text in Double(text).flatMap { $0.isFinite && $0 >= 0 ? $0 : nil } }, write: { String($0) })
    }
}

extension SettingCodec<Int64> {
    /// A byte size such as `20GiB`; not negative.
    static var size: SettingCodec {
        SettingCodec(
            name: "a byte size", example: "20GiB", parse: { try? ByteSize.parse($0) },  // the caller reports the text
            write: { ByteSize.format($0) })
    }

    /// A byte size with a minimum.
    static func size(atLeast minimum: Int64, example: String) -> SettingCodec {
        size.limited(name: "a byte size of \(ByteSize.format(minimum)) or more", example: example) { $0 >= minimum }
    }

    /// A byte size in `range`.
    static func size(_ range: ClosedRange<Int64>, example: String) -> SettingCodec {
        let name = "a byte size from \(ByteSize.format(range.lowerBound)) to \(ByteSize.format(range.upperBound))"
        return size.limited(name: name, example: example) { range.contains($0) }
    }
}

extension SettingCodec<Duration> {
    /// A positive duration.
    static func duration(example: String) -> SettingCodec {
        SettingCodec(
            name: "a duration", example: example,
            parse: { text in
                guard let duration = try? DurationText.parse(text) else { return nil }  // the caller reports the text
                return duration > .zero ? duration : nil
            },
            write: { DurationText.format($0) })
    }

}

extension SettingCodec where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the cases of the type, by name.
    static var choice: SettingCodec {
        let names = Value.allCases.map(\.rawValue)
        return SettingCodec(
            name: "one of \(names.joined(separator: ", "))", example: "",
            parse: Value.init(rawValue:), write: \.rawValue)
    }
}
