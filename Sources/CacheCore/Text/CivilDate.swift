/// A date and a time of day in the proleptic Gregorian calendar, in UTC.
struct CivilDate: Hashable {
    var year: Int
    /// 1 to 12.
    var month: Int
    /// 1 to 31.
    var day: Int
    var hour: Int
    var minute: Int
    /// 0 to 60; 60 is a leap second.
    var second: Int

    /// The first and the last second of the years 0 to 9999, since 1970-01-01T00:00:00Z.
    static let span: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    /// Whether the day exists in its month and the time of day is valid.
    var isValid: Bool {
        (0...9999).contains(year) && (1...12).contains(month) && (1...Self.days(in: month, of: year)).contains(day)
            && (0...23).contains(hour) && (0...59).contains(minute) && (0...60).contains(second)
    }

    /// Whole seconds since 1970-01-01T00:00:00Z. The date must be valid.
    var secondsSince1970: Int64 {
        // Years begin in March, so that the leap day is the last day of a year. Source: H. Hinnant, "chrono-compatible
        // low-level date algorithms", days_from_civil.
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = era * 146_097 + dayOfEra - 719_468
        return Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }

    init(year: Int, month: Int, day: Int, hour: Int = 0, minute: Int = 0, second: Int = 0) {
        self.year = year
        self.month = month
        self.day = day
        self.hour = hour
        self.minute = minute
        self.second = second
    }

    /// The date of a moment, by the inverse algorithm (civil_from_days). Moments outside the years 0 to 9999 are
    /// clamped.
    init(secondsSince1970 seconds: Int64) {
        let clamped = min(max(seconds, Self.span.lowerBound), Self.span.upperBound)
        let days = (clamped >= 0 ? clamped : clamped - 86_399) / 86_400
        let rest = Int(clamped - days * 86_400)
        let shifted = Int(days) + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        self.init(
            year: yearOfEra + era * 400 + (month >= 10 ? 1 : 0), month: month < 10 ? month + 3 : month - 9,
            day: dayOfYear - (153 * month + 2) / 5 + 1, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60)
    }

    /// The day of the week; 0 for Sunday.
    static func weekday(secondsSince1970 seconds: Int64) -> Int {
        let days = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
        return Int(((days + 4) % 7 + 7) % 7)
    }

    /// The number of days in a month.
    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
