import CacheCore
import CacheTestKit
import Synchronization
import Testing

@testable import CacheEngine

/// Eviction while what went comes back at once.
@Suite struct SustainedEvictionTests {
    /// More than a batch evicts.
    private static let size: Int64 = 132 << 20

    @Test func whatCameBackWhileRoomIsMadeGoesAgain() async throws {
        let bench = try Bench(LoopbackAsset(size: Self.size))
        let returning = Mutex<(@Sendable () -> Void)?>(nil)
        let disk = FaultyDisk { event in
            // The last batch takes the file: the first one has gone by then.
            guard event.call == .unlink else { return }
            returning.withLock { returning in
                defer { returning = nil }
                return returning
            }?()
        }
        let policy = PolicySettings(capacityBytes: Self.size * 2, minFreeDiskBytes: 0, grace: .zero)
        try await bench.cache(policy: policy, disk: disk).run { cache in
            #expect(try await cache.body(of: "a.mp4").bytes.count == Int(Self.size))
            let id = try await bench.id(in: cache)
            let space = cache.context.space
            let first = space.grid.run(of: 0)
            returning.withLock {
                $0 = { space.arrived([first], of: id, from: AssetOwners(), at: Timestamp(seconds: 1_700_000_000)) }
            }
            _ = try await cache.evictor.free(Self.size + first.length)

            #expect(returning.withLock { $0 == nil }, "it came back")
            #expect(!space.with { $0.has(SegmentID(asset: id, index: 0)) }, "and went")
        }
    }
}
