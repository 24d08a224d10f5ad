import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct BudgetTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    @Test("A hundred fills that fail together retry within the retry budget")
    func aHundredFillsThatFailTogetherAskAFifthMore() async throws {
        let test = try bench.cache {
            $0.circuitBreaker = nil
            $0.maxTransfers = 64
            $0.readTimeout = .seconds(300)
        }
        try await test.run { cache in
            let took = await ContinuousClock().measure { await failTogether(100, cache) }
            let isAtRest = try await eventually { try await cache.isAtRest() }

            // The budget allows a fifth more requests, and ten more for each 10 s period that the reads last.
            let most = 120 + 10 * Int(took / .seconds(10))
            #expect((100...most).contains(bench.upstream.requests.count))
            #expect(isAtRest)
        }
    }

    @Test("Ten retries are always allowed")
    func tenTriesAreAlwaysAllowed() async throws {
        try await bench.cache { $0.circuitBreaker = nil }.run { cache in
            await failTogether(5, cache)

            #expect(bench.upstream.requests.count == 15)
        }
    }

    @Test("A transfer broken midway resumes without budget or delay")
    func whatBrokeOnTheWayGoesOnWithoutBudgetOrDelay() async throws {
        bench.upstream.serve("/a.mp4", LoopbackAsset(size: 3 << 20, faults: [.cut(after: 60_000)]))
        // 60,000 bytes are less than the smallest window of a slow reader, and enough progress in the largest window.
        try await bench.cache { $0.readAheadBytes = 512 << 10 }.run { cache in
            let read = try await cache.body(of: "a.mp4")
            let figures = try await cache.statistics.snapshot().all

            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(bench.upstream.requests.count > 40)
            #expect(figures.refetchedBytes == 0 && figures.fillsRetried > 30)
        }
    }

    /// Reads `count` assets concurrently. The upstream responds to each request with 503.
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
