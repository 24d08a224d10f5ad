import CacheCore
import CacheStore
import CacheTestKit
import Foundation
import Testing

@testable import CacheEngine

/// Files of the store are removed while it is in use.
@Suite struct VanishedFileTests {
    @Test("An asset with a removed file is fetched again", arguments: [Verification.suspect, .always])
    func anAssetWhoseFileIsRemovedIsFetchedAgain(_ verification: Verification) async throws {
        let bench = try Bench()
        let test = try bench.cache(openFileLimit: 2) { $0.verification = verification }
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1_000_000)
            try await loseFiles(of: cache, bench)

            // Reads may be cut off until the asset is removed; later reads must be right.
            _ = try? await cache.body(of: "a.mp4", 0..<1_000_000)
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            for _ in 0..<2 {
                let read = try await cache.body(of: "a.mp4", 500_000..<1_500_000)
                #expect(read.bytes.isSame(as: bench.asset.bytes(500_000..<1_500_000)))
                _ = try await eventually { try await cache.isAtRest() }
            }
            let last = try await cache.body(of: "a.mp4", 500_000..<1_500_000)
            #expect(last.outcome.requestClass == .hit)
        }
    }

    @Test("A write that finds its file removed restarts the asset")
    func aWriteThatFindsNoFileBeginsTheAssetAnew() async throws {
        let bench = try Bench()
        try await bench.cache(openFileLimit: 2).run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            try await loseFiles(of: cache, bench)

            _ = try? await cache.body(of: "a.mp4", 2_000_000..<2_100_000)
            let read = try await cache.body(of: "a.mp4", 2_000_000..<2_100_000)
            #expect(read.bytes.isSame(as: bench.asset.bytes(2_000_000..<2_100_000)))
        }
    }

    private func loseFiles(of cache: AssetCache, _ bench: Bench) async throws {
        _ = try await eventually { try await cache.isAtRest() }
        try await cache.context.commits.flush()
        try await bench.crowdOut(of: cache)
        for file in try bench.directory.assetFiles() { try SystemDisk().unlink(file) }
    }

    @Test("A missing data directory is detected")
    func aDataDirectoryThatIsGoneIsNoticed() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            #expect(!cache.storeIsGone)
            let aside = try TemporaryDirectory()
            try FileManager.default.moveItem(atPath: bench.directory.path, toPath: aside.path("data"))

            #expect(try await eventually { cache.storeIsGone })
            let kept = try await cache.body(of: "a.mp4")
            #expect(kept.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            _ = try await cache.statistics.snapshot()
            try FileManager.default.moveItem(atPath: aside.path("data"), toPath: bench.directory.path)
            #expect(try await eventually { !cache.storeIsGone })
        }
    }
}
