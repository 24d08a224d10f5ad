import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine
import TestChance

@Suite struct SharingTests {
    @Test("Fifty readers of random ranges cost the union of their ranges")
    func fiftyReadersOfRandomRangesCostTheUnionOfWhatTheyRead() async throws {
        let bench = try Bench(LoopbackAsset(size: 24 << 20))
        try await bench.cache { $0.gapMergeBytes = 0 }.run { cache in
            try await readAtRandom(bench, cache, seed: SeededRandom.announced().seed)
        }
    }

    @Test("A probed asset gets one file for all its first windows")
    func aProbedAssetWithoutAFileYetGetsOneFileForAllItsFirstWindows() async throws {
        for seed in 0..<3 as Range<UInt64> {
            let bench = try Bench(LoopbackAsset(size: 24 << 20))
            let cache = try bench.cache {
                $0.maxTransfers = 64
                $0.gapMergeBytes = 0
            }
            try await cache.run { cache in
                _ = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: false)
                try await readAtRandom(bench, cache, seed: seed)
            }
            try await bench.cache().run { cache in
                let whole = try await cache.body(of: "a.mp4")
                #expect(
                    whole.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)), "after a restart, seed \(seed)")
            }
        }
    }

    @Test("Resetting every connection at once fails no reader")
    func everyConnectionResetAtOnceFailsNobody() async throws {
        let bench = try Bench(LoopbackAsset(size: 24 << 20))
        try await bench.cache { $0.maxTransfers = 64 }.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1)
            for _ in 0..<8 { bench.upstream.failNext("/a.mp4", .reset(after: 0)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<8 as Range<Int64> {
                    let range = (index * 2 << 20)..<((index * 2 << 20) + 1000)
                    group.addTask {
                        let read = try await cache.body(of: "a.mp4", range)
                        #expect(read.bytes.isSame(as: bench.asset.bytes(range)))
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    private func readAtRandom(_ bench: Bench, _ cache: AssetCache, seed: UInt64) async throws {
        print("seed \(seed)")
        let random = SeededChance(seed: seed)
        let size = bench.asset.size
        let ranges = (0..<50).map { _ -> ByteRange in
            let start = random.below(size - 1)
            return start..<min(size, start + 1 + random.below(1 << 20))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for range in ranges {
                group.addTask {
                    let read = try await cache.body(of: "a.mp4", range)
                    #expect(read.bytes.isSame(as: bench.asset.bytes(range)), "\(range), seed \(seed)")
                }
            }
            try await group.waitForAll()
        }
        let asked = bench.upstream.requests(for: "/a.mp4").filter { $0.method == "GET" }.compactMap(\.range)
        // A request may cover more bytes than its transfer reads: a transfer ends at the start of another window.
        let taken = try await cache.statistics.snapshot().all.requestedBytes
        #expect(taken == ByteRangeSet(ranges).byteCount, "seed \(seed)")
        #expect(ByteRangeSet(asked) == ByteRangeSet(ranges), "seed \(seed)")
    }
}
