/// The rule of a time zone in the form of POSIX, such as `CET-1CEST,M3.5.0,M10.5.0/3` (RFC 8536 §3.3.1).
struct PosixZone: Hashable, Sendable {
    /// A day of the year, and the local time of the change.
    private struct Change: Hashable {
        enum Day: Hashable {
            /// The day 1 to 365; 29 February is never counted.
            case julian(Int)
            /// The day 0 to 365, with 29 February.
            case zeroBased(Int)
            /// Month, week 1 to 5 (5: the last one), day of the week (0: Sunday).
            case weekday(Int, Int, Int)
        }

        var day: Day
        var time: Int

        /// The local time of the change in a year, in seconds since 1970 as if it were UTC.
        func local(in year: Int) -> Int64 {
            let start = CivilDate(year: year, month: 1, day: 1).secondsSince1970
            let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            let seconds =
                switch day {
                case .julian(let number): start + Int64(number - 1 + (isLeap && number >= 60 ? 1 : 0)) * 86_400
                case .zeroBased(let number): start + Int64(number) * 86_400
                case .weekday(let month, let week, let weekday): Self.day(weekday, week, of: month, year)
                }
            return seconds + Int64(time)
        }

        private static func day(_ weekday: Int, _ week: Int, of month: Int, _ year: Int) -> Int64 {
            let first = CivilDate(year: year, month: month, day: 1).secondsSince1970
            let next = CivilDate(year: month == 12 ? year + 1 : year, month: month % 12 + 1, day: 1).secondsSince1970
            var day =
                first + Int64((weekday - CivilDate.weekday(secondsSince1970: first) + 7) % 7 + (week - 1) * 7) * 86_400
            while day >= next { day -= 7 * 86_400 }
            return day
        }
    }

    private let standard: Int
    /// Nil: the zone has no daylight saving time.
    private let summer: (offset: Int, begin: Change, end: Change)?

    static func == (left: PosixZone, right: PosixZone) -> Bool {
        left.standard == right.standard && left.summer?.offset == right.summer?.offset
            && left.summer?.begin == right.summer?.begin && left.summer?.end == right.summer?.end
    }

    func hash(into hasher: inout Hasher) { hasher.combine(standard) }

    /// Nil if the text has another form.
    init?(_ text: String) {
        var rest = text.utf8[...]
        guard Self.skipName(&rest), let offset = Self.time(&rest) else { return nil }
        standard = -offset
        guard !rest.isEmpty else {
            summer = nil
            return
        }
        guard Self.skipName(&rest) else { return nil }
        var own = -offset + 3600
        if rest.first != UInt8(ascii: ",") {
            guard let offset = Self.time(&rest) else { return nil }
            own = -offset
        }
        guard let begin = Self.change(&rest), let end = Self.change(&rest), rest.isEmpty else { return nil }
        summer = (own, begin, end)
    }

    /// The seconds east of UTC at an instant, in seconds since 1970.
    func offset(at seconds: Int64) -> Int {
        guard let summer else { return standard }
        let year = CivilDate(secondsSince1970: seconds + Int64(standard)).year
        let begin = summer.begin.local(in: year) - Int64(standard)
        let end = summer.end.local(in: year) - Int64(summer.offset)
        let isSummer = begin < end ? begin <= seconds && seconds < end : seconds < end || begin <= seconds
        return isSummer ? summer.offset : standard
    }

    /// Skips a name: letters, or any characters in angle brackets.
    private static func skipName(_ rest: inout Substring.UTF8View) -> Bool {
        if rest.first == UInt8(ascii: "<") {
            guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
            rest = rest[rest.index(after: end)...]
            return true
        }
        let name = rest.prefix(while: FieldText.isLetter)
        rest = rest[name.endIndex...]
        return name.count >= 3
    }

    /// Parses `[+-]hh[:mm[:ss]]` in seconds.
    private static func time(_ rest: inout Substring.UTF8View) -> Int? {
        var sign = 1
        if let first = rest.first, "+-".utf8.contains(first) {
            if first == UInt8(ascii: "-") { sign = -1 }
            rest.removeFirst()
        }
        guard var seconds = number(&rest).map({ $0 * 3600 }), seconds <= 167 * 3600 else { return nil }
        for unit in [60, 1] where rest.first == UInt8(ascii: ":") {
            rest.removeFirst()
            guard let part = number(&rest), part < 60 else { return nil }
            seconds += part * unit
        }
        return sign * seconds
    }

    private static func number(_ rest: inout Substring.UTF8View) -> Int? {
        let digits = rest.prefix(while: FieldText.isDigit)
        rest = rest[digits.endIndex...]
        return digits.count <= 3 ? FieldText.number(digits).map { Int($0) } : nil
    }

    /// Parses `,date[/time]`; the time is 02:00 without one.
    private static func change(_ rest: inout Substring.UTF8View) -> Change? {
        guard rest.popFirst() == UInt8(ascii: ",") else { return nil }
        let day: Change.Day
        switch rest.first {
        case UInt8(ascii: "J"):
            rest.removeFirst()
            guard let number = number(&rest), (1...365).contains(number) else { return nil }
            day = .julian(number)
        case UInt8(ascii: "M"):
            rest.removeFirst()
            guard let month = number(&rest), rest.popFirst() == UInt8(ascii: "."), let week = number(&rest),
                rest.popFirst() == UInt8(ascii: "."), let weekday = number(&rest), (1...12).contains(month),
                (1...5).contains(week), (0...6).contains(weekday)
            else { return nil }
            day = .weekday(month, week, weekday)
        default:
            guard let number = number(&rest), (0...365).contains(number) else { return nil }
            day = .zeroBased(number)
        }
        var time = 7200
        if rest.first == UInt8(ascii: "/") {
            rest.removeFirst()
            guard let own = Self.time(&rest) else { return nil }
            time = own
        }
        return Change(day: day, time: time)
    }
}
