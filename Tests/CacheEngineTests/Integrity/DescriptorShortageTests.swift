import CacheCore
import CacheStore
import CacheTestKit
import Glibc
import Testing

@testable import CacheEngine

/// Descriptor exhaustion: a read is rejected, and the next read is served normally.
@Suite struct DescriptorShortageTests {
    /// State of the asset before the read.
    enum Way: CaseIterable {
        /// The asset is not cached.
        case cold
        /// The asset is cached and closed.
        case closed
        /// The asset is open, but the fd cache has closed its descriptor.
        case crowdedOut
    }

    @Test("A read without a descriptor is rejected, and the next read is served", arguments: Way.allCases)
    func aReadIsTurnedAwayAndTheNextOneIsServed(_ way: Way) async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk, openFileLimit: 2).run { cache in
            if way != .cold { _ = try await cache.body(of: "a.mp4") }
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            switch way {
            case .cold: break
            case .closed: cache.context.openAssets.closeAll()
            case .crowdedOut: try await bench.crowdOut(of: cache)
            }

            disk.fail(.open, with: EMFILE, isLasting: true)
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<100) }
            disk.heal()
            let again = try await cache.body(of: "a.mp4")
            _ = try await eventually { try await cache.isAtRest() }

            #expect(error?.code == .overloaded)
            #expect(again.status == 200 && again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(again.outcome.requestClass == (way == .cold ? .miss : .hit))
            #expect(try await cache.isAtRest())
        }
    }
}
