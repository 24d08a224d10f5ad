import CacheCore
import CacheTestKit
import Cryptography
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CacheStore

@Suite struct CatalogTests {
    @Test("Released migrations are unchanged")
    func migrationsAreFrozen() {
        let digests = Migrations.all.map { migration in
            (
                migration.name,
                HashFunction.sha256.digest(of: migration.sql.utf8).prefix(8).map { String($0, radix: 16) }.joined()
            )
        }
        #expect(
            digests.map(\.0) == [
                "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
                "v17", "v18", "v19", "v20",
            ])
        #expect(
            digests.map(\.1) == [
                "5fdcea324a72e59", "f4fefaf0fcf1105e", "1a4a79c45cf735b7", "1fc0c53f7aee33bf", "c1ebf633a2882d1",
                "94d79a3811c74c0", "4ffdecdb3786eb5", "3a9962523b6896e", "3d37c817f864237f", "2849f636b32cb1a",
                "e3b0c44298fc1c14", "b7c41f21c845c9", "e3b0c44298fc1c14", "8dc389101adacf6",
                "4cd75613d9db186", "963830af4bcf56bc", "96ca218ec5a5cae", "d7dcbc12f75e4e5", "ba1abfb6915fbbde",
                "fc2dfdafc7ea0f",
            ])
    }

    @Test("A catalog of a newer version is rejected")
    func aCatalogOfANewerVersionIsRefused() async throws {
        let directory = try TemporaryDirectory()
        try await {
            let testStore = try TestStore(in: directory)
            try await testStore.store.catalog.write { db in
                try db.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('v999')")
            }
            try testStore.store.close()
        }()

        let error = #expect(throws: CacheError.self) { try TestStore(in: directory) }

        #expect(error?.code == .conflict)
        #expect(error?.message.contains("newer version") == true)
    }

    @Test("Checksums of an earlier version are dropped, because they can be those of parts of the asset (RFC 9530 §2)")
    func checksumsOfEarlierVersions() async throws {
        let testStore = try TestStore()
        let catalog = testStore.store.catalog
        var record = TestStore.record(1)
        record.generation.headers = [
            "Content-MD5": "kAFQmDzST7DWlj99KOF/cg==", "x-amz-checksum-crc32": "AAAAAA==", "Repr-Digest": "md5=:AA==:",
        ]
        testStore.commits.began(record, file: try testStore.store.createFile(asset: record.id, generation: 1))
        try await testStore.commits.flush()
        let stored = try await catalog.asset(record.id)?.record.generation.headers
        try await catalog.write { db in
            try db.execute(sql: "UPDATE assets SET headers = replace(headers, ':checksums', 'x-other')")
        }
        let earlier = try await catalog.asset(record.id)?.record.generation.headers

        #expect(stored == record.generation.headers)
        #expect(earlier == ["x-other": "whole", "Repr-Digest": "md5=:AA==:"])
    }

    /// The list of a newer version starts with the identifiers of this version. The list of an older version is a
    /// prefix of them. Any other list is damaged.
    @Test(
        "A catalog with a damaged migration list is quarantined",
        arguments: [
            "UPDATE grdb_migrations SET identifier = 'v50' WHERE identifier = 'v10'",
            "DELETE FROM grdb_migrations WHERE identifier = 'v5'",
            "UPDATE grdb_migrations SET identifier = x'ff' WHERE identifier = 'v5'",
        ])
    func aCatalogWhoseListOfMigrationsIsDamagedIsPutAside(damage: String) async throws {
        let directory = try TemporaryDirectory()
        try await {
            let testStore = try TestStore(in: directory)
            try await testStore.store.catalog.write { db in
                try db.execute(sql: damage)
            }
            try testStore.store.close()
        }()

        let testStore = try TestStore(in: directory)

        #expect(testStore.store.loss != nil)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("data"))
        #expect(names.contains { $0.hasPrefix("catalog.sqlite.damaged-") })
    }

    @Test(
        "Paging returns every asset once, also with equal sort keys",
        arguments: AssetQuery.Sort.allCases, [true, false])
    func pagesShowEveryAssetOnceAlsoUnderEqualKeys(sort: AssetQuery.Sort, isDescending: Bool) async throws {
        let testStore = try TestStore()
        for number in UInt64(1)...25 {
            var record = TestStore.record(number)
            record.hits = Int64(number % 3)
            record.createdAt = Timestamp(seconds: Int64(number % 2))
            record.lastAccessAt = Timestamp(seconds: Int64(number % 4))
            let file = try testStore.store.createFile(asset: record.id, generation: 1)
            testStore.commits.began(record, file: file)
            try testStore.grow(file, 0..<10 * Int64(1 + number % 5))
        }
        try await testStore.commits.flush()

        var query = AssetQuery(sort: sort, isDescending: isDescending, limit: 4)
        var items: [AssetRow] = []
        repeat {
            let page = try await testStore.store.catalog.assetPage(query)
            #expect(page.items.count <= 4)
            items += page.items
            query.cursor = page.nextCursor
        } while query.cursor != nil

        #expect(Set(items.map(\.record.id)).count == 25 && items.count == 25)
        let keys = items.map(\.record.key)
        if sort == .key { #expect(keys == keys.sorted(by: isDescending ? (>) : (<))) }
        let values: [Int64] = items.map { item in
            switch sort {
            case .key: 0
            case .contentLength: item.record.generation.length ?? -1
            case .hits: item.record.hits
            case .createdAt: item.record.createdAt.milliseconds
            case .lastAccess: item.record.lastAccessAt.milliseconds
            case .cachedBytes: item.cachedBytes
            }
        }
        #expect(values == values.sorted(by: isDescending ? (>) : (<)))
    }

    @Test("A cursor of another list is rejected")
    func aCursorOfAnotherListIsRefused() async throws {
        let testStore = try TestStore()
        try testStore.fill(1)
        try testStore.fill(2)
        try await testStore.commits.flush()
        let catalog = testStore.store.catalog
        let cursor = try #require(try await catalog.assetPage(AssetQuery(sort: .hits, limit: 1)).nextCursor)

        for (text, sort) in [(cursor, AssetQuery.Sort.createdAt), ("", .hits), ("%%%", .hits), (cursor + "A", .hits)] {
            let error = await #expect(throws: CacheError.self) {
                try await catalog.assetPage(AssetQuery(sort: sort, cursor: text))
            }
            #expect(error?.code == .invalidField("cursor"), "\(text)")
        }
    }

    @Test("Asset lists apply each filter")
    func listsAreFilteredByWhatIsAskedFor() async throws {
        let testStore = try TestStore()
        try testStore.fill(1, length: 100, 0..<100)
        try testStore.fill(2, length: 100, 0..<50)
        try testStore.fill(3, length: nil, 0..<50)
        try testStore.fill(4, length: 100)
        try testStore.fill(5, length: 0)
        var other = TestStore.fullRecord(6)
        other.origin = "other"
        other.key = "/o/100%_x/6"
        testStore.commits.began(other, file: nil)
        try await testStore.commits.flush()

        let expected: [(AssetQuery, Set<UInt64>)] = [
            (AssetQuery(state: .complete), [1, 5]), (AssetQuery(state: .partial), [2, 3]),
            (AssetQuery(state: .empty), [4, 6]), (AssetQuery(origin: "other"), [6]), (AssetQuery(isPinned: true), [6]),
            (AssetQuery(tag: "film"), [6]), (AssetQuery(tag: "fil"), []), (AssetQuery(key: "/o/media/2.mp4"), [2]),
            (AssetQuery(prefix: "/o/media/"), [1, 2, 3, 4, 5]), (AssetQuery(prefix: "/o/100%_"), [6]),
            (AssetQuery(prefix: "/O/media/"), []), (AssetQuery(urls: ["https://up.test/3.mp4?sig=another"]), [3]),
            (AssetQuery(origin: "media", state: .partial, isPinned: false), [2, 3]),
            (AssetQuery(part: NamePart("/2.MP")), [2]), (AssetQuery(part: NamePart("up.test/3")), [3]),
            (AssetQuery(part: NamePart("100%_x")), [6]), (AssetQuery(part: NamePart("100%25_x")), [6]),
            (AssetQuery(prefix: "/o/media/", part: NamePart("mp4"), state: .partial), [2, 3]),
            (AssetQuery(part: NamePart("sig=")), []), (AssetQuery(part: NamePart("")), [1, 2, 3, 4, 5, 6]),
        ]
        for (query, numbers) in expected {
            let page = try await testStore.store.catalog.assetPage(query)
            #expect(Set(page.items.map(\.record.id)) == Set(numbers.map(TestStore.id)), "\(query)")
            #expect(try await testStore.store.catalog.assetCount(query) == numbers.count)
        }
    }

    @Test("A list with a prefix is the same when it is sorted and when it is read in its order")
    func prefixesHaveTwoPlans() async throws {
        let testStore = try TestStore()
        let names = ["a", "ab/1", "ab/2", "ab/\u{10FFFF}", "ab0", "ab\u{D7FF}", "ab\u{D7FF}x", "ab\u{E000}", "b", "ä"]
        for (number, name) in names.enumerated() {
            var record = TestStore.fullRecord(UInt64(number))
            record.key = name
            record.hits = Int64(names.count - number)
            testStore.commits.began(record, file: nil)
        }
        try await testStore.commits.flush()
        let catalog = testStore.store.catalog

        for prefix in ["", "a", "ab/", "ab\u{D7FF}", "ab/\u{10FFFF}", "\u{10FFFF}", "c"] {
            let expected = names.filter { $0.unicodeScalars.starts(with: prefix.unicodeScalars) }
            for sort in [AssetQuery.Sort.hits, .lastAccess, .key] {
                for most in [0, names.count] {
                    var keys: [String] = []
                    var query = AssetQuery(prefix: prefix, sort: sort, limit: 2)
                    repeat {
                        let page = try await catalog.assetPage(query, mostSorted: most)
                        keys += page.items.map(\.record.key)
                        query.cursor = page.nextCursor
                    } while query.cursor != nil
                    #expect(keys.sorted() == expected.sorted(), "\(prefix) \(sort) \(most)")
                    if sort == .hits { #expect(keys == expected, "descending") }
                }
            }
            #expect(try await catalog.assetCount(AssetQuery(prefix: prefix)) == expected.count)
            #expect(try await catalog.assetIDs(matching: AssetSelection(prefix: prefix)).count == expected.count)
        }
    }

    @Test("A selection matches only assets that meet all its conditions")
    func aPurgeSelectsWhatFitsEverythingGiven() async throws {
        let testStore = try TestStore()
        for number in UInt64(1)...3 { try testStore.fill(number, 0..<Int64(number) * 10) }
        try await testStore.commits.flush()
        let catalog = testStore.store.catalog
        _ = try await catalog.updateAsset(TestStore.id(2), AssetPatch(tags: ["x"]))

        #expect(try await catalog.assetIDs(matching: AssetSelection()).count == 3)
        let record = TestStore.record(2)
        let tagged = SelectedAsset(
            id: record.id, key: record.key, cachedBytes: 20, generation: record.generation.number,
            createdAt: record.createdAt, isPinned: false)
        #expect(try await catalog.assetIDs(matching: AssetSelection(origin: "media", tag: "x")) == [tagged])
        let some = AssetSelection(
            ids: [TestStore.id(1), TestStore.id(2)], createdBefore: record.createdAt - .seconds(1))
        #expect(try await catalog.assetIDs(matching: some).isEmpty)
        #expect(
            try await catalog.assetIDs(matching: AssetSelection(ids: [TestStore.id(2), TestStore.id(9)])) == [tagged])
        let urls = ["https://up.test/1.mp4", "https://up.test/3.mp4?sig=z", "https://up.test/9.mp4"]
        #expect(Set(try await catalog.assets(fetchedFrom: urls).map(\.id)) == [TestStore.id(1), TestStore.id(3)])
        let named = AssetSelection(patterns: [try #require(KeyPattern("**/2.mp4"))])
        #expect(try await catalog.assetIDs(matching: named) == [tagged])
    }

    @Test("The eviction scan returns the extents of every asset, least recently used first")
    func theEvictionPictureHasEveryAssetsExtentsThoseOfTheLongestUnusedFirst() async throws {
        let testStore = try TestStore()
        for number in UInt64(1)...3 {
            try testStore.fill(number, 0..<10, 50..<60)
            let used = TestStore.record(number).lastAccessAt + .seconds(Int64(10 - number))
            testStore.commits.touched(TestStore.id(number), at: used)
        }
        testStore.commits.began(TestStore.record(4), file: nil)
        try await testStore.commits.flush()
        _ = try await testStore.store.catalog.updateAsset(TestStore.id(2), AssetPatch(tags: ["a", "b"]))

        let entries = Mutex<[EvictionEntry]>([])
        try await testStore.store.catalog.eachAsset { entry in entries.withLock { $0.append(entry) } }

        let extents = entries.withLock { $0.map { ($0.asset, $0.extents) } }
        #expect(extents.map(\.0) == [4, 3, 2, 1].map(TestStore.id))
        #expect(entries.withLock { $0.map(\.owners.origin) } == Array(repeating: "media", count: 4))
        #expect(entries.withLock { $0.map(\.owners.tags) } == [[], [], ["a", "b"], []])
        #expect(extents.map(\.1) == [[]] + (1...3).map { _ in [0..<10, 50..<60] })
    }

    @Test("The data directory contains no secret in plain text")
    func nothingSecretLiesInTheDirectoryInTheClear() async throws {
        let testStore = try TestStore()
        let secret = "s3cr3t-credential-4711"
        var settings = OriginSettings(baseURL: "https://up.test/")
        settings.headers = HeaderList([.init("Authorization", "Bearer \(secret)")])
        var record = TestStore.record(1)
        record.url += "&token=\(secret)"
        let item = JobItemRecord(index: 0, reference: .url("https://up.test/a?token=\(secret)", key: nil))
        let catalog = testStore.store.catalog

        _ = try await catalog.saveOrigin(Origin(name: "media", settings: settings))
        _ = try await catalog.insertJob(JobRecord(id: "j", createdAt: Timestamp(seconds: 1), items: [item]))
        testStore.commits.began(record, file: nil)
        try await testStore.commits.flush()

        var searched = 0
        let files = FileManager.default.enumerator(atPath: testStore.directory.path("data"))
        while let name = files?.nextObject() as? String {
            guard let bytes = FileManager.default.contents(atPath: testStore.directory.path("data/" + name)) else {
                continue
            }
            searched += bytes.isEmpty ? 0 : 1
            #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(name)")
        }
        #expect(searched >= 3, "The catalog, its write-ahead log and the key must be searched.")
        #expect(try await catalog.origin("media")?.value.settings == settings)
        #expect(try await testStore.store.load(record.id)?.record == record)
        #expect(try await catalog.job("j")?.items == [item])
    }
}
