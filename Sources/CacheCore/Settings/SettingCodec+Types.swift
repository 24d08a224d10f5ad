extension SettingCodec<String> {
    /// Any non-empty text without NUL characters, which C functions take for the end.
    package static func text(_ name: String, example: String) -> SettingCodec {
        SettingCodec(
            name, example: example, schema: ["type": "string", "minLength": 1], parse: { $0 }, write: { $0 }
        ).limited { !$0.isEmpty && !$0.utf8.contains(0) }
    }

    /// A path; not checked.
    package static var path: SettingCodec { .text("a path", example: "/var/lib/larder") }
}

extension SettingCodec<Bool> {
    /// A Boolean; configurations also accept yes, no, on, off, 1 and 0.
    package static var flag: SettingCodec {
        SettingCodec(
            "true or false", example: "true", schema: ["type": "boolean"],
            parse: { text in
                switch text.lowercased() {
                case "true", "yes", "on", "1": true
                case "false", "no", "off", "0": false
                default: nil
                }
            }, write: { $0 ? "true" : "false" },
            decode: { json in if case .bool(let isTrue) = json { isTrue } else { nil } }, encode: JSON.bool)
    }
}

extension SettingCodec<Int> {
    /// An integer in `range`.
    package static func count(_ range: ClosedRange<Int>, example: Int) -> SettingCodec {
        integer("a whole number from \(range.lowerBound) to \(range.upperBound)", "\(example)") {
            Int($0)
        } write: {
            String($0)
        }.within(range)
    }

    /// A byte size in `range` that must fit into memory.
    package static func memory(_ range: ClosedRange<Int>, example: String) -> SettingCodec {
        let limits = ByteSize.format(Int64(range.lowerBound)) + " to " + ByteSize.format(Int64(range.upperBound))
        return integer("a byte size from \(limits)", example, parse: bytes) {
            ByteSize.format(Int64($0))
        }.within(range)
    }
}

extension SettingCodec<Int64> {
    /// A byte size such as `20GiB`, from `least` bytes on.
    package static func size(atLeast least: Int64 = 0, example: String = "20GiB") -> SettingCodec {
        let name = least == 0 ? "a byte size" : "a byte size of \(ByteSize.format(least)) or more"
        return size(name, least...Int64.max, example, "a number of bytes from \(least) on")
    }

    /// A byte size in `range`.
    package static func size(_ range: ClosedRange<Int64>, example: String) -> SettingCodec {
        let name = "a byte size from \(ByteSize.format(range.lowerBound)) to \(ByteSize.format(range.upperBound))"
        return size(name, range, example, "a number of bytes from \(range.lowerBound) to \(range.upperBound)")
    }

    private static func size(
        _ name: String, _ range: ClosedRange<Int64>, _ example: String, _ documentName: String
    ) -> SettingCodec {
        var codec = integer(name, example, parse: bytes) { ByteSize.format($0) }.within(range)
        codec.documentName = documentName
        codec.unit = "Bytes"
        return codec
    }

    /// The same type, for which configurations need at least `least` bytes: smaller numbers mostly lack their unit.
    func written(atLeast least: Int64) -> SettingCodec {
        var codec = self
        codec.name = "a byte size of \(ByteSize.format(least)) or more"
        codec.parse = { [parse] text in parse(text).flatMap { $0 < least ? nil : $0 } }
        return codec
    }

    /// A rate in bytes per second; settings have the unit in their names.
    package static var rate: SettingCodec {
        var codec = size(atLeast: 1, example: "50MiB").written(atLeast: 1024)
        codec.unit = ""
        return codec
    }
}

extension SettingCodec where Value: FixedWidthInteger & Sendable {
    /// An integer with a form of its own in configurations.
    fileprivate static func integer(
        _ name: String, _ example: String, parse: @escaping @Sendable (String) -> Value?,
        write: @escaping @Sendable (Value) -> String
    ) -> SettingCodec {
        SettingCodec(
            name, example: example, schema: ["type": "integer", "format": "int64"], parse: parse, write: write,
            decode: { json in if case .integer(let number) = json { Value(exactly: number) } else { nil } },
            encode: { .integer(Int64($0)) })
    }

    /// Restricts the value to `range`. Upper limits that no number exceeds are not part of the schema.
    fileprivate func within(_ range: ClosedRange<Value>) -> SettingCodec {
        var schema: JSON = ["minimum": .integer(Int64(range.lowerBound))]
        if range.upperBound != .max { schema = schema.merged(with: ["maximum": .integer(Int64(range.upperBound))]) }
        return limited(schema: schema) { range.contains($0) }
    }

    /// The number of bytes of a size such as `20GiB`.
    fileprivate static func bytes(_ text: String) -> Value? {
        (try? ByteSize.parse(text)).flatMap { Value(exactly: $0) }  // the caller reports the text
    }
}

extension SettingCodec<Double> {
    /// A fraction above 0 and at most 1.
    package static var fraction: SettingCodec {
        number("a fraction above 0 and up to 1", example: "0.9", schema: ["exclusiveMinimum": 0, "maximum": 1]) {
            $0 > 0 && $0 <= 1
        }
    }

    /// A share from 0 to 1.
    package static var share: SettingCodec {
        number("a share from 0 to 1", example: "0.01", schema: ["minimum": 0, "maximum": 1]) { $0 >= 0 && $0 <= 1 }
    }

    /// A price per unit; not negative.
    package static var price: SettingCodec {
        number("a price", example: "0.05", schema: ["minimum": 0]) { $0.isFinite && $0 >= 0 }
    }

    private static func number(
        _ name: String, example: String, schema: JSON, where isPermitted: @escaping @Sendable (Double) -> Bool
    ) -> SettingCodec {
        SettingCodec(
            name, example: example, schema: ["type": "number"], parse: Double.init, write: { String($0) },
            decode: \.double, encode: JSON.number
        ).limited(schema: schema, where: isPermitted)
    }
}

extension SettingCodec<Duration> {
    /// A duration up to `most`, without zero unless `allowsZero`. In JSON documents: a number of seconds.
    package static func duration(
        _ name: String = "a duration", upTo most: Duration = OriginSettings.maxLifetime, allowsZero: Bool = false,
        example: String
    ) -> SettingCodec {
        let (least, seconds) = (allowsZero ? "from 0" : "above 0", Int64(most.inSeconds))
        let schema: JSON = [allowsZero ? "minimum" : "exclusiveMinimum": 0, "maximum": .integer(seconds)]
        var codec = SettingCodec(
            name, example: example, documentName: "a number of seconds \(least) to \(seconds)",
            schema: ["type": "number"],
            parse: { try? DurationText.parse($0) },  // the caller reports the text
            write: { DurationText.format($0) }, decode: Self.seconds, encode: JSON.seconds
        ).limited(schema: schema) { $0 <= most && (allowsZero ? $0 >= .zero : $0 > .zero) }
        codec.unit = "Seconds"
        return codec
    }

    /// A lifetime up to the maximum of an HTTP delta-seconds value (RFC 9111 §1.2.2).
    static func lifetime(allowsZero: Bool = false, example: String) -> SettingCodec {
        duration("a duration up to 2^31 seconds", allowsZero: allowsZero, example: example)
    }

    /// The duration of a number of seconds, rounded to microseconds.
    private static func seconds(_ json: JSON) -> Duration? {
        guard let seconds = json.double, abs(seconds) < 1e12 else { return nil }
        return .microseconds(Int64((seconds * 1e6).rounded()))
    }
}

extension SettingCodec where Value: RawRepresentable & CaseIterable & SendableMetatype, Value.RawValue == String {
    /// One of the cases of the type, by name.
    package static var choice: SettingCodec {
        let names = Value.allCases.map(\.rawValue)
        return SettingCodec(
            "one of \(names.joined(separator: ", "))",
            schema: ["type": "string", "enum": .array(names.map(JSON.string))],
            parse: { Value(rawValue: $0) }, write: \.rawValue)
    }
}

extension JSON {
    /// The value of a number; nil for other values.
    fileprivate var double: Double? {
        switch self {
        case .integer(let whole): Double(whole)
        case .number(let number): number
        default: nil
        }
    }
}
