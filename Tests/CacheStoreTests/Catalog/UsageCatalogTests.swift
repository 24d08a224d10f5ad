import CacheCore
import CacheTestKit
import GRDB
import TestChance
import Testing

@testable import CacheStore

@Suite struct UsageCatalogTests {
    private static let now = Timestamp(seconds: 1_000_000)

    /// Stores an asset with cached bytes.
    private func fill(
        _ store: TestStore, _ number: UInt64, _ key: String, bytes: Int64, origin: String = "media",
        tags: [String] = [],
        type: String? = nil, createdAt: Timestamp = now
    ) async throws {
        var record = TestStore.record(number)
        (record.key, record.origin, record.tags, record.createdAt) = (key, origin, tags, createdAt)
        record.generation.contentType = type
        let file = try store.store.createFile(asset: record.id, generation: 1)
        store.commits.began(record, file: file)
        if bytes > 0 { try store.grow(file, 0..<bytes) }
        try await store.commits.flush()
    }

    private func names(_ catalog: Catalog, _ query: UsageQuery, at now: Timestamp = now) async throws -> [String] {
        try await catalog.usage(query, at: now).parts.map { "\($0.name) \($0.amount.assets) \($0.amount.bytes)" }
    }

    @Test("Assets and bytes are counted by origin, directory, tag, type and age")
    func groups() async throws {
        let store = try TestStore()
        let catalog = store.store.catalog
        try await fill(store, 1, "/o/media/a/one.mp4", bytes: 100, tags: ["x", "y"], type: "video/mp4; codecs=avc1")
        try await fill(store, 2, "/o/media/a/b/two.mp4?0123", bytes: 20, tags: ["x"], type: "video/mp4")
        try await fill(store, 3, "/o/media/three.mp4", bytes: 3, createdAt: Self.now - .seconds(3 * 86400))
        try await fill(store, 4, "https://cdn.test/c/four.ts", bytes: 4000, origin: "(absolute)")
        try await fill(store, 5, "a key", bytes: 0, origin: "(absolute)")

        #expect(try await names(catalog, UsageQuery(group: .origin)) == ["(absolute) 2 4000", "media 3 123"])
        #expect(try await names(catalog, UsageQuery(group: .tag)) == ["x 2 120", "y 1 100"])
        #expect(try await names(catalog, UsageQuery(group: .type)) == [" 3 4003", "video/mp4 2 120"])
        #expect(try await names(catalog, UsageQuery(group: .age)) == ["1h 4 4120", "7d 1 3"])
        #expect(
            try await names(catalog, UsageQuery(group: .age), at: Self.now + .seconds(400 * 86400)) == ["older 5 4123"])
        #expect(
            try await names(catalog, UsageQuery(group: .path)) == ["https://cdn.test/ 1 4000", "/o/media/ 3 123"])
        #expect(try await names(catalog, UsageQuery(group: .path, limit: 1)) == ["https://cdn.test/ 1 4000"])
        #expect(
            try await names(catalog, UsageQuery(group: .path, depth: 2)) == [
                "https://cdn.test/c/ 1 4000", "/o/media/a/ 2 120",
            ])
        #expect(try await names(catalog, UsageQuery(group: .path, prefix: "/o/media/")) == ["/o/media/a/ 2 120"])
        #expect(
            try await names(catalog, UsageQuery(group: .path, prefix: "/o/media/", depth: 2)) == ["/o/media/a/b/ 1 20"])
        #expect(try await names(catalog, UsageQuery(group: .path, prefix: "/o/med/")) == [])
        let inside = try await catalog.usage(UsageQuery(group: .path, prefix: "/o/media/"), at: Self.now)
        #expect(inside.total == AssetUsage.Amount(assets: 3, bytes: 123))
        #expect(
            try await catalog.usage(UsageQuery(group: .tag), at: Self.now).total
                == AssetUsage.Amount(assets: 5, bytes: 4123))
        #expect(try await catalog.usageFaults(repairing: false) == 0)
    }

    @Test("Tags that differ in their bytes only are counted apart")
    func equivalentTags() {
        let tags = ["e\u{301}x", "\u{E9}x", "e\u{301}x"]
        let names = UsageName.names(key: "k", origin: "o", tags: tags, contentType: nil, createdAt: Self.now)
        #expect(names.filter { $0.group == .tag }.count == 2)
    }

    @Test("A prefix must be a directory, and levels have an end")
    func invalidQueries() {
        for prefix in ["", "/", "/o/", "/o/media", "/o/media/a", "media/", "/o/media/?/", "/o/m/1/2/3/4/5/6/7/8/"] {
            #expect(throws: CacheError.self) { try UsageQuery(group: .path, prefix: prefix).level() }
        }
        #expect(throws: CacheError.self) { try UsageQuery(group: .path, depth: 9).level() }
        #expect(throws: CacheError.self) { try UsageQuery(group: .path, prefix: "/o/media/", depth: 8).level() }
        #expect((try? UsageQuery(group: .path, prefix: "/o/media/", depth: 7).level()) == 7)
    }

    @Test("After random changes the usage is that of a complete count", arguments: [1, 2, 3])
    func randomChanges(_ round: Int) async throws {
        var (random, seed) = SeededRandom.announced(round)
        let store = try TestStore()
        let catalog = store.store.catalog
        var files: [UInt64: SparseFile] = [:]
        for _ in 0..<120 {
            let asset = UInt64.random(in: 1...12, using: &random)
            var record = TestStore.record(asset)
            record.key = "/o/media/\(asset % 3)/\(asset).mp4"
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                // Another generation, or another key of the same asset.
                record.generation.number = Int64.random(in: 1...1000, using: &random)
                record.generation.contentType = Bool.random(using: &random) ? "video/mp4" : nil
                let file = try store.store.createFile(asset: record.id, generation: record.generation.number)
                store.commits.began(record, file: file)
                files[asset] = file
            case 1, 2:
                guard let file = files[asset] else { continue }
                let start = Int64.random(in: 0..<900, using: &random)
                try store.grow(file, start..<start + 100)
            case 3:
                guard let file = files[asset] else { continue }
                store.commits.cut(file, [0..<Int64.random(in: 1...500, using: &random)])
            case 4:
                guard files[asset] != nil else { continue }
                record.tags = [["x"], ["x", "y"], []][Int.random(in: 0..<3, using: &random)]
                record.generation.contentType = "audio/mp4"
                store.commits.refreshed(record)
            default:
                store.commits.discard(record.id)
                files[asset] = nil
            }
            if Int.random(in: 0..<4, using: &random) == 0 { try await store.commits.flush() }
        }
        try await store.commits.flush()
        #expect(try await catalog.usageFaults(repairing: false) == 0, "seed \(seed)")
        #expect(
            try await catalog.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM usage WHERE assets <= 0") } == 0)
    }

    @Test("A wrong usage is found and counted anew by a verification")
    func wrongUsage() async throws {
        let directory = try TemporaryDirectory()
        let store = try TestStore(in: directory)
        try await fill(store, 1, "/o/media/a/one.mp4", bytes: 100)
        try await store.store.catalog.write {
            try $0.execute(sql: "UPDATE usage SET bytes = bytes + 7 WHERE kind = 'path'")
        }
        let found = try await store.store.audit(repairing: false)
        // Two directories, as they are and as they should be.
        #expect(found.findings.map(\.kind) == [.wrongUsage] && found.findings.first?.file == "4 rows of the usage")
        #expect(try await store.store.audit(repairing: true).isRepaired)
        #expect(try await store.store.audit(repairing: false).findings == [])
        #expect(try await names(store.store.catalog, UsageQuery(group: .path)) == ["/o/media/ 1 100"])
    }
}
