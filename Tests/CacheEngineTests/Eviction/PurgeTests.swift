import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct PurgeTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test("A reader of a deleted asset finishes from the cached bytes")
    func aReaderOfADeletedAssetFinishesOnWhatIsOnDisk() async throws {
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4")
            let read = try await cache.reader.read(Bench.media, request: ContentRequest())
            try await cache.assets.delete(read.assetID, isSoft: false)
            var bytes: [UInt8] = []
            while let next = try await read.nextBytes() { bytes += next }
            read.finish(.sent)
            let used = try await test.store.usedDiskBytes()

            #expect(bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(used == 0)
            #expect(cache.context.space.with { $0.usedBytes } == 0)
            await #expect(throws: CacheError.self) { try await cache.assets.asset(read.assetID) }
        }
    }

    @Test("A reader of a deleted asset is aborted at its first missing byte")
    func aReaderOfADeletedAssetIsAbortedWhereBytesAreMissing() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        bench.upstream.failNext("/a.mp4", .stall(after: 200_000, until: latch))
        try await bench.cache().run { cache in
            let reader = Task { try await cache.body(of: "a.mp4", 0..<400_000) }
            await latch.reached()
            let id = try await bench.id(in: cache)
            _ = try await eventually { (try? await cache.assets.extents(of: id)) == [0..<200_000] }
            try await cache.assets.delete(id, isSoft: false)
            let error = await #expect(throws: CacheError.self) { try await reader.value }
            let anew = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(error?.code == .assetChanged)
            #expect(anew.outcome.requestClass == .miss)
        }
    }

    @Test("Purged bytes are not served again despite concurrent readers", arguments: [false, true])
    func purgedBytesAreNotServedAgainWhoeverReadsMeanwhile(runsLater: Bool) async throws {
        try await bench.cache().run { cache in
            for round in 1...30 as ClosedRange<UInt64> {
                _ = try await cache.body(of: "a.mp4", 0..<200_000)
                let next = LoopbackAsset(size: 3 << 20, seed: round + 100)
                let readers = (0..<8).map { _ in
                    Task { for _ in 0..<20 { _ = try? await cache.body(of: "a.mp4", 0..<200_000) } }
                }
                bench.upstream.serve("/a.mp4", next)
                _ = try await cache.evictions.purge(
                    AssetSelection(origin: "media"), isSoft: false, isDryRun: false, runsLater: runsLater)
                let after = try await cache.body(of: "a.mp4", 0..<200_000)
                for reader in readers { await reader.value }

                #expect(after.bytes.isSame(as: next.bytes(0..<200_000)), "round \(round)")
            }
        }
    }

    @Test("A soft purge keeps the bytes and revalidates before the next use")
    func aSoftPurgeKeepsTheBytesAndAsksFirst() async throws {
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            try await cache.assets.delete(try await bench.id(in: cache), isSoft: true)
            test.wallClock.advance(by: .seconds(1))
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.outcome.requestClass == .revalidated)
            #expect(bench.upstream.requests.map(\.status) == [206, 304])
        }
        try await bench.cache().run { cache in
            try await cache.assets.delete(try await bench.id(in: cache), isSoft: true)
        }
        let restarted = try bench.cache()
        try await restarted.run { cache in
            restarted.wallClock.advance(by: .seconds(2))
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.outcome.requestClass == .revalidated)
        }
    }

    @Test("A purge removes assets that meet all conditions, and a dry run removes none")
    func aPurgeTakesWhatMeetsEveryConditionAndADryRunNothing() async throws {
        for name in ["x/1", "x/2", "y/1"] { bench.upstream.serve("/\(name)", LoopbackAsset(size: 1000)) }
        try await bench.cache().run { cache in
            for name in ["x/1", "x/2", "y/1"] { _ = try await cache.body(of: name) }
            let selection = AssetSelection(origin: "media", prefix: "/o/media/x/")
            let plan = try await cache.evictions.purge(selection, isSoft: false, isDryRun: true)
            let listed = try await cache.assets.page(AssetQuery()).items.count
            let done = try await cache.evictions.purge(selection, isSoft: false, isDryRun: false)
            let left = try await cache.assets.page(AssetQuery()).items.map(\.record.key)

            #expect(plan.assets == 2 && plan.freedBytes == 2000 && listed == 3)
            #expect(done.assets == 2 && done.freedBytes == 2000)
            #expect(left == ["/o/media/y/1"])
        }
    }

    /// The purges made at the same time as a read, and whether they concern it.
    private static let purges: [(AssetSelection, keys: [String]?, urls: [String]?, isOwn: Bool)] = [
        (AssetSelection(origin: "media"), nil, nil, true), (AssetSelection(origin: "other"), nil, nil, false),
        (AssetSelection(prefix: "/o/media/a"), nil, nil, true), (AssetSelection(prefix: "/o/media/b"), nil, nil, false),
        (AssetSelection(ids: [AssetID(naming: "/o/media/a.mp4")]), nil, nil, true),
        (AssetSelection(ids: [AssetID(naming: "/o/media/b.mp4")]), nil, nil, false),
        (AssetSelection(), ["/o/media/a.mp4"], nil, true), (AssetSelection(), ["/o/media/b.mp4"], nil, false),
        (AssetSelection(), nil, ["a.mp4"], true), (AssetSelection(), nil, ["b.mp4"], false),
        (AssetSelection(patterns: KeyPattern("/o/*/a.mp4").map { [$0] }), nil, nil, true),
        (AssetSelection(patterns: KeyPattern("/o/*/b.mp4").map { [$0] }), nil, nil, false),
    ]

    @Test("A purge makes responses to earlier requests and recent assets stale only if it may select them")
    func purgesConcernOnlyTheirAssets() async throws {
        for (selection, keys, names, isOwn) in Self.purges {
            let urls = names?.map { bench.upstream.url("/\($0)") }
            let latch = LoopbackLatch()
            let test = try bench.cache()
            try await test.run { cache in
                bench.upstream.serve("/a.mp4", LoopbackAsset(size: 1000, cacheControl: "max-age=60"))
                bench.upstream.failNext("/a.mp4", .stallBeforeHead(until: latch))
                let reader = Task { try await cache.body(of: "a.mp4") }
                await latch.reached()
                _ = try await cache.evictions.purge(selection, keys: keys, urls: urls, isSoft: true, isDryRun: false)
                latch.release()
                _ = try await reader.value
                test.wallClock.advance(by: .seconds(1))
                let running = try await cache.body(of: "a.mp4").outcome.requestClass
                _ = try await cache.evictions.purge(selection, keys: keys, urls: urls, isSoft: true, isDryRun: false)
                test.wallClock.advance(by: .seconds(1))
                let recent = try await cache.body(of: "a.mp4").outcome.requestClass
                try await cache.assets.delete(try await bench.id(in: cache), isSoft: false)

                let expected: ReadOutcome.Class = isOwn ? .revalidated : .hit
                #expect(running == expected && recent == expected, "\(selection) \(keys ?? []) \(urls ?? [])")
            }
        }
    }

    @Test("A request from before more purges than are kept counts as purged")
    func forgottenPurgesConcernAll() throws {
        let purges = RecentPurges()
        let target = AssetTarget(
            id: AssetID(naming: "/o/media/a.mp4"), key: "/o/media/a.mp4", originName: "media",
            settings: OriginSettings(baseURL: "http://127.0.0.1"), url: "http://127.0.0.1/a.mp4", path: "/a.mp4")
        for _ in 0..<RecentPurges.most { purges.add(PurgeScope(AssetSelection(origin: "other"))) }

        #expect(!purges.mayContain(target, nil, since: 0))
        purges.add(PurgeScope(AssetSelection(origin: "other")))
        #expect(purges.mayContain(target, nil, since: 0) && !purges.mayContain(target, nil, since: 1))
    }

    @Test("A purge by tag or media type concerns known assets only if they have it")
    func conditionsOfRecords() async throws {
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            let asset = try #require(try await cache.openAsset())
            let scopes = [
                (AssetSelection(tag: "a"), false), (AssetSelection(contentType: "video/MP4"), true),
                (AssetSelection(contentType: "video/*"), true), (AssetSelection(contentType: "audio/*"), false),
            ]
            for (selection, isContained) in scopes {
                #expect(PurgeScope(selection).mayContain(asset.target, asset.record) == isContained, "\(selection)")
                #expect(PurgeScope(selection).mayContain(asset.target, nil))
            }
            _ = try await cache.assets.patch(asset.id, AssetPatch(tags: ["a"]))
            #expect(PurgeScope(AssetSelection(tag: "a")).mayContain(asset.target, asset.record))
        }
    }
}
