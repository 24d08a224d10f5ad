/// A point in wall-clock time, in whole milliseconds since 1970-01-01T00:00:00Z.
package struct Timestamp: Hashable, Comparable, Sendable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }
    /// The timestamp of `seconds` since 1970; wraps around on overflow.
    package init(seconds: Int64) { self.milliseconds = seconds.multipliedReportingOverflow(by: 1000).partialValue }

    /// Whole seconds since 1970, rounded down.
    package var seconds: Int64 { milliseconds >= 0 ? milliseconds / 1000 : -((999 - milliseconds) / 1000) }

    package static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    package static func + (time: Timestamp, duration: Duration) -> Timestamp {
        let (sum, overflow) = time.milliseconds.addingReportingOverflow(duration.wholeMilliseconds)
        return Timestamp(milliseconds: overflow ? Int64.max : sum)
    }

    /// The earlier time; wraps around on overflow.
    package static func - (time: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(milliseconds: time.milliseconds.subtractingReportingOverflow(duration.wholeMilliseconds).partialValue)
    }

    /// The time from `earlier` to this one; negative if `earlier` is later.
    package func since(_ earlier: Timestamp) -> Duration { .milliseconds(milliseconds - earlier.milliseconds) }
}

extension Duration {
    /// Whole milliseconds, rounded towards zero.
    package var wholeMilliseconds: Int64 {
        components.seconds.multipliedReportingOverflow(by: 1000).partialValue
            &+ components.attoseconds / 1_000_000_000_000_000
    }

    /// The duration in seconds.
    package var inSeconds: Double { self / .seconds(1) }
}

/// The wall clock as a dependency, for freshness, records and logs; never for durations.
package protocol WallClock: Sendable {
    func now() -> Timestamp
}

/// The monotonic clock as a dependency is any `Clock`.
extension Clock where Duration == Swift.Duration {
    /// Returns a function that reports the time since this call.
    package func stopwatch() -> @Sendable () -> Duration {
        let start = now
        return { start.duration(to: now) }
    }
}

/// Randomness as a dependency, for jitter and identifiers.
package protocol RandomSource: Sendable {
    /// A number in 0..<1.
    func uniform() -> Double
    /// A unique identifier of 32 lower-case hexadecimal digits (128 bits).
    func identifier() -> String
}
