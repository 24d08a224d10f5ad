/// Timestamps of the API and the configuration (RFC 3339).
package enum RFC3339 {
    /// Formats a time as `2026-11-21T08:00:00.123Z`: in UTC, always with milliseconds. Years outside 0 to 9999 are
    /// clamped.
    package static func format(_ time: Timestamp) -> String {
        let seconds = time.seconds
        let date = CivilDate(secondsSince1970: seconds)
        let isShown = date.secondsSince1970 == seconds
        let fraction = isShown ? Int(time.milliseconds - seconds * 1000) : 0
        return String(unsafeUninitializedCapacity: 24) { text in
            var end = 0
            func append(_ value: Int, digits: Int, _ separator: Unicode.Scalar) {
                var rest = value
                for index in (end..<end + digits).reversed() {
                    text[index] = UInt8(ascii: "0") + UInt8(rest % 10)
                    rest /= 10
                }
                text[end + digits] = UInt8(ascii: separator)
                end += digits + 1
            }
            append(date.year, digits: 4, "-")
            append(date.month, digits: 2, "-")
            append(date.day, digits: 2, "T")
            append(date.hour, digits: 2, ":")
            append(date.minute, digits: 2, ":")
            append(date.second, digits: 2, ".")
            append(fraction, digits: 3, "Z")
            return end
        }
    }

    /// Parses a `date-time` (§5.6) with any offset. Nil if the text is invalid, or if the year in UTC is not one of 0
    /// to 9999.
    ///
    /// Digits below milliseconds are dropped.
    package static func parse(_ text: String) -> Timestamp? {
        guard text.utf8.count <= 64 else { return nil }
        var scanner = TextScanner(text)
        guard let year = scanner.number(digits: 4), scanner.take("-"), let month = scanner.number(digits: 2),
            scanner.take("-"), let day = scanner.number(digits: 2), scanner.take(anyOf: "Tt ") != nil,
            let hour = scanner.number(digits: 2), scanner.take(":"), let minute = scanner.number(digits: 2),
            scanner.take(":"), let second = scanner.number(digits: 2)
        else { return nil }
        let date = CivilDate(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
        guard date.isValid, let fraction = milliseconds(&scanner), let offset = offset(&scanner), scanner.isAtEnd
        else { return nil }
        let seconds = date.secondsSince1970 - offset
        guard CivilDate.span.contains(seconds) else { return nil }
        return Timestamp(milliseconds: seconds * 1000 + fraction)
    }

    /// The fraction in milliseconds, 0 if there is none; nil for a point without digits.
    private static func milliseconds(_ scanner: inout TextScanner) -> Int64? {
        guard scanner.take(".") else { return 0 }
        guard let digits = scanner.digits() else { return nil }
        let firstThree = Array(digits.prefix(3)) + Array(repeating: UInt8(ascii: "0"), count: max(0, 3 - digits.count))
        return FieldText.number(firstThree)
    }

    /// The offset from UTC in seconds; nil if it is missing or invalid.
    private static func offset(_ scanner: inout TextScanner) -> Int64? {
        switch scanner.take(anyOf: "Zz+-") {
        case UInt8(ascii: "Z"), UInt8(ascii: "z"): return 0
        case let sign?:
            guard let hours = scanner.number(digits: 2), scanner.take(":"), let minutes = scanner.number(digits: 2),
                hours < 24, minutes < 60
            else { return nil }
            let seconds = Int64(hours * 3600 + minutes * 60)
            return sign == UInt8(ascii: "-") ? -seconds : seconds
        case nil: return nil
        }
    }
}
