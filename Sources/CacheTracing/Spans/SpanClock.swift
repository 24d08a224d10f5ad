import CacheCore

/// Nanoseconds since 1970 from a wall clock in milliseconds and a monotonic clock.
///
/// The monotonic clock determines durations. The difference between both is measured again when they diverge, for
/// example after the wall clock was set.
final class SpanClock: Sendable {
    /// The accepted divergence in nanoseconds. A timestamp is rounded down to a millisecond, so it is more than that.
    private static let tolerance: Int64 = 20_000_000

    private let wallClock: any WallClock
    private let uptime: @Sendable () -> Duration
    /// The time of day minus the uptime.
    private let offset: OrderedMutex<Int64?> = OrderedMutex(.leaf, nil)

    /// `uptime` is the time since any point in the past.
    init(wallClock: any WallClock, uptime: @escaping @Sendable () -> Duration) {
        self.wallClock = wallClock
        self.uptime = uptime
    }

    /// The current time, and the uptime for ``elapsed(since:)``.
    func now() -> (time: UInt64, uptime: Int64) {
        let uptime = Self.nanoseconds(uptime())
        let measured = wallClock.now().milliseconds &* 1_000_000 &- uptime
        let offset = offset.withLock { offset in
            // Rounding makes the measured offset too small, never too large.
            if let known = offset, (measured...measured &+ Self.tolerance).contains(known) { return known }
            offset = measured
            return measured
        }
        return (UInt64(max(0, offset &+ uptime)), uptime)
    }

    /// The nanoseconds since `now()` returned `uptime`.
    func elapsed(since start: Int64) -> UInt64 { UInt64(max(0, Self.nanoseconds(uptime()) &- start)) }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000
    }
}
