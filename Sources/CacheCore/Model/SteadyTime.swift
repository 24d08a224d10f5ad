/// Time of day that does not jump: where the wall clock is set, it comes nearer to that at twice or half the speed of time.
///
/// So an hour that a clock was set forward makes nothing older by more than the time that passes, and one that was set back
/// makes nothing stand still. A value without a clock; all in nanoseconds, those of `uptime` from any beginning.
package struct SteadyTime: Hashable, Sendable {
    /// Up to so much a clock is corrected at once, as services that discipline it do.
    package static let tolerance: Int64 = 1_000_000_000

    /// How far the time of day is ahead of the uptime.
    package private(set) var lead: Int64
    private var uptime: Int64

    package init(wall: Int64, uptime: Int64) {
        lead = wall - uptime
        self.uptime = uptime
    }

    /// Whether the wall clock has been set since `lead` was right.
    package static func isSet(wall: Int64, uptime: Int64, lead: Int64) -> Bool {
        (wall - uptime - lead).magnitude > tolerance.magnitude
    }

    /// The time of day, given what both clocks say. Of the time since it was last asked a minute counts, for it need not be
    /// asked while the clock is right.
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
