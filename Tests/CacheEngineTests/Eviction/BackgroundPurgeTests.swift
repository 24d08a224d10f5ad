import CacheCore
import CacheStore
import CacheTestKit
import Logging
import Testing

@testable import CacheEngine

/// Purges that take effect at once and delete their assets in the background.
@Suite struct BackgroundPurgeTests {
    private static let names = (0..<40).map { "x/\($0)" }
    private let bench: Bench

    init() throws {
        bench = try Bench()
        for name in Self.names + ["y"] { bench.upstream.serve("/\(name)", LoopbackAsset(size: 5000)) }
    }

    private func read(_ names: [String], in cache: AssetCache) async throws -> Set<ReadOutcome.Class> {
        var classes: Set<ReadOutcome.Class> = []
        for name in names { classes.insert(try await cache.body(of: name).outcome.requestClass) }
        return classes
    }

    @Test("A purge in the background takes effect before it returns, for open and closed assets")
    func aPurgeInTheBackgroundTakesEffectAtOnce() async throws {
        let test = try bench.cache()
        try await test.run { _ = try await read(Self.names + ["y"], in: $0) }
        let restarted = try bench.cache()
        try await restarted.run { cache in
            // The reconciliation counts files that are removed meanwhile.
            let stored = try await restarted.store.usedDiskBytes()
            #expect(try await eventually { cache.context.space.with { $0.usedBytes } == stored })
            #expect(
                try await eventually {
                    cache.evictor.victims(toFree: .max).reduce(0) { $0 + $1.victim.bytes } == 41 * 5000
                })
            // Half of the assets are open, the others only in the catalog.
            #expect(try await read(Array(Self.names.prefix(20)), in: cache) == [.hit])
            let report = try await cache.evictions.purge(
                AssetSelection(prefix: "/o/media/x/"), isSoft: false, isDryRun: false, runsLater: true)
            let listed = try await cache.assets.page(AssetQuery()).items.map(\.record.key)
            let some = Self.names.enumerated().filter { $0.offset % 4 == 0 }.map(\.element)
            let first = try await read(some, in: cache)
            let second = try await read(some, in: cache)
            let id = try #require(report.planID)
            let ended = try await eventually { try cache.evictions.plan(id).state == .done }
            let plan = try cache.evictions.plan(id)

            #expect(report.isInBackground && report.entries.isEmpty && ended)
            #expect(listed == ["/o/media/y"])
            #expect(first == [.miss] && second == [.hit])
            #expect(try await read(["y"], in: cache) == [.hit])
            #expect(plan.assets == 40 && plan.assetsDone == 40 && plan.assetsChanged == 0 && plan.freedBytes == 200_000)

            // What is left is the new assets and `y`: in the catalog, on the disk and in the space ledger.
            try await cache.context.commits.flush()
            let kept = some.count + 1
            #expect(try await cache.assets.count(AssetQuery()) == kept)
            let expected = Int64(kept) * 5000...Int64(kept) * 8192
            #expect(try await eventually { expected.contains(cache.context.space.with { $0.usedBytes }) })
            #expect(cache.evictor.victims(toFree: .max).reduce(0) { $0 + $1.victim.bytes } == Int64(kept) * 5000)
            let evictions = try await cache.evictions.page(EvictionQuery(reason: .purge, limit: 100)).items.count
            #expect((35...40).contains(evictions))  // those that were stored again before their deletion have none
            _ = try await cache.evictions.purge(AssetSelection(origin: "media"), isSoft: false, isDryRun: false)
            #expect(try await eventually { cache.context.space.with { $0.usedBytes } == 0 })
            #expect(try await restarted.store.usedDiskBytes() == 0)
        }
    }

    @Test("Marks of an earlier run apply from the start, and their assets are deleted")
    func marksOfAnEarlierRunApply() async throws {
        try await bench.cache().run { _ = try await read(Self.names + ["y"], in: $0) }
        let owner = TokenOwner(id: "team", limits: ContentLimits(prefixes: ["/o/media/x/"]))
        let store = try Store.open(
            directory: bench.directory.path, wallClock: ManualWallClock(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let chosen = try await store.catalog.assetIDs(matching: AssetSelection(prefix: "/o/media/x/"))
        let expiry = ManualWallClock().now() + .seconds(3600)
        _ = try await store.mark(
            PurgeRecord(id: "p", owner: owner, assets: 40, pinnedAssets: 0, bytes: 200_000, expiresAt: expiry),
            chosen.map(AssetVersion.init), at: ManualWallClock().now())
        try store.close(isOrderly: false)

        let restarted = try bench.cache()
        try await restarted.run { cache in
            #expect(try await read(Array(Self.names.prefix(3)), in: cache) == [.miss])
            #expect(try await read(["y"], in: cache) == [.hit])
            #expect(try await eventually { try cache.evictions.plan("p").state == .done })
            #expect(try cache.evictions.plan("p").freedBytes == 200_000)
            #expect(try await cache.evictions.isOpen("p", to: owner))
            #expect(try await !cache.evictions.isOpen("p", to: TokenOwner(id: "other", limits: owner.limits)))
            try await cache.context.commits.flush()
            #expect(try await cache.assets.count(AssetQuery()) == 4)
            _ = try await cache.evictions.purge(AssetSelection(origin: "media"), isSoft: false, isDryRun: false)
            #expect(try await restarted.store.usedDiskBytes() == 0)
        }
    }

    @Test("The commit of a plan in the background skips changed assets and cannot be stopped")
    func aPlanIsCommittedInTheBackground() async throws {
        try await bench.cache().run { cache in
            _ = try await read(Self.names, in: cache)
            let report = try await cache.evictions.purge(
                AssetSelection(prefix: "/o/media/x/"), isSoft: false, isDryRun: true)
            let id = try #require(report.planID)
            let changed = try await cache.resolver.resolve(.mounted(origin: "media", path: "x/7", key: nil)).id
            try await cache.assets.delete(changed, isSoft: false)
            let begun = try await cache.evictions.commit(id, runsLater: true)
            #expect(begun.isInBackground && begun.assetsChanged == 1)
            #expect(try await read(Array(Self.names.prefix(3)), in: cache) == [.miss])
            #expect(try await eventually { try cache.evictions.plan(id).state == .done })
            #expect(try cache.evictions.plan(id).assetsDone == 39)
            let error = await #expect(throws: CacheError.self) { try await cache.evictions.commit(id) }
            #expect(error?.code == .conflict)
        }
    }

    @Test("A soft purge that runs later has ended when it returns")
    func aSoftPurgeRunsAtOnce() async throws {
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await read(Self.names, in: cache)
            let report = try await cache.evictions.purge(
                AssetSelection(prefix: "/o/media/x/"), isSoft: true, isDryRun: false, runsLater: true)
            test.wallClock.advance(by: .seconds(1))
            let plan = try cache.evictions.plan(try #require(report.planID))

            #expect(report.isInBackground && plan.state == .done && plan.assetsDone == 40 && plan.freedBytes == 0)
            #expect(try await read(Self.names, in: cache) == [.revalidated])
        }
    }

    @Test("A registered purge in the background is refused a stop")
    func aPurgeInTheBackgroundIsNotStopped() throws {
        let registry = PurgePlanRegistry([
            PurgePlan(
                PurgeRecord(
                    id: "p", owner: nil, assets: 1, pinnedAssets: 0, bytes: 1, expiresAt: Timestamp(seconds: 0)))
        ])
        let error = #expect(throws: CacheError.self) { try registry.cancel("p") }
        #expect(error?.code == .conflict)
        #expect(try registry.plan("p", at: Timestamp(seconds: 9)).progress.state == .running)
    }
}
