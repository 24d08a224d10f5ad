/// The instants at which a schedule starts jobs: `daily`, `weekly:mon,thu` or `every:6h`.
package enum JobRepeat: Hashable, Sendable {
    case daily(at: LocalTime)
    /// The days of the week, from 0 for Monday to 6 for Sunday; at least one.
    case weekly(days: Set<Int>, at: LocalTime)
    /// Whole seconds.
    case every(Int64)

    private static let weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    /// The permitted intervals in seconds: a minute to a year.
    private static let intervals = Int64(60)...31_536_000

    /// The text in the form of the API, without the time of day.
    package var text: String {
        switch self {
        case .daily: "daily"
        case .weekly(let days, _): "weekly:" + days.sorted().map { Self.weekdays[$0] }.joined(separator: ",")
        case .every(let seconds): "every:" + DurationText.format(.seconds(seconds))
        }
    }

    /// The time of day; nil for an interval.
    package var time: LocalTime? {
        switch self {
        case .daily(let time), .weekly(_, let time): time
        case .every: nil
        }
    }

    /// - Parameter time: The time of day; nil: midnight in UTC.
    ///
    /// Throws `.invalidField("repeat")` for another form, and `.invalidField("at")` for a time of day of an interval.
    package init(_ text: String, at time: LocalTime?) throws(CacheError) {
        let words = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let value = words.count == 2 ? words[1].drop { $0 == " " } : nil
        switch (words[0], value) {
        case ("daily", nil): self = .daily(at: time ?? .midnight)
        case ("weekly", let value?):
            let days = value.split(separator: ",", omittingEmptySubsequences: false).map { day in
                Self.weekdays.firstIndex(of: String(day))
            }
            guard !days.contains(nil) else { throw Self.unknown }
            self = .weekly(days: Set(days.compactMap(\.self)), at: time ?? .midnight)
        case ("every", let value?):
            guard time == nil else {
                throw .invalid(
                    "at", "A schedule with an interval has no time of day; remove at, or use daily or weekly.")
            }
            guard let interval = try? DurationText.parse(String(value)) else { throw Self.unknown }
            let seconds = interval.components.seconds
            guard interval == .seconds(seconds), Self.intervals.contains(seconds) else {
                throw .invalid("repeat", "An interval of whole seconds from 1m to 365d is expected here.")
            }
            self = .every(seconds)
        default: throw Self.unknown
        }
    }

    private static let unknown = CacheError.invalid(
        "repeat", "One of daily, weekly:mon,thu (days of the week) and every:6h (an interval) is expected here.")

    /// The longest time between two instants in seconds, with the changes of clocks.
    private var longestGap: Int64 {
        switch self {
        case .daily: 2 * 86_400
        case .weekly: 8 * 86_400
        case .every(let seconds): seconds
        }
    }

    /// The last instant until `now`, and the first one after it, in whole seconds.
    ///
    /// - Parameters:
    ///   - origin: The instant that intervals count from, in both directions.
    ///   - rules: The rules of the zone of ``time``.
    func neighbours(of now: Timestamp, from origin: Timestamp, _ rules: ZoneRules) -> (last: Timestamp, next: Timestamp)
    {
        let now = now.seconds
        switch self {
        case .every(let seconds):
            let count = now - origin.seconds
            let steps = count >= 0 ? count / seconds : (count - seconds + 1) / seconds
            let last = origin.seconds + steps * seconds
            return (Timestamp(seconds: last), Timestamp(seconds: last + seconds))
        case .daily(let time), .weekly(_, let time):
            let today = rules.day(at: now)
            let instants = (today - 9...today + 9).filter { includes(day: $0) }
                .map { time.instant(onDay: $0, in: rules) }
            let last = instants.last { $0 <= now } ?? now
            return (Timestamp(seconds: last), Timestamp(seconds: instants.first { $0 > now } ?? now + longestGap))
        }
    }

    /// Whether a day, counted from 1970-01-01, has an instant.
    private func includes(day: Int64) -> Bool {
        guard case .weekly(let days, _) = self else { return true }
        // The first day was a Thursday.
        return days.contains(Int(((day + 3) % 7 + 7) % 7))
    }

    /// Whether a recorded instant can only be one of a clock that was wrong, because it is too far ahead.
    func isImpossible(_ instant: Timestamp, at now: Timestamp) -> Bool {
        instant.seconds > now.seconds + longestGap
    }
}
