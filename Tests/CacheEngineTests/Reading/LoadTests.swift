import CacheCore
import CacheSimulation
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Reads over five times the capacity of the store.
@Suite struct LoadTests {
    private static let assets = 320
    private static let bytes: Int64 = 16 << 10
    private static let capacity: Int64 = 1 << 20

    private func policy(_ algorithm: EvictionAlgorithm) -> PolicySettings {
        PolicySettings(
            capacityBytes: Self.capacity, highWatermark: 0.95, lowWatermark: 0.87, minFreeDiskBytes: 0,
            algorithm: algorithm, grace: .zero)
    }

    private func bench() throws -> Bench {
        let bench = try Bench()
        for number in 0..<Self.assets {
            bench.upstream.serve("/\(number).mp4", LoopbackAsset(size: Self.bytes, seed: UInt64(number) + 1))
        }
        return bench
    }

    /// A skewed sequence of assets: low numbers are frequent, high numbers are rare.
    private func choices(_ count: Int, seed: UInt64) -> [Int] {
        let random = SeededChance(seed: seed)
        return (0..<count).map { _ in
            let share = random.uniform()
            return Int(share * share * share * Double(Self.assets))
        }
    }

    private func isRight(_ bytes: [UInt8], _ number: Int) -> Bool {
        bytes.isSame(as: LoopbackBody.bytes(at: 0..<Self.bytes, seed: UInt64(number) + 1))
    }

    @Test("The hit ratio of the store matches the simulation", arguments: EvictionAlgorithm.allCases)
    func asMuchIsFoundOnDiskAsTheSimulationSays(algorithm: EvictionAlgorithm) async throws {
        let bench = try bench()
        let choices = choices(1000, seed: 7)
        let test = try bench.cache(policy: policy(algorithm)) { $0.freshness = .ttl(.seconds(1_000_000)) }
        try await test.run { cache in
            var (hits, highest, wrong) = (0, Int64(0), 0)
            for number in choices {
                test.wallClock.advance(by: .seconds(20))
                let read = try await cache.body(of: "\(number).mp4", 0..<Self.bytes)
                hits += read.outcome.requestClass == .hit ? 1 : 0
                wrong += isRight(read.bytes, number) ? 0 : 1
                highest = max(highest, cache.context.space.with { $0.usedBytes })
                #expect(try await eventually { cache.context.space.excess().bytes == 0 })
            }
            let ratio = Double(hits) / Double(choices.count)
            // The cached bytes lie between the watermarks, minus the reservation of the running fill.
            let least = simulated(choices, algorithm, of: 54)
            let most = simulated(choices, algorithm, of: 60)

            #expect(wrong == 0)
            #expect(highest <= Self.capacity)
            #expect(ratio >= min(least, most) - 0.01 && ratio <= max(least, most) + 0.01, "\(least) \(ratio) \(most)")
        }
    }

    private func simulated(_ choices: [Int], _ algorithm: EvictionAlgorithm, of count: Int64) -> Double {
        var simulation = PolicySimulation(
            policy: algorithm.policy(capacityBytes: count * Self.bytes), grid: SegmentGrid(capacity: Self.capacity))
        for (step, number) in choices.enumerated() {
            simulation.read(
                0..<Self.bytes, of: AssetID(high: 0, low: UInt64(number)), at: Timestamp(seconds: Int64(step + 1) * 20))
        }
        return simulation.tally.byteHitRatio
    }

    @Test("Concurrent readers get correct bytes, and the store stays within its capacity")
    func manyReadersAtOnceGetTheRightBytesAndTheStoreStaysSmall() async throws {
        let bench = try bench()
        let test = try bench.cache(policy: policy(.s3fifo))
        try await test.run { cache in
            let wrong = try await withThrowingTaskGroup(of: Int.self) { group in
                for reader in UInt64(1)...8 {
                    group.addTask {
                        var wrong = 0
                        for number in choices(60, seed: reader) {
                            let read = try await cache.body(of: "\(number).mp4", 0..<Self.bytes)
                            wrong += isRight(read.bytes, number) ? 0 : 1
                        }
                        return wrong
                    }
                }
                return try await group.reduce(0, +)
            }
            let isSmall = try await eventually { try await test.store.usedDiskBytes() <= Self.capacity }

            #expect(wrong == 0)
            #expect(isSmall)
            #expect(try await cache.statistics.snapshot().evictedBytes > 0)
        }
    }
}
