/// A time of day in a zone of the tz database, such as `02:30 Europe/Berlin`.
package struct LocalTime: Hashable, Sendable {
    /// Minutes since midnight.
    package let minutes: Int
    package let zone: String

    /// Midnight in UTC.
    package static let midnight = LocalTime(minutes: 0, zone: "UTC")

    private init(minutes: Int, zone: String) { (self.minutes, self.zone) = (minutes, zone) }

    /// The text in the form of the API.
    package var text: String { "\(Self.text(ofMinutes: minutes)) \(zone)" }

    /// Throws `.invalidField(field)` for another form, or the name of a zone that cannot exist.
    package init(_ text: String, field: String = "at") throws(CacheError) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, let minutes = Self.minutes(words[0]), minutes < Self.day else {
            throw .invalid(field, "A time such as 02:30 Europe/Berlin is expected here.")
        }
        self.init(minutes: minutes, zone: String(words[1]))
        guard Self.isZoneName(zone) else { throw Self.unknownZone(zone, field) }
    }

    /// The instant on a local day, in seconds since 1970. A time that clocks show twice is the first one, and one that they
    /// skip is the instant of the change.
    func instant(onDay day: Int64, in rules: ZoneRules) -> Int64 {
        rules.instants(ofLocal: day * 86_400 + Int64(minutes) * 60).first
    }

    // MARK: Text

    /// Minutes of a day.
    static let day = 24 * 60

    /// Minutes of `hh:mm`, up to 24:00.
    static func minutes(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { part in
            part.utf8.count == 2 && part.utf8.allSatisfy(FieldText.isDigit) ? Int(part) : nil
        }
        guard parts.count == 2, let hour = parts[0], let minute = parts[1], minute < 60 else { return nil }
        return hour * 60 + minute <= day ? hour * 60 + minute : nil
    }

    static func text(ofMinutes minutes: Int) -> String {
        "\(FieldText.padded(minutes / 60, 2)):\(FieldText.padded(minutes % 60, 2))"
    }

    /// Whether a text can be the name of a file of the tz database.
    static func isZoneName(_ name: String) -> Bool {
        let marks = "/_+-".utf8
        return (1...64).contains(name.utf8.count) && name.utf8.first.map(FieldText.isLetter) == true
            && name.utf8.allSatisfy { FieldText.isLetter($0) || FieldText.isDigit($0) || marks.contains($0) }
    }

    /// The error of a zone that the tz database does not have.
    package static func unknownZone(_ zone: String, _ field: String) -> CacheError {
        .invalid(
            field,
            "The time zone \(String(zone.prefix(64))) is unknown: use a name of the tz database, such as Europe/Berlin or UTC."
        )
    }
}
