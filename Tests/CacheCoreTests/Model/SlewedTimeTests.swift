import Testing

@testable import CacheCore

@Suite struct SlewedTimeTests {
    private static let second: Int64 = 1_000_000_000
    private static let day = 86_400 * second
    private static let start = 20_000 * day

    /// The time of `steady` in each second, relative to the start, while the wall clock is `offset` ns ahead of the
    /// correct time.
    private func run(_ steady: inout SlewedTime, from first: Int64, through last: Int64, offset: Int64) -> [Int64] {
        (first...last).map { second in
            steady.now(wall: Self.start + second * Self.second + offset, uptime: second * Self.second) - Self.start
        }
    }

    @Test("A clock that is not stepped is followed to the nanosecond")
    func aClockThatIsNotSetIsFollowedToTheNanosecond() {
        var steady = SlewedTime(wall: Self.start, uptime: 0)

        #expect(run(&steady, from: 1, through: 100, offset: 0) == (1...100).map { $0 * Self.second })
        let half = Self.second / 2
        #expect(run(&steady, from: 101, through: 101, offset: -half) == [101 * Self.second - half])
        #expect(!SlewedTime.isSet(wall: Self.start + Self.second, uptime: 0, lead: Self.start))
        #expect(SlewedTime.isSet(wall: Self.start + Self.second + 1, uptime: 0, lead: Self.start))
    }

    @Test("After a step forwards time runs at double speed until it catches up")
    func afterAStepForwardsTimeRunsTwiceAsFastUntilItIsThere() {
        var steady = SlewedTime(wall: Self.start, uptime: 0)
        let times = run(&steady, from: 1, through: 3600, offset: 1000 * Self.second)

        #expect(times[0] == 2 * Self.second && times[99] == 200 * Self.second)
        #expect(times[998] == 1998 * Self.second && times[1000] == 2001 * Self.second)
        #expect(times.last == 4600 * Self.second)
    }

    @Test("After a step back time runs at half speed and never goes back")
    func afterAStepBackTimeRunsHalfAsFastAndNeverBack() {
        var steady = SlewedTime(wall: Self.start, uptime: 0)
        let times = run(&steady, from: 1, through: 3600, offset: -1000 * Self.second)

        #expect(times[0] == Self.second / 2 && times[99] == 50 * Self.second)
        #expect(times == times.sorted() && Set(times.prefix(1990)).count == 1990)
        #expect(times.last == 2600 * Self.second)
    }

    @Test("A long time without a call counts at most one minute of slew")
    func timeThatNobodyAskedForCountsAMinute() {
        var steady = SlewedTime(wall: Self.start, uptime: 0)
        let late = steady.now(wall: Self.start + 3 * Self.day, uptime: Self.day)

        #expect(late == Self.start + Self.day + 60 * Self.second)
        #expect(steady.now(wall: Self.start + 3 * Self.day, uptime: Self.day) == late)
        #expect(steady.now(wall: Self.start + Self.day, uptime: Self.day / 2) > Self.start + Self.day)
    }
}
