import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Catalog damage found during use does not stop any reader.
@Suite struct DamagedCatalogTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func readsRight(_ path: String, from cache: AssetCache) async throws -> Bool {
        try await cache.body(of: path).bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size))
    }

    @Test("Assets with unreadable catalog rows are bypassed", arguments: [Verification.suspect, .always])
    func whatItCannotTellIsReadThrough(verification: Verification) async throws {
        try await bench.cache { $0.verification = verification }.run { cache in
            let isRight = try await readsRight("a.mp4", from: cache)
            #expect(isRight)
        }
        try bench.directory.damageCatalog(table: "extents")
        try await bench.cache { $0.verification = verification }.run { cache in
            #expect(cache.catalogLoss == nil && !cache.catalogIsDamaged)
            for _ in 0..<2 {
                let isRight = try await readsRight("a.mp4", from: cache)
                #expect(isRight)
            }
            #expect(cache.catalogIsDamaged)
            let figures = try await cache.statistics.snapshot().store
            #expect(figures.isDamaged)
            let isAtRest = try await cache.isAtRest()
            #expect(isAtRest)
        }
        try await bench.cache().run { cache in
            #expect(cache.catalogLoss != nil)
            let isRight = try await readsRight("a.mp4", from: cache)
            #expect(isRight)
        }
    }

    @Test("Assets that the damaged catalog cannot store are bypassed")
    func whatItCannotTakeIsReadThrough() async throws {
        bench.upstream.serve("/b.mp4", bench.asset)
        bench.upstream.serve("/c.mp4", bench.asset)
        try await bench.cache().run { cache in _ = try await cache.body(of: "a.mp4") }
        try bench.directory.damageCatalog(table: "extents")
        try await bench.cache().run { cache in
            // The damaged table has no row of this asset, but its commit would add one.
            let isRight = try await readsRight("b.mp4", from: cache)
            #expect(isRight)
            await #expect(throws: CacheError.self) { try await cache.context.commits.flush() }

            #expect(!cache.context.store.canKeep)
            let isRightStill = try await readsRight("c.mp4", from: cache)
            #expect(isRightStill)
            let open = try await cache.openAsset("c.mp4")
            #expect(open?.look { $0.ledger.extents.isEmpty } ?? true, "a damaged catalog must prevent storage")
        }
    }

    @Test("A damaged catalog found at the start is replaced by an empty one")
    func aStartThatMeetsItBeginsEmpty() async throws {
        try await bench.cache().run { cache in _ = try await cache.body(of: "a.mp4") }
        try bench.directory.damageCatalog(table: "assets")
        try await bench.cache().run { cache in
            #expect(cache.catalogLoss != nil)
            let isRight = try await readsRight("a.mp4", from: cache)
            #expect(isRight)
        }
    }
}
