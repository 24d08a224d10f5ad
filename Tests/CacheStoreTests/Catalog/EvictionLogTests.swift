import CacheCore
import CacheStore
import Testing

@Suite struct EvictionLogTests {
    private let start = Timestamp(seconds: 1_780_000_000)

    private func record(_ number: UInt64, _ reason: EvictionReason = .capacity) -> EvictionRecord {
        EvictionRecord(
            at: start + .seconds(Int64(number)), reason: reason, assetID: TestStore.id(number),
            key: "/o/media/\(number)",
            origin: number % 2 == 0 ? "even" : "odd", bytes: 10, ranges: [0..<4, 10..<16])
    }

    @Test("Evictions are listed newest first, in pages and filtered")
    func isReadNewestFirstInPagesAndByWhatIsAskedFor() async throws {
        let catalog = try TestStore().store.catalog
        let records = (1...5).map { record($0, $0 == 2 ? .purge : .capacity) }
        try await catalog.logEvictions(records, forgettingBefore: start)

        let first = try await catalog.evictionPage(EvictionQuery(limit: 3), since: start)
        let rest = try await catalog.evictionPage(EvictionQuery(limit: 3, cursor: first.nextCursor), since: start)
        #expect(first.items + rest.items == records.reversed())
        #expect(rest.nextCursor == nil)
        let queries = [
            EvictionQuery(reason: .purge), EvictionQuery(origin: "odd"), EvictionQuery(assetID: TestStore.id(4)),
        ]
        var found: [[Int64]] = []
        for query in queries {
            found.append(
                try await catalog.evictionPage(query, since: start).items.map { $0.at.since(start).components.seconds })
        }
        #expect(found == [[2], [5, 3, 1], [4]])
    }

    @Test("Evictions older than the retention are deleted")
    func isKeptForAWhileOnly() async throws {
        let catalog = try TestStore().store.catalog
        try await catalog.logEvictions((1...4).map { record($0) }, forgettingBefore: start)
        try await catalog.logEvictions([record(9)], forgettingBefore: start + .seconds(3))

        let left = try await catalog.evictionPage(EvictionQuery(), since: start).items
        let young = try await catalog.evictionPage(EvictionQuery(), since: start + .seconds(5)).items
        #expect(left == [9, 4, 3].map { record($0) })
        #expect(young == [record(9)])
    }
}
