/// A time of day that does not jump (slewing as in NTP): after the wall clock is set, it approaches the wall clock at
/// twice or half the normal speed.
///
/// If a clock is set forward by an hour, ages therefore grow at most twice as fast as time passes; if it is set back,
/// time does not stand still. A value without a clock. All times are in nanoseconds; uptimes have any fixed origin.
package struct SlewedTime: Hashable, Sendable {
    /// The largest correction that is applied at once, in nanoseconds. Services that discipline the clock stay below
    /// it.
    package static let tolerance: Int64 = 1_000_000_000

    /// The difference between the time of day and the uptime.
    package private(set) var lead: Int64
    /// The greatest uptime so far.
    private var uptime: Int64

    package init(wall: Int64, uptime: Int64) {
        lead = wall - uptime
        self.uptime = uptime
    }

    /// Whether the wall clock was set since `lead` was determined.
    package static func isSet(wall: Int64, uptime: Int64, lead: Int64) -> Bool {
        (wall - uptime - lead).magnitude > tolerance.magnitude
    }

    /// The time of day for the present values of both clocks. At most one minute since the last call counts as time for
    /// a correction, because no call is needed while the clock is right.
    package mutating func now(wall: Int64, uptime: Int64) -> Int64 {
        let passed = min(max(0, uptime - self.uptime), 60 * 1_000_000_000)
        self.uptime = max(uptime, self.uptime)
        let ahead = wall - self.uptime - lead
        if Self.isSet(wall: wall, uptime: self.uptime, lead: lead) {
            lead += min(max(ahead, -passed / 2), passed)
        } else {
            lead += ahead
        }
        return lead + self.uptime
    }
}
