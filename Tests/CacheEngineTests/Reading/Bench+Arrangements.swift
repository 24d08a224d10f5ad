import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// A read of the asset's first 400,000 bytes that stalls once 100,000 bytes are on disk.
struct StalledRead: Sendable {
    static let range: ByteRange = 0..<400_000
    static let present: ByteRange = 0..<100_000

    /// The read; its value is the bytes.
    let task: Task<[UInt8], any Error>
    /// The only running fill.
    let fill: FillStatus
    private let latch: LoopbackLatch

    fileprivate init(task: Task<[UInt8], any Error>, fill: FillStatus, latch: LoopbackLatch) {
        self.task = task
        self.fill = fill
        self.latch = latch
    }

    /// Lets the upstream continue.
    func resume() { latch.release() }
}

extension Bench {
    /// Runs a cache with one read, and calls `body` once the read is stalled.
    func withStalledRead(
        _ change: (inout OriginSettings) -> Void = { _ in },
        _ body: @Sendable (AssetCache, StalledRead) async throws -> Void
    ) async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        upstream.failNext("/a.mp4", .stall(after: StalledRead.present.upperBound, until: latch))
        try await cache(change).run { cache in
            let task = Task { try await cache.body(of: "a.mp4", StalledRead.range).bytes }
            let isStalled = try await eventually {
                try await cache.openAsset()?.look {
                    $0.ledger.extents.runs == [StalledRead.present] && $0.waiters.count == 1
                } ?? false
            }
            try #require(isStalled)
            let fill = try #require(try cache.fills.page(FillQuery()).items.first)
            try await body(cache, StalledRead(task: task, fill: fill, latch: latch))
        }
    }

    /// The number of consecutive failures that opens a circuit of `breakingCache`.
    static let failures = 3

    /// A cache without retries. After `failures` consecutive failures the circuit of an upstream is open for `pause`.
    func breakingCache(
        pause: Duration = .seconds(30), _ change: (inout OriginSettings) -> Void = { _ in }
    ) throws -> TestCache {
        try cache { settings in
            settings.circuitBreaker = OriginSettings.CircuitBreaker(failures: Self.failures, pause: pause)
            settings.retries = 0
            change(&settings)
        }
    }

    /// Reads uncached bytes until the failures have opened the circuit.
    func exhaust(_ cache: AssetCache) async {
        upstream.serve("/a.mp4") { _ in .response(status: 503) }
        for _ in 0..<Self.failures {
            await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 2_000_000..<2_000_100) }
        }
    }
}

extension CacheError.Code {
    /// Whether an open circuit rejected the read without a request; the code then states the wait.
    var isLeftAlone: Bool { if case .upstreamUnreachable(_?) = self { true } else { false } }
}
