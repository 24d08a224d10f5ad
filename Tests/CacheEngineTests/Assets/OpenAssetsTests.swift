import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct OpenAssetsTests {
    /// Inserts an asset into the table and retains it.
    private static func add(_ number: UInt64, to table: OpenAssets, _ cache: AssetCache) throws -> OpenAsset {
        let target = AssetTarget(
            id: AssetID(high: 0, low: number), key: "\(number)", originName: "media",
            settings: OriginSettings(baseURL: "http://127.0.0.1"), url: "http://127.0.0.1/", path: "/")
        return try #require(
            table.acquire(
                orInsert: OpenAsset(target: target, context: cache.context),
                asOf: table.moment(for: target.id, cache.context.commits)))
    }

    @Test("Idle assets above the limit are closed, longest idle first")
    func idleAssetsBeyondTheLimitAreClosedLongestIdleFirst() async throws {
        let bench = try Bench()
        let table = OpenAssets(idleLimit: 2, shards: 1)
        try await bench.cache().run { cache in
            for number in 1...4 as ClosedRange<UInt64> {
                let asset = try Self.add(number, to: table, cache)
                if number > 1 { table.release(asset) }
            }
            let surplus = table.idleSurplus()
            table.close(surplus)

            #expect(surplus.map(\.asset.id.low) == [2])
            #expect(Set(table.all.map(\.id.low)) == [1, 3, 4])
        }
    }

    @Test("A used asset is idle from its last use")
    func whatIsUsedAgainIsIdleFromItsLastUse() async throws {
        let bench = try Bench()
        let table = OpenAssets(idleLimit: 1, shards: 1)
        try await bench.cache().run { cache in
            let assets = try (1...3).map { try Self.add($0, to: table, cache) }
            assets.forEach(table.release)
            let first = table.idleSurplus()
            table.retain(assets[0])
            table.close(first)
            #expect(Set(table.all.map(\.id.low)) == [1, 3])
            table.release(assets[0])

            #expect(table.idleSurplus().map(\.asset.id.low) == [3])
        }
    }

    /// A catalog row read before a removal is outdated, whether the removal is running or done.
    @Test("An open or removed asset is not treated as closed")
    func whatIsOpenOrWasRemovedMeanwhileIsNotAsTheCatalogHadIt() async throws {
        let bench = try Bench()
        let table = OpenAssets(idleLimit: 0, shards: 1)
        try await bench.cache().run { cache in
            let (open, other) = (try Self.add(1, to: table, cache), AssetID(high: 0, low: 2))
            let before = table.removals
            #expect(!table.isClosed(open.id, since: before) && table.isClosed(other, since: before))
            table.beginRemoval(of: [other])
            #expect(!table.isClosed(other, since: before) && !table.isClosed(other, since: table.removals))
            table.endRemoval(of: [other])
            #expect(!table.isClosed(other, since: before) && table.isClosed(other, since: table.removals))
            table.release(open)
            table.close(table.idleSurplus())
            #expect(!table.isClosed(open.id, since: before) && table.isClosed(open.id, since: table.removals))
        }
    }

    @Test("A discarded asset is not accounted")
    func whatWasTakenOutOfTheTableIsNotCounted() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            // The fill accounts segments until its last bytes are committed.
            try await cache.context.commits.flush()
            let asset = try #require(try await cache.openAsset())
            let now = cache.context.wallClock.now()
            cache.context.openAssets.retain(asset)
            #expect(
                asset.count(lastUse: now) && cache.context.space.with { $0.has(SegmentID(asset: asset.id, index: 0)) })
            cache.context.openAssets.discard(asset)
            #expect(!asset.count(lastUse: now))
            #expect(!cache.context.space.with { $0.has(SegmentID(asset: asset.id, index: 0)) })
            cache.context.openAssets.release(asset)
        }
    }

    @Test("Selecting idle assets among thousands is fast")
    func aLookAtThousandsOfIdleAssetsTakesAMoment() async throws {
        let bench = try Bench()
        let table = OpenAssets()
        try await bench.cache().run { cache in
            let assets = try (1...5000).map { try Self.add($0, to: table, cache) }
            #expect(table.idleSurplus().isEmpty)
            assets.forEach(table.release)
            let surplus = table.idleSurplus()
            table.close(surplus)

            #expect(Set(surplus.map(\.asset.id.low)) == Set(1...4488))
            #expect(table.all.count == 512 && table.idleSurplus().isEmpty)
        }
    }

    @Test("A closed asset is reopened with all its extents")
    func anAssetThatWasClosedIsOpenedAgainWithEverythingItHad() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<700_000)
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            cache.context.openAssets.closeAll()
            let again = try await cache.body(of: "a.mp4", 0..<700_000)

            #expect(again.outcome.requestClass == .hit)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<700_000)))
        }
    }
}
