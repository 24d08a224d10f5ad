import CacheCore

/// How a setting's value is written: reads it from text and writes it back in the same form.
struct SettingsForm<Value> {
    /// With its article, for "… is not a byte size".
    let name: String
    /// Empty where the name says it all.
    let example: String
    /// Nil where the text is no such value.
    let parse: (String) -> Value?
    let write: (Value) -> String

    /// What to say of a text that is no such value.
    func refusal(of text: String) -> String {
        "\"\(text)\" is not \(name)" + (example.isEmpty ? "" : " (try \(example))")
    }
}

extension SettingsForm {
    /// The same form, or `none` for nil.
    var orNone: SettingsForm<Value?> {
        SettingsForm<Value?>(
            name: "\(name) or none", example: example,
            parse: { text in text == "none" ? .some(nil) : parse(text).map(Optional.some) },
            write: { value in value.map(write) ?? "none" })
    }

    /// The same form, held to what `isAllowed` accepts.
    func limited(name: String, example: String, where isAllowed: @escaping (Value) -> Bool) -> SettingsForm {
        SettingsForm(
            name: name, example: example, parse: { text in parse(text).flatMap { isAllowed($0) ? $0 : nil } },
            write: write)
    }
}

extension SettingsForm<String> {
    /// Any text that is not empty.
    static func text(_ name: String, example: String) -> SettingsForm {
        SettingsForm(name: name, example: example, parse: { $0.isEmpty ? nil : $0 }, write: { $0 })
    }
}

extension SettingsForm<Bool> {
    static var flag: SettingsForm {
        SettingsForm(name: "true or false", example: "true", parse: Self.parseFlag, write: { $0 ? "true" : "false" })
    }

    private static func parseFlag(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "yes", "on", "1": true
        case "false", "no", "off", "0": false
        default: nil
        }
    }
}

extension SettingsForm<Int> {
    static func count(_ range: ClosedRange<Int>, example: Int) -> SettingsForm {
        SettingsForm(
            name: "a whole number from \(range.lowerBound) to \(range.upperBound)", example: String(example),
            parse: { text in Int(text).flatMap { range.contains($0) ? $0 : nil } }, write: { String($0) })
    }

    /// Bytes that have to fit in memory at once.
    static func memory(_ range: ClosedRange<Int>, example: String) -> SettingsForm {
        let size = SettingsForm<Int64>.size
        return SettingsForm(
            name:
                "a byte size from \(ByteSize.format(Int64(range.lowerBound))) to \(ByteSize.format(Int64(range.upperBound)))",
            example: example,
            parse: { text in size.parse(text).flatMap(Int.init(exactly:)).flatMap { range.contains($0) ? $0 : nil } },
            write: { size.write(Int64($0)) })
    }
}

extension SettingsForm<Double> {
    /// A part of the whole, above 0, at most 1.
    static var fraction: SettingsForm {
        SettingsForm(
            name: "a fraction above 0 and up to 1", example: "0.9",
            parse: { text in Double(text).flatMap { $0 > 0 && $0 <= 1 ? $0 : nil } }, write: { String($0) })
    }
}

extension SettingsForm<Double> {
    /// An amount of money.
    static var price: SettingsForm {
        SettingsForm(
            name: "a price", example: "0.05",
            parse: { text in Double(text).flatMap { $0.isFinite && $0 >= 0 ? $0 : nil } }, write: { String($0) })
    }
}

extension SettingsForm<Int64> {
    static var size: SettingsForm {
        SettingsForm(
            name: "a byte size", example: "20GiB", parse: { try? ByteSize.parse($0) },  // nil is the whole answer
            write: { ByteSize.format($0) })
    }

    static func size(atLeast minimum: Int64, example: String) -> SettingsForm {
        size.limited(name: "a byte size of \(ByteSize.format(minimum)) or more", example: example) { $0 >= minimum }
    }

    static func size(_ range: ClosedRange<Int64>, example: String) -> SettingsForm {
        let name = "a byte size from \(ByteSize.format(range.lowerBound)) to \(ByteSize.format(range.upperBound))"
        return size.limited(name: name, example: example) { range.contains($0) }
    }
}

extension SettingsForm<Duration> {
    /// A duration longer than nothing.
    static func duration(example: String) -> SettingsForm {
        SettingsForm(
            name: "a duration", example: example,
            parse: { text in
                guard let duration = try? DurationText.parse(text) else { return nil }  // nil is the whole answer
                return duration > .zero ? duration : nil
            },
            write: { DurationText.format($0) })
    }

}

extension SettingsForm where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the type's own names.
    static var choice: SettingsForm {
        let names = Value.allCases.map(\.rawValue)
        return SettingsForm(
            name: "one of \(names.joined(separator: ", "))", example: "",
            parse: Value.init(rawValue:), write: \.rawValue)
    }
}
