import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct LiveStatisticsTests {
    private let counters = LiveCounters()
    private let latencies = RequestLatencies(wallClock: ManualWallClock())
    private let live: LiveStatistics
    private let asset = AssetID(high: 1, low: 2)

    init() {
        let fills = FillRegistry(events: EventLog(wallClock: ManualWallClock()), uptime: { .zero })
        live = LiveStatistics(counters: counters, latencies: latencies, fills: fills)
    }

    private func time(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: 1_000_000_000 + milliseconds) }

    @Test("A bucket has the counts of its second")
    func aBucketHasTheCountsOfItsSecond() throws {
        #expect(live.sample(at: time(0)).isEmpty)
        counters.sent(fromCache: 100, fromUpstream: 20, of: asset)
        counters.received(50, of: asset)
        counters.readers(1, of: asset)
        latencies.record(.hit, firstByte: .milliseconds(2), duration: .milliseconds(3), shard: 0)
        latencies.record(.error, firstByte: nil, duration: .milliseconds(3), shard: 1)
        let second = try #require(live.sample(at: time(1002)).first)
        #expect(second.at == time(0))
        #expect(second.clientBytesFromCache == 100 && second.clientBytesFromUpstream == 20)
        #expect(second.upstreamBytes == 50 && second.activeReaders == 1)
        #expect(second.requests == [1, 0, 0, 0, 0, 0, 0, 1])
        #expect(second.firstByte?.count == 1)
        let idle = try #require(live.sample(at: time(2001)).first)
        #expect(idle.clientBytesFromCache == 0 && idle.requests.allSatisfy { $0 == 0 } && idle.firstByte == nil)
        #expect(live.seconds().map(\.at) == [time(0), time(1000)])
    }

    @Test("Seconds without a sample are empty, and a clock that was set back ends none")
    func gapsAreFilled() {
        _ = live.sample(at: time(0))
        counters.received(7, of: asset)
        #expect(live.sample(at: time(3500)).map(\.upstreamBytes) == [0, 0, 7])
        #expect(live.sample(at: time(1000)).isEmpty)
        #expect(live.sample(at: time(3999)).isEmpty)
        #expect(live.seconds(after: time(1000)).map(\.at) == [time(2000)])
    }

    @Test("A second has the hit ratios of its minute and of its 15 minutes")
    func theRatiosOfWindowsFollowTheSeconds() throws {
        _ = live.sample(at: time(0))
        latencies.record(.revalidated, firstByte: nil, duration: .milliseconds(3), shard: 0)
        latencies.record(.miss, firstByte: nil, duration: .milliseconds(3), shard: 0)
        counters.sent(fromCache: 10, fromUpstream: 30, of: asset)
        _ = live.sample(at: time(1000))
        let inMinute = try #require(live.sample(at: time(60_000)).last)
        #expect(inMinute.hitRatios.request == nil && inMinute.hitRatios.byte == nil)
        #expect(inMinute.lastMinute.request == 0.5 && inMinute.lastMinute.byte == 0.25)
        let after = try #require(live.sample(at: time(61_000)).last)
        #expect(after.lastMinute == HitRatios() && after.last15Minutes.request == 0.5)
        #expect(live.sample(at: time(900_000)).last?.last15Minutes.byte == 0.25)
        #expect(live.sample(at: time(901_000)).last?.last15Minutes == HitRatios())
    }

    @Test("The last 900 seconds are kept")
    func theRingIsBounded() {
        _ = live.sample(at: time(0))
        for second in 1...1000 { _ = live.sample(at: time(Int64(second) * 1000)) }
        #expect(live.seconds().count == 900 && live.seconds().first?.at == time(100_000))
        #expect(live.sample(at: time(100_000_000)).count == 900)
        #expect(live.seconds().last?.at == time(99_999_000))
    }
}
