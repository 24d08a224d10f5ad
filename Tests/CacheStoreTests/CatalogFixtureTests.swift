import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Testing

@testable import CacheStore

/// Stores written by earlier versions. `Fixtures/v5.sql` is the catalog written by the version with the migration v5.
/// The tests create its encryption key and the asset files.
@Suite struct CatalogFixtureTests {
    /// All versions except the current one. A new migration requires a fixture of the version before it.
    private static let versions = Migrations.all.dropLast().map(\.name)

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func id(_ number: UInt64) -> AssetID {
        let word = number * 0x0101_0101_0101_0101
        return AssetID(high: word, low: word)
    }

    /// The extents of the assets that have files, keyed by asset number.
    private static func claims(_ version: Int) -> [UInt64: [ByteRange]] {
        var claims: [UInt64: [ByteRange]] = [1: [0..<1000], 2: [0..<300_000, 400_000..<500_000]]
        if version >= 2 { claims[4] = [0..<10] }
        return claims
    }

    /// Creates the directory of the store.
    private func layOut(_ name: String, _ version: Int) throws {
        let layout = StoreLayout(directory: directory.path("data"))
        for path in [layout.directory, layout.assets] { _ = try SystemDisk().createDirectory(path) }
        try Data(0..<32).write(to: URL(fileURLWithPath: layout.secretKey))
        for (number, extents) in Self.claims(version) {
            let file = FileName(asset: Self.id(number), generation: 1, serial: 3 << 32 | Int64(number))
            _ = try SystemDisk().createDirectory(layout.shard(file.shard))
            var bytes = Data(count: Int(extents.map(\.upperBound).max() ?? 0))
            for run in extents {
                bytes.replaceSubrange(Int(run.lowerBound)..<Int(run.upperBound), with: TestStore.content(run))
            }
            try bytes.write(to: URL(fileURLWithPath: layout.path(of: file)))
        }
        let text = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "Fixtures/\(name).sql")
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { $0.add(function: RowChecksum.function) }
        let queue = try DatabaseQueue(path: layout.catalog, configuration: configuration)
        try queue.writeWithoutTransaction { try $0.execute(sql: String(contentsOf: text, encoding: .utf8)) }
        try queue.close()
    }

    @Test("A store written by an earlier version keeps all its contents", arguments: versions)
    func aStoreOfAnEarlierVersionGoesOnWithAllItHas(name: String) async throws {
        let version = try #require(Int(name.dropFirst()))
        try layOut(name, version)

        let testStore = try TestStore(in: directory)

        #expect(testStore.store.loss == nil && testStore.store.damagedRowCount == 0)
        let tidied = try await testStore.store.reconcile()
        #expect(tidied.removedFiles == 0 && tidied.emptiedRows == 0 && tidied.cutRows == 0)
        try await checkAssets(testStore.store, version)
        try await checkJobs(testStore.store.catalog, version)
        try await checkSettings(testStore.store.catalog, version)
        #expect(try await testStore.store.audit(repairing: false).findings == [])
        try testStore.store.close()
        #expect(try await TestStore(in: directory).store.load(Self.id(2))?.extents.runs == Self.claims(version)[2])
    }

    private func checkAssets(_ store: Store, _ version: Int) async throws {
        for (number, extents) in Self.claims(version) {
            let loaded = try #require(try await store.load(Self.id(number)))
            #expect(loaded.extents.runs == extents)
            #expect(loaded.record.url == "https://up.test/\(number).mp4?sig=\(number)")
            for run in extents { #expect(try #require(loaded.file).bytes(run).isSame(as: TestStore.content(run))) }
        }
        let pinned = try #require(try await store.load(Self.id(1))?.record)
        #expect(pinned.isPinned && pinned.tags == ["film", "2026"] && pinned.ttl == .seconds(60))
        #expect(pinned.pinnedUntil == (version >= 7 ? Timestamp(seconds: 1_990_000_000) : nil))
        #expect(try await store.load(Self.id(2))?.record.verify == (version >= 8 ? .always : nil))
        #expect(try await store.load(Self.id(3))?.file == nil)
        #expect(try await store.load(Self.id(4))?.record.variant.fields.count == (version >= 2 ? 1 : nil))
        #expect(try await store.catalog.totals().assets == (version >= 2 ? 4 : 3))
        let usage = try await store.catalog.usage(UsageQuery(group: .origin), at: Timestamp(seconds: 2_000_000_000))
        #expect(usage.total.bytes == Self.claims(version).values.joined().reduce(0) { $0 + $1.length })
    }

    private func checkJobs(_ catalog: Catalog, _ version: Int) async throws {
        let done = try #require(try await catalog.job("job-1"))
        #expect(done.state == .succeeded && done.items.count == 2 && done.priority == .high)
        #expect(done.items[1].reference == .mounted(origin: "media", path: "2.mp4", key: nil))
        let left = try await catalog.unfinishedJobs()
        #expect(left.map(\.id) == ["job-2"] && left.first?.state == .queued)
        #expect(left.first?.items.map(\.state) == [.queued, .queued])
        #expect(left.first?.queue == (version >= 3 ? "player" : nil))
        #expect(left.first?.supersedes == (version >= 4))
    }

    private func checkSettings(_ catalog: Catalog, _ version: Int) async throws {
        let origin = try #require(try await catalog.origin("media"))
        #expect(origin.revision == 1 && origin.value.settings.baseURL == "https://up.test/base")
        #expect(origin.value.settings.retries == 9 && origin.value.settings.freshness == .ttl(.milliseconds(1500)))
        #expect(origin.value.settings.hedging == (version >= 3 ? true : OriginSettings(baseURL: "").hedging))
        let policy = try #require(try await catalog.policy())
        #expect(policy.value.algorithm == (version >= 5 ? .s3fifo : .lru) && policy.value.capacityBytes == 1 << 30)
        #expect(try await catalog.segmentForm()?.segmentBytes == (version >= 5 ? 1 << 20 : nil))
        let evictions = try await catalog.evictionPage(EvictionQuery(), since: Timestamp(seconds: 0)).items
        #expect(evictions.count == (version >= 6 ? 1 : 0))
        let queued = try await catalog.deliveries(of: "ops", limit: 10)
        #expect(queued.map(\.payload) == (version >= 17 ? [#"{"type":"disk.full"}"#] : []))
        #expect(try await catalog.tokens().tokens.keys.sorted() == (version >= 19 ? ["player"] : []))
        let (schedules, damaged) = try await catalog.schedules()
        #expect(schedules.map(\.schedule.name) == (version >= 18 ? ["nightly"] : []) && damaged.isEmpty)
    }
}
