import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Testing

@testable import CacheStore

@Suite struct WebhookCatalogTests {
    private static let start = Timestamp(seconds: 1_780_000_000)
    private let testStore: TestStore
    private var catalog: Catalog { testStore.store.catalog }

    init() throws { testStore = try TestStore() }

    private static func delivery(_ number: Int, of webhook: String = "ops") -> WebhookDelivery {
        WebhookDelivery(
            webhook: webhook, message: "m\(number)", kind: "job.ended", payload: #"{"label":"s3cret-\#(number)"}"#,
            createdAt: start + .seconds(number))
    }

    private func messages(of webhook: String = "ops") async throws -> [String] {
        try await catalog.deliveries(of: webhook, limit: 100_000).map(\.message)
    }

    @Test("Events are returned in the order of their next attempts, with their payload")
    func eventsAreOrdered() async throws {
        #expect(try await catalog.queue((0..<3).map { Self.delivery($0) }) == [:])
        _ = try await catalog.queue([Self.delivery(7, of: "other")])
        let first = try #require(try await catalog.deliveries(of: "ops", limit: 1).first)
        #expect(first.payload == #"{"label":"s3cret-0"}"# && first.createdAt == Self.start && first.attempts == 0)

        try await catalog.postpone(first.sequence, attempts: 3, until: Self.start + .seconds(50))
        #expect(try await messages() == ["m1", "m2", "m0"])
        #expect(try await catalog.deliveries(of: "ops", limit: 3).last?.attempts == 3)
        try await catalog.hasten("ops", to: Self.start + .milliseconds(1500))
        #expect(try await messages() == ["m1", "m0", "m2"])
        try await catalog.removeDeliveries([first.sequence])
        #expect(try await messages() == ["m1", "m2"])
        let backlogs = try await catalog.backlogs()
        #expect(backlogs["ops"] == WebhookBacklog(count: 2, oldestAt: Self.start + .seconds(1)))
        #expect(backlogs["other"]?.count == 1)
    }

    @Test("Of more than 10,000 events the oldest ones are dropped and counted by webhook")
    func theQueueIsLimited() async throws {
        let most = Catalog.mostDeliveries
        #expect(most == 10_000)
        for begin in stride(from: 0, to: most, by: 500) {
            let batch = (begin..<begin + 500).map { Self.delivery($0, of: $0 % 2 == 0 ? "even" : "odd") }
            #expect(try await catalog.queue(batch) == [:])
        }
        let dropped = try await catalog.queue((0..<5).map { Self.delivery(most + $0, of: "even") })
        #expect(dropped == ["even": 3, "odd": 2])
        let backlogs = try await catalog.backlogs()
        #expect((backlogs["even"]?.count ?? 0) + (backlogs["odd"]?.count ?? 0) == most)
        #expect(backlogs["even"]?.oldestAt == Self.start + .seconds(6))
    }

    @Test("Events of webhooks that are not configured are deleted")
    func othersAreDeleted() async throws {
        _ = try await catalog.queue([Self.delivery(1), Self.delivery(2, of: "b"), Self.delivery(3, of: "c")])
        #expect(try await catalog.keepDeliveries(of: ["ops", "b"]) == 1)
        #expect(try await catalog.backlogs().keys.sorted() == ["b", "ops"])
        #expect(try await catalog.keepDeliveries(of: []) == 2)
    }

    @Test("Documents of events are not readable in the files of the store, and damaged rows are deleted")
    func documentsAreSealed() async throws {
        _ = try await catalog.queue([Self.delivery(1), Self.delivery(2)])
        try await catalog.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        let path = StoreLayout(directory: testStore.directory.path("data")).catalog
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(bytes.range(of: Data("m1".utf8)) != nil && bytes.range(of: Data("s3cret".utf8)) == nil)

        try await catalog.write { db in
            try db.execute(sql: "DROP TRIGGER webhook_deliveries_updated")
            try db.execute(sql: "UPDATE webhook_deliveries SET webhook = 'changed' WHERE message = 'm1'")
            #expect(try Self.isDamaged(db) == 1)
        }
    }

    private static func isDamaged(_ db: Database) throws -> Int? {
        try Int.fetchOne(
            db,
            sql: "SELECT count(*) FROM webhook_deliveries WHERE NOT (\(ChecksummedTable.webhookDeliveries.isRight))")
    }
}
