import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct BudgetTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    @Test func aHundredFillsThatFailTogetherAskAFifthMore() async throws {
        let test = try bench.cache {
            $0.circuitBreaker = nil
            $0.maxTransfers = 64
            $0.readTimeout = .seconds(300)
        }
        try await test.run { cache in
            let took = await ContinuousClock().measure { await failTogether(100, cache) }
            let isAtRest = try await eventually { try await cache.isAtRest() }

            // A fifth more; and where that takes longer than the budget looks back, ten more each time.
            let most = 120 + 10 * Int(took / .seconds(10))
            #expect((100...most).contains(bench.upstream.requests.count))
            #expect(isAtRest)
        }
    }

    @Test func tenTriesAreAlwaysAllowed() async throws {
        try await bench.cache { $0.circuitBreaker = nil }.run { cache in
            await failTogether(5, cache)

            #expect(bench.upstream.requests.count == 15)
        }
    }

    @Test func whatBrokeOnTheWayGoesOnWithoutBudgetOrDelay() async throws {
        bench.upstream.serve("/a.mp4", LoopbackAsset(size: 3 << 20, faults: [.cut(after: 60_000)]))
        // The smallest window, of a slow reader, is cut too; of the largest that much counts as progress.
        try await bench.cache { $0.readAheadBytes = 512 << 10 }.run { cache in
            let read = try await cache.body(of: "a.mp4")
            let figures = try await cache.stats().all

            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(bench.upstream.requests.count > 40)
            #expect(figures.refetchedBytes == 0 && figures.fillsRetried > 30)
        }
    }

    /// Reads as many assets, all at once, that the upstream answers with a 503.
    private func failTogether(_ count: Int, _ cache: AssetCache) async {
        for number in 0..<count { bench.upstream.serve("/\(number).mp4") { _ in .response(status: 503) } }
        await withTaskGroup { group in
            for number in 0..<count {
                group.addTask {
                    let error = await #expect(throws: CacheError.self) {
                        try await cache.body(of: "\(number).mp4", 0..<1000)
                    }
                    #expect(error?.code == .upstreamRefused(status: 503))
                }
            }
        }
    }
}
