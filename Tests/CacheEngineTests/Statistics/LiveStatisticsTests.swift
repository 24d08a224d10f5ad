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
        #expect(second.traffic.clientBytesFromCache == 100 && second.traffic.clientBytesFromUpstream == 20)
        #expect(second.traffic.upstreamBytes == 50 && second.activeReaders == 1)
        #expect(second.traffic.requests == [1, 0, 0, 0, 0, 0, 0, 1])
        #expect(second.firstByte?.count == 1)
        let idle = try #require(live.sample(at: time(2001)).first)
        #expect(
            idle.traffic.clientBytesFromCache == 0 && idle.traffic.requests.allSatisfy { $0 == 0 }
                && idle.firstByte == nil)
        #expect(live.seconds().map(\.at) == [time(0), time(1000)])
    }

    @Test("Seconds without a sample are empty, and a clock that was set back ends none")
    func gapsAreFilled() {
        _ = live.sample(at: time(0))
        counters.received(7, of: asset)
        #expect(live.sample(at: time(3500)).map(\.traffic.upstreamBytes) == [0, 0, 7])
        #expect(live.sample(at: time(1000)).isEmpty)
        #expect(live.sample(at: time(3999)).isEmpty)
        #expect(live.seconds(after: time(1000)).map(\.at) == [time(2000)])
    }

    @Test("A second has the traffic of its 5 seconds, its minute and its 15 minutes")
    func windowsFollowTheSeconds() throws {
        _ = live.sample(at: time(0))
        latencies.record(.revalidated, firstByte: nil, duration: .milliseconds(3), shard: 0)
        latencies.record(.miss, firstByte: nil, duration: .milliseconds(3), shard: 0)
        counters.sent(fromCache: 10, fromUpstream: 30, of: asset)
        _ = live.sample(at: time(1000))
        let in5Seconds = try #require(live.sample(at: time(5000)).last)
        #expect(in5Seconds.last5Seconds.clientBytes == 40 && in5Seconds.last5Seconds.seconds == 5)
        let inMinute = try #require(live.sample(at: time(60_000)).last)
        #expect(inMinute.last5Seconds == idle(5))
        #expect(inMinute.traffic == idle(1))
        let ratios = inMinute.lastMinute.hitRatios
        #expect(ratios.request == 0.5 && ratios.byte == 0.25 && inMinute.lastMinute.requests.reduce(0, +) == 2)
        let after = try #require(live.sample(at: time(61_000)).last)
        #expect(after.lastMinute == idle(60) && after.last15Minutes.hitRatios.request == 0.5)
        #expect(live.sample(at: time(900_000)).last?.last15Minutes.hitRatios.byte == 0.25)
        #expect(live.sample(at: time(901_000)).last?.last15Minutes == idle(900))
    }

    private func idle(_ seconds: Int) -> LiveTraffic {
        var traffic = LiveTraffic()
        traffic.seconds = seconds
        return traffic
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
