/// Formats and parses dates of header fields (RFC 9110 §5.6.7).
package enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let longDays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    /// The names of the months in dates of header fields, from January on.
    static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Formats an IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`, without fractions of a second.
    package static func format(_ time: Timestamp) -> String {
        let date = CivilDate(secondsSince1970: time.seconds)
        let day = days[CivilDate.weekday(secondsSince1970: date.secondsSince1970)]
        return day + ", " + FieldText.padded(date.day, 2) + " " + months[date.month - 1] + " "
            + FieldText.padded(date.year, 4) + " " + FieldText.padded(date.hour, 2) + ":"
            + FieldText.padded(date.minute, 2) + ":" + FieldText.padded(date.second, 2) + " GMT"
    }

    /// Parses any of the three formats; nil if the text has none of them or is not a valid date.
    ///
    /// The weekday must be a valid name, but may be the wrong one. A two-digit year means a year at most 50 years after
    /// `now`. Upper and lower case are equal (RFC 9111 §4.2).
    package static func parse(_ text: String, now: Timestamp) -> Timestamp? {
        guard text.utf8.count <= 40 else { return nil }
        var scanner = TextScanner(FieldText.trimmed(text[...]))
        let day = scanner.letters()
        let date: CivilDate?
        if index(of: day, in: days) != nil {
            date = scanner.take(", ") ? fixed(&scanner) : asctime(&scanner)
        } else if index(of: day, in: longDays) != nil, scanner.take(", ") {
            date = rfc850(&scanner, now: now)
        } else {
            date = nil
        }
        guard let date, date.isValid, scanner.isAtEnd, CivilDate.span.contains(date.secondsSince1970) else {
            return nil
        }
        return Timestamp(seconds: date.secondsSince1970)
    }

    /// Parses the rest of an IMF-fixdate, `06 Nov 1994 08:49:37 GMT`.
    private static func fixed(_ scanner: inout TextScanner) -> CivilDate? {
        guard let day = scanner.number(digits: 2), scanner.take(" "), let month = month(&scanner), scanner.take(" "),
            let year = scanner.number(digits: 4), scanner.take(" "), let time = time(&scanner), zone(&scanner)
        else { return nil }
        return date(year, month, day, time)
    }

    /// Parses the rest of an RFC 850 date, `06-Nov-94 08:49:37 GMT`.
    private static func rfc850(_ scanner: inout TextScanner, now: Timestamp) -> CivilDate? {
        guard let day = scanner.number(digits: 2), scanner.take("-"), let month = month(&scanner), scanner.take("-"),
            let short = scanner.number(digits: 2), scanner.take(" "), let time = time(&scanner), zone(&scanner)
        else { return nil }
        let thisYear = CivilDate(secondsSince1970: now.seconds).year
        var found = date(thisYear - thisYear % 100 + short, month, day, time)
        if found.year > thisYear + 50 {
            found.year -= 100
        } else if found.year <= thisYear - 50 {
            found.year += 100
        }
        return found
    }

    /// Parses the rest of an asctime date, ` Nov  6 08:49:37 1994`.
    private static func asctime(_ scanner: inout TextScanner) -> CivilDate? {
        guard scanner.take(" "), let month = month(&scanner), scanner.take(" "),
            let day = scanner.take(" ") ? scanner.number(digits: 1) : scanner.number(digits: 2), scanner.take(" "),
            let time = time(&scanner), scanner.take(" "), let year = scanner.number(digits: 4)
        else { return nil }
        return date(year, month, day, time)
    }

    /// Parses the name of a month; returns 1–12.
    private static func month(_ scanner: inout TextScanner) -> Int? {
        index(of: scanner.letters(), in: months).map { $0 + 1 }
    }

    /// Parses the only valid zone, ` GMT`.
    private static func zone(_ scanner: inout TextScanner) -> Bool {
        scanner.take(" ") && index(of: scanner.letters(), in: ["GMT"]) != nil
    }

    /// The index of a name, first compared exactly, then without case.
    private static func index(of word: String, in names: [String]) -> Int? {
        names.firstIndex(of: word) ?? names.firstIndex { FieldText.lowered($0) == FieldText.lowered(word) }
    }

    /// Parses `hh:mm:ss`.
    private static func time(_ scanner: inout TextScanner) -> (hour: Int, minute: Int, second: Int)? {
        guard let hour = scanner.number(digits: 2), scanner.take(":"), let minute = scanner.number(digits: 2),
            scanner.take(":"), let second = scanner.number(digits: 2)
        else { return nil }
        return (hour, minute, second)
    }

    private static func date(_ year: Int, _ month: Int, _ day: Int, _ time: (Int, Int, Int)) -> CivilDate {
        CivilDate(year: year, month: month, day: day, hour: time.0, minute: time.1, second: time.2)
    }
}
