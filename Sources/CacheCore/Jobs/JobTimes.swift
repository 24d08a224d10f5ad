/// A daily span of local time in which a job may run, such as `01:00-06:00 Europe/Berlin`.
package struct JobWindow: Hashable, Sendable {
    /// Minutes since midnight. An end that is not after the begin is on the next day.
    private let begin, end: Int
    package let zone: String

    /// The text in the form of the API.
    package var text: String { "\(LocalTime.text(ofMinutes: begin))-\(LocalTime.text(ofMinutes: end)) \(zone)" }

    /// Throws `.invalidField(field)` for another form, an empty window, or the name of a zone that cannot exist.
    package init(_ text: String, field: String = "windows") throws(CacheError) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        let times = words[0].split(separator: "-", omittingEmptySubsequences: false).map(LocalTime.minutes)
        guard words.count == 2, times.count == 2, let begin = times[0], let end = times[1], begin < LocalTime.day else {
            throw .invalid(field, "A window such as 01:00-06:00 Europe/Berlin is expected here.")
        }
        guard begin != end else {
            throw .invalid(
                field, "The window is empty: its end must differ from its begin; 00:00-24:00 is the whole day.")
        }
        zone = String(words[1])
        guard LocalTime.isZoneName(zone) else { throw LocalTime.unknownZone(zone, field) }
        (self.begin, self.end) = (begin, end)
    }

    /// The span of the window that begins on a local day, in seconds since 1970; nil if the clocks skip all of it.
    ///
    /// A begin that clocks show twice is the first one, and an end the last one. A time that they skip is the instant of the
    /// change.
    fileprivate func span(onDay day: Int64, in rules: ZoneRules) -> Range<Int64>? {
        let midnight = day * 86_400
        let isNextDay = end <= begin
        let first = rules.instants(ofLocal: midnight + Int64(begin) * 60).first
        let last = rules.instants(ofLocal: midnight + Int64(end) * 60 + (isNextDay ? 86_400 : 0)).last
        return first < last ? first..<last : nil
    }
}

/// The times when a job may run.
package struct JobTimes: Hashable, Sendable {
    /// The cause that a job waits for its time.
    package enum Hold: String, Hashable, Sendable {
        /// Its first time has not come.
        case notBefore
        /// It is outside of its windows.
        case window
        /// No reader has passed the point of its trigger.
        case when
    }

    /// Whether a job may run at an instant, and until when this is so.
    package struct State: Hashable, Sendable {
        /// Nil: it may run.
        package var hold: Hold?
        /// The next time when a held job may run; nil: unknown, because the tz database lacks a zone.
        package var nextRunAt: Timestamp?
        /// The time of the next change; nil: none.
        package var changesAt: Timestamp?
    }

    package var notBefore: Timestamp?
    /// Empty: the job may run at any time.
    package var windows: [JobWindow]
    /// Nil: the job needs no reader.
    package var trigger: JobTrigger?

    package init(notBefore: Timestamp? = nil, windows: [JobWindow] = [], trigger: JobTrigger? = nil) {
        self.notBefore = notBefore
        self.windows = windows
        self.trigger = trigger
    }

    /// The number of days of which windows are computed: changes of the clocks can skip a window for a day.
    private static let days: Int64 = 4

    /// - Parameter zones: The rules of the zones of all windows.
    package func state(at now: Timestamp, _ zones: [String: ZoneRules]) -> State {
        if let trigger, trigger.passedAt == nil { return State(hold: .when) }
        if let notBefore, notBefore > now {
            var next = JobTimes(windows: windows).state(at: notBefore, zones).nextRunAt
            if windows.isEmpty { next = notBefore }
            return State(hold: .notBefore, nextRunAt: next ?? notBefore, changesAt: notBefore)
        }
        guard !windows.isEmpty else { return State() }
        let seconds = now.seconds
        guard let span = spans(from: seconds, zones).first else { return State(hold: .window) }
        if span.contains(seconds) {
            return State(nextRunAt: nil, changesAt: Timestamp(seconds: span.upperBound))
        }
        let next = Timestamp(seconds: span.lowerBound)
        return State(hold: .window, nextRunAt: next, changesAt: next)
    }

    /// The time when `seconds` of permitted time have passed since `start`.
    package func end(of seconds: Double, from start: Timestamp, _ zones: [String: ZoneRules]) -> Timestamp {
        var (now, left) = (max(start, notBefore ?? start), seconds)
        guard !windows.isEmpty else { return now + .seconds(left) }
        for _ in 0..<400 {
            let state = JobTimes(windows: windows).state(at: now, zones)
            guard let change = state.changesAt else { return now + .seconds(left) }
            if state.hold == nil {
                let room = change.since(now).inSeconds
                if left <= room { return now + .seconds(left) }
                left -= room
            }
            now = change
        }
        return now + .seconds(left)
    }

    /// The spans of all windows that end after an instant, merged and in order.
    private func spans(from now: Int64, _ zones: [String: ZoneRules]) -> [Range<Int64>] {
        var spans: [Range<Int64>] = []
        for window in windows {
            guard let rules = zones[window.zone] else { continue }
            let today = rules.day(at: now)
            for day in today - 1...today + Self.days {
                if let span = window.span(onDay: day, in: rules), span.upperBound > now { spans.append(span) }
            }
        }
        var merged: [Range<Int64>] = []
        for span in spans.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, span.lowerBound <= last.upperBound {
                merged[merged.count - 1] = last.lowerBound..<max(last.upperBound, span.upperBound)
            } else {
                merged.append(span)
            }
        }
        return merged
    }
}
