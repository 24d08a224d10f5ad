import CacheCore
import Testing

@testable import CacheSimulation

@Suite struct PolicySimulationTests {
    /// Misses and missed bytes of 30,000 generated requests at 20,000, 200,000 and 700,000 bytes of capacity. The
    /// values come from a reference implementation with plain lists, which agrees with libCacheSim on a published
    /// trace.
    static let golden: [(algorithm: EvictionAlgorithm, misses: [Int64], bytes: [Int64])] = [
        (.lru, [27201, 21369, 14176], [13_873_556, 10_687_358, 7_060_325]),
        (.sieve, [25186, 18908, 12850], [12_625_681, 9_337_515, 6_367_067]),
        (.s3fifo, [24741, 18723, 12675], [12_405_578, 9_281_832, 6_328_531]),
        (.lfuda, [26545, 20130, 13218], [13_413_395, 10_013_177, 6_565_214]),
        (.gdsf, [25797, 18147, 11584], [13_508_447, 10_119_707, 6_650_690]),
    ]

    @Test("Has exactly the misses of the reference", arguments: golden)
    func missesExactlyWhatTheReferenceMisses(algorithm: EvictionAlgorithm, misses: [Int64], bytes: [Int64]) {
        let trace = GeneratedTrace(count: 30_000)
        let tallies = [Int64(20_000), 200_000, 700_000].map { capacity in
            var cache = PolicySimulation(policy: algorithm.policy(capacityBytes: capacity))
            for request in trace.requests { _ = cache.read(request.segment, bytes: request.bytes) }
            return cache.tally
        }

        #expect(tallies.map { $0.requests - $0.hits } == misses)
        #expect(tallies.map(\.missedBytes) == bytes)
        #expect(tallies.map(\.writtenBytes) == bytes)
    }

    @Test("Rejects only reads larger than the capacity")
    func refusesOnlyWhatIsLargerThanTheCapacity() {
        var cache = PolicySimulation(policy: S3FIFOPolicy(capacityBytes: 100))

        let outcomes = [Int64(101), .max, 100, 0, -5].enumerated().map { index, bytes in
            cache.read(SegmentID(asset: Self.asset, index: Int32(index)), bytes: bytes)
        }

        #expect(outcomes.prefix(3) == [.refused, .refused, .miss(evicted: [])])
        #expect(cache.usedBytes == 100)
        #expect(cache.tally.bytes == 201 &+ .max)
    }

    private static let asset = AssetID(high: 1, low: 1)

    private func cache(_ policy: any EvictionPolicy) -> PolicySimulation {
        PolicySimulation(policy: policy, grid: SegmentGrid(segmentBytes: 64 << 10))
    }

    @Test("A read admits only its missing bytes")
    func ofARunOnlyWhatIsMissingIsTakenIn() {
        var cache = cache(LRUPolicy(capacityBytes: 1 << 20))
        let start = Timestamp(seconds: 0)

        cache.read(0..<(10 << 10), of: Self.asset, at: start)
        cache.read((5 << 10)..<(100 << 10), of: Self.asset, at: start)
        cache.read((20 << 10)..<(90 << 10), of: Self.asset, at: start)

        #expect(cache.usedBytes == 100 << 10)
        #expect(cache.tally.writtenBytes == 100 << 10)
        #expect(cache.tally.hitBytes == 75 << 10)
        #expect(cache.tally.hits == 1)
    }

    @Test("Segments are evicted whole, and reads close together count once")
    func aSegmentGoesAsAWholeAndReadsCloseTogetherTouchItOnce() {
        for (seconds, expected) in [(299, [true, false]), (300, [false, true])] as [(Int64, [Bool])] {
            var cache = cache(
                S3FIFOPolicy(capacityBytes: 128 << 10, rules: .init(promotionReads: 2, startsWarm: false)))
            let other = AssetID(high: 2, low: 2)
            for (asset, at) in [(Self.asset, 0), (other, 0), (Self.asset, 1), (Self.asset, 1 + seconds)] {
                cache.read(0..<(64 << 10), of: asset, at: Timestamp(seconds: at))
            }
            cache.read(0..<100, of: AssetID(high: 3, low: 3), at: Timestamp(seconds: 900))

            let isThere = [other, Self.asset].map { cache.contains(SegmentID(asset: $0, index: 0)) }
            #expect(isThere == expected)
            #expect(cache.tally.evictedBytes == 64 << 10)
        }
    }

    @Test("A segment is not evicted for its own next bytes")
    func aSegmentIsNotEvictedForItsOwnNextBytes() {
        var cache = cache(LRUPolicy(capacityBytes: 64 << 10))
        cache.read(0..<(32 << 10), of: Self.asset, at: Timestamp(seconds: 0))
        cache.read((64 << 10)..<(80 << 10), of: Self.asset, at: Timestamp(seconds: 0))

        cache.read((32 << 10)..<(64 << 10), of: Self.asset, at: Timestamp(seconds: 0))
        cache.read(0..<(64 << 10), of: Self.asset, at: Timestamp(seconds: 0))

        #expect(cache.tally.hits == 1)
        #expect(cache.tally.evictedBytes == 16 << 10)
    }
    @Test("A segment larger than the capacity is admitted as far as it fits")
    func aSegmentLargerThanTheCapacityIsTakenInAsFarAsItFits() {
        var cache = cache(SievePolicy(capacityBytes: 20 << 10))
        for start in stride(from: Int64(0), to: 64 << 10, by: 8 << 10) {
            cache.read(ByteRange(offset: start, length: 8 << 10), of: Self.asset, at: Timestamp(seconds: 0))
        }
        cache.read(-5..<3, of: Self.asset, at: Timestamp(seconds: 0))

        #expect(cache.usedBytes == 16 << 10)
        #expect(cache.tally.writtenBytes == 16 << 10)
    }
}
