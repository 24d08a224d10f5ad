import Foundation

/// Figures for people: sizes, rates, durations, counts and shares, with three significant digits at most.
enum FigureText {
    /// Binary units from 1 KiB on.
    private static let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

    /// A size such as `512 B`, `1.5 MiB` or `120 GiB`.
    static func bytes(_ count: Int64) -> String { size(Double(count)) }

    /// A rate such as `4.1 MiB/s`.
    static func rate(_ bytesPerSecond: Double) -> String { size(bytesPerSecond) + "/s" }

    /// A whole number with separators, such as `1,234,567`.
    static func count(_ number: some BinaryInteger) -> String {
        let digits = Array(String(number.magnitude))
        let groups = stride(from: digits.count, to: 0, by: -3).map { String(digits[max(0, $0 - 3)..<$0]) }
        return (number < 0 ? "-" : "") + groups.reversed().joined(separator: ",")
    }

    /// A number with its noun in the singular or plural, such as `1 item` or `2,000 items`.
    static func count(_ number: some BinaryInteger, _ noun: String) -> String {
        "\(count(number)) \(noun)\(number == 1 ? "" : "s")"
    }

    /// A share such as `97.3 %`; nil: `–`.
    static func share(_ ratio: Double?) -> String {
        guard let ratio, ratio.isFinite else { return "–" }
        return decimal(100 * ratio, 1) + " %"
    }

    /// A short time such as `0.4 ms`, `120 ms` or `1.2 s`.
    static func latency(_ seconds: Double) -> String {
        let milliseconds = seconds * 1000
        if milliseconds < 9.95 { return decimal(milliseconds, 1) + " ms" }
        if milliseconds < 999.5 { return decimal(milliseconds, 0) + " ms" }
        return decimal(seconds, seconds < 9.95 ? 1 : 0) + " s"
    }

    /// A time span in its two largest units, such as `42 s`, `3 min 20 s` or `2 h 5 min`; fractions are rounded up.
    static func span(_ seconds: Double) -> String {
        let parts = parts(of: seconds).prefix(2).filter { $0.count > 0 }
        return parts.isEmpty ? "0 s" : parts.map { "\($0.count) \($0.unit)" }.joined(separator: " ")
    }

    /// A time in the past in its largest unit, such as `3 min ago`.
    static func age(_ seconds: Double) -> String {
        guard let part = parts(of: seconds).first, part.count > 0 else { return "now" }
        return "\(part.count) \(part.unit) ago"
    }

    /// Days, hours, minutes and seconds, from the first unit that is not zero.
    private static func parts(of seconds: Double) -> ArraySlice<(count: Int64, unit: String)> {
        let whole = Int64(min(max(seconds, 0), 1e15).rounded(.up))
        let parts: [(count: Int64, unit: String)] = [
            (whole / 86_400, "d"), (whole / 3600 % 24, "h"), (whole / 60 % 60, "min"), (whole % 60, "s"),
        ]
        return parts.drop { $0.count == 0 }
    }

    private static func size(_ count: Double) -> String {
        guard count >= 1023.5 else { return decimal(count, 0) + " B" }
        var (value, unit) = (count / 1024, 0)
        // A value that would be rounded to 1024 is written in the next unit.
        while value >= 1023.5, unit < units.count - 1 { (value, unit) = (value / 1024, unit + 1) }
        return decimal(value, value < 99.95 ? 1 : 0) + " " + units[unit]
    }

    private static func decimal(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }
}
