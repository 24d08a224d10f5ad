import CacheCore
import Testing

@Suite struct RecentReadsTests {
    let start = Timestamp(seconds: 1_780_000_000)
    let grid = SegmentGrid(segmentBytes: 100)

    @Test("A segment read within five minutes is not reported again")
    func whatWasReadAMomentAgoAsksNothing() {
        var memory = RecentReads()

        #expect(memory.record(50..<250, in: grid, at: start) == 50..<250)
        #expect(memory.record(0..<300, in: grid, at: start + .seconds(299)) == nil)
        #expect(memory.record(250..<350, in: grid, at: start + .seconds(299)) == 300..<350)
        #expect(memory.record(0..<400, in: grid, at: start + .seconds(300)) == 0..<300)
    }

    @Test("A clock set back or a new grid clears the memory")
    func aClockThatIsPutBackAndAnotherGridBeginAnew() {
        var memory = RecentReads()
        _ = memory.record(0..<100, in: grid, at: start)

        #expect(memory.record(0..<100, in: grid, at: start - .seconds(1)) == 0..<100)
        #expect(memory.record(0..<100, in: SegmentGrid(segmentBytes: 200), at: start) == 0..<100)
        memory.forget()
        #expect(memory.record(0..<100, in: SegmentGrid(segmentBytes: 200), at: start) == 0..<100)
    }

    @Test("Remembers no more reads than its limit")
    func remembersNoMoreThanItsLimit() {
        var memory = RecentReads()
        for index in Int64(0)...1024 { _ = memory.record(index * 100..<index * 100 + 1, in: grid, at: start) }

        #expect(memory.record(0..<1, in: grid, at: start) == 0..<1)
    }
}
