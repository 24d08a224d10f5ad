import CacheCore
import CacheStore
import CacheTestKit
import Dispatch
import Synchronization
import Testing

@testable import CacheEngine

/// Refetches of segments during their eviction.
@Suite struct SustainedEvictionTests {
    /// More bytes than one eviction batch.
    private static let size: Int64 = 132 << 20

    /// Evicts the whole asset and `more` bytes. A segment of the asset is added again just before the last batch
    /// unlinks the file. Returns whether the ledger has this segment afterwards.
    private func isKnown(index: Int32, afterFreeing more: Int64) async throws -> Bool {
        let bench = try Bench(LoopbackAsset(size: Self.size))
        let returning = Mutex<(@Sendable () -> Void)?>(nil)
        let disk = FaultyDisk { event in
            guard event.call == .unlink else { return }
            returning.withLock { returning in
                defer { returning = nil }
                return returning
            }?()
        }
        let policy = PolicySettings(capacityBytes: Self.size * 2, minFreeDiskBytes: 0, grace: .zero)
        return try await bench.cache(policy: policy, disk: disk).run { cache in
            #expect(try await cache.body(of: "a.mp4").bytes.count == Int(Self.size))
            let id = try await bench.id(in: cache)
            let space = cache.context.space
            let run = space.grid.run(of: index)
            returning.withLock {
                $0 = { space.arrived([run], of: id, from: AssetOwners(), at: Timestamp(seconds: 1_700_000_000)) }
            }
            _ = try await cache.evictor.free(Self.size + more)
            #expect(returning.withLock { $0 == nil }, "the segment must be added again before the file is unlinked")
            return space.with { $0.has(SegmentID(asset: id, index: index)) }
        }
    }

    @Test("An evicted segment that is read again can be evicted again")
    func whatCameBackGoesAgain() async throws {
        #expect(try await !isKnown(index: 0, afterFreeing: 1 << 20))
    }

    @Test("A segment refetched while its file is unlinked stays in the ledger")
    func whatIsFetchedAgainWhileItsFileGoesStaysKnown() async throws {
        let bench = try Bench()
        let goes = DispatchSemaphore(value: 0)
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let disk = FaultyDisk { event in
            guard event.call == .unlink, event.path.hasSuffix(".bytes") else { return }
            beginning.finish()
            goes.wait()
            goes.signal()  // for later unlinks
        }
        try await bench.cache(policy: PolicySettings(minFreeDiskBytes: 0, grace: .zero), disk: disk).run { cache in
            _ = try await cache.body(of: "a.mp4")
            let segment = SegmentID(asset: try await bench.id(in: cache), index: 0)
            try await cache.context.commits.flush()
            let isClosed = try await eventually {
                cache.context.openAssets.closeAll()
                return cache.context.openAssets.all.isEmpty
            }
            #expect(isClosed, "only the evictor may retain the asset")
            async let freed = cache.evictor.free(bench.asset.size)
            for await _ in begun {}
            let again = try await cache.body(of: "a.mp4", 0..<100_000)
            goes.signal()

            let report = try await freed
            #expect(report.freedBytes == bench.asset.size)
            #expect(again.bytes == bench.asset.bytes(0..<100_000))
            #expect(cache.context.space.with { $0.has(segment) })
            #expect(try await eventually(cache.isAtRest), "a running transfer still pins its bytes")
            #expect(try await cache.evictor.free(1).freedBytes > 0, "the refetched segment must be evictable")
        }
    }
}
