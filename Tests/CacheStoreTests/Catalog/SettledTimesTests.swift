import CacheCore
import CacheTestKit
import GRDB
import Testing

@testable import CacheStore

/// Timestamps in the future, found after the clock was set back between two starts.
@Suite struct SettledTimesTests {
    private static let now = TestStore.FixedClock().now()

    /// Stores an asset with `time` in all its timestamps and reopens the store. Returns the asset record and the
    /// arrival time of its segment.
    private func reopened(_ time: Timestamp) async throws -> (record: AssetRecord, arrivedAt: Int64) {
        let directory = try TemporaryDirectory()
        let first = try TestStore(in: directory)
        var record = TestStore.record(1)
        (record.createdAt, record.lastAccessAt, record.generation.receivedAt) = (time, time, time)
        record.generation.freshUntil = time + .seconds(3600)
        let file = try first.store.createFile(asset: record.id, generation: 1)
        first.commits.began(record, file: file)
        try first.grow(file, 0..<1000)
        try await first.commits.flush()
        let id = record.id
        try await first.store.catalog.pool.write { db in
            try db.execute(
                sql: "INSERT INTO segments VALUES (?, 0, 1, 0, 0, NULL, ?, ?, 1)",
                arguments: [RowCoding.blob(id), time.seconds, time.seconds])
        }
        try first.store.close()
        let second = try TestStore(in: directory)
        let stored = try #require(try await second.store.load(record.id))
        #expect(stored.extents.runs == [0..<1000])
        let arrivedAt = try await second.store.catalog.pool.read { db in
            try Int64.fetchOne(db, sql: "SELECT arrived_at FROM segments WHERE read_at = arrived_at")
        }
        return (stored.record, try #require(arrivedAt))
    }

    @Test("Timestamps in the future are clamped to now and the asset becomes stale")
    func whatIsOfATimeToComeIsOfNowAndToBeConfirmed() async throws {
        let (record, arrivedAt) = try await reopened(Self.now + .seconds(86_400))

        #expect(record.createdAt == Self.now && record.lastAccessAt == Self.now)
        #expect(record.generation.receivedAt == Self.now && record.generation.freshUntil == Self.now)
        #expect(!record.generation.isFresh(at: Self.now) && record.generation.age(at: Self.now) == .zero)
        #expect(arrivedAt == Self.now.seconds)
    }

    @Test("Timestamps in the past are unchanged")
    func whatIsOfThePastStaysAsItIs() async throws {
        let time = Self.now - .seconds(60)
        let (record, arrivedAt) = try await reopened(time)

        #expect(record.createdAt == time && record.lastAccessAt == time && record.generation.receivedAt == time)
        #expect(record.generation.freshUntil == time + .seconds(3600) && arrivedAt == time.seconds)
    }
}
