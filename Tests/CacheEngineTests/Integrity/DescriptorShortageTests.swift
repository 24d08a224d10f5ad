import CacheCore
import CacheStore
import CacheTestKit
import Glibc
import Testing

@testable import CacheEngine

/// The process has no descriptor left: a read says so, and the next one is served as if nothing had been.
@Suite struct DescriptorShortageTests {
    enum Way: CaseIterable {
        /// Nothing is on disk.
        case cold
        /// On disk, and not open.
        case closed
        /// Open, but its descriptor was given to others.
        case crowdedOut
    }

    @Test(arguments: Way.allCases) func aReadIsTurnedAwayAndTheNextOneIsServed(_ way: Way) async throws {
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
