import CacheCore
import Testing

@Suite struct JobTriggerTests {
    private static let length: Int64 = 100_000_000

    @Test(
        "A point is passed by bytes from before and behind it, or by many behind it",
        arguments: [
            ([0..<75_000_000], true), ([0..<74_999_999], false), ([70_000_000..<76_000_000], true),
            // An index at the end, then the begin.
            ([99_000_000..<100_000_000, 0..<1_000_000], false),
            // A reader that begins behind the point.
            ([80_000_000..<82_000_000, 82_000_000..<84_000_000, 84_000_000..<86_000_000], true),
            ([75_000_000..<75_000_001], false), ([0..<100_000_000], true),
        ])
    func passes(ranges: [ByteRange], isPassed: Bool) {
        var point = ReadPoint(percent: 75)
        var passes = false
        for range in ranges where point.note(range, length: Self.length) { passes = true }
        #expect(passes == isPassed)
    }

    @Test("Small files, and the points at their ends, can be passed")
    func ends() {
        var all = ReadPoint(percent: 100)
        let ends = [all.note(0..<9, length: 10), all.note(9..<10, length: 10)]
        #expect(ends == [false, true])
        var none = ReadPoint(percent: 0)
        let first = none.note(0..<1, length: 10)
        #expect(first)
        var half = ReadPoint(percent: 50)
        let parts = [half.note(6..<7, length: 10), half.note(7..<8, length: 10)]
        #expect(parts == [false, true])
    }

    @Test("A job waits for its reader first, and then for its times")
    func order() throws {
        let (now, later) = (Timestamp(seconds: 1000), Timestamp(seconds: 2000))
        var times = JobTimes(notBefore: later, trigger: JobTrigger(assetID: AssetID(high: 1, low: 2), percent: 75))
        #expect(times.state(at: now, [:]).hold == .when && times.state(at: now, [:]).changesAt == nil)
        times.trigger?.passedAt = now
        #expect(times.state(at: now, [:]).hold == .notBefore)
        #expect(times.state(at: later, [:]).hold == nil)
    }
}
