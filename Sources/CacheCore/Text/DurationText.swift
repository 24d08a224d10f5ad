/// Durations as text with a unit: `250ms`, `5s`, `10m`, `1h`, `2d`.
package enum DurationText {
    /// Units in descending order.
    private static let units: [(name: String, milliseconds: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]

    /// Parses a whole number with its unit. Throws `.invalidField(field)`.
    package static func parse(_ text: String, field: String = "duration") throws(CacheError) -> Duration {
        let digits = text.utf8.prefix(while: FieldText.isDigit)
        let unit = text[digits.endIndex...]
        guard let count = FieldText.number(digits), let factor = units.first(where: { $0.name == unit })?.milliseconds
        else { throw .invalid(field, "\(field) must be a duration such as 250ms, 5s, 10m, 1h or 2d.") }
        let (milliseconds, overflow) = count.multipliedReportingOverflow(by: factor)
        guard !overflow else { throw .invalid(field, "\(field) must be less than 2^63 milliseconds.") }
        return .milliseconds(milliseconds)
    }

    /// The shortest exact text in one unit; fractions of a millisecond are dropped.
    package static func format(_ duration: Duration) -> String {
        let milliseconds = duration.wholeMilliseconds
        guard milliseconds != 0, let unit = units.first(where: { milliseconds % $0.milliseconds == 0 }) else {
            return "0s"
        }
        return "\(milliseconds / unit.milliseconds)\(unit.name)"
    }
}
