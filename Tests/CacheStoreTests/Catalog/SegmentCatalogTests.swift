import CacheCore
import CacheStore
import CacheTestKit
import Synchronization
import Testing

@Suite struct SegmentCatalogTests {
    private let form = EvictionLayout(algorithm: .lfuda, segmentBytes: 2 << 20)

    private func record(_ asset: UInt64, _ sequence: Int64?, priority: Double? = nil, reads: Int64 = 0) -> SegmentRecord
    {
        SegmentRecord(
            segment: SegmentID(asset: TestStore.id(asset), index: 3), sequence: sequence,
            entry: PolicyEntry(isProven: true, reads: 2, priority: priority), arrivedAt: 100, readAt: 200,
            reads: reads)
    }

    private func kept(in catalog: Catalog) async throws -> [SegmentRecord] {
        let records = Mutex<[SegmentRecord]>([])
        try await catalog.eachSegment { record in records.withLock { $0.append(record) } }
        return records.withLock { $0 }
    }

    private func testStore() async throws -> TestStore {
        let testStore = try TestStore()
        for number in UInt64(1)...3 { try testStore.fill(number, 0..<10) }
        try await testStore.commits.flush()
        return testStore
    }

    @Test("Segments are stored in order with all fields")
    func segmentsAreKeptInTheirOrderWithAllThatIsKnown() async throws {
        let testStore = try await testStore()
        let catalog = testStore.store.catalog
        let before = try await catalog.segmentForm()
        let records = [record(2, 7, priority: 0.5, reads: 9), record(1, 9, priority: 1.5), record(3, 8, priority: 1.5)]
        try await catalog.replaceSegments(records, form: form)

        #expect(before == nil)
        #expect(try await catalog.segmentForm() == form)
        #expect(try await kept(in: catalog) == [records[0], records[2], records[1]])
    }

    @Test("The clock hand is stored as a number that outlasts its segment")
    func theHandIsKeptAsANumberThatOutlastsItsSegment() async throws {
        let testStore = try await testStore()
        let catalog = testStore.store.catalog
        let records = [record(1, 3), record(2, 5), record(3, 8)]
        try await catalog.replaceSegments(records, form: form, hand: records[1].segment)
        let first = try await catalog.segmentHand()
        testStore.commits.discard(TestStore.id(2))
        try await testStore.commits.flush()
        let second = try await catalog.segmentHand()
        try await catalog.saveSegments(SegmentChanges(gone: [records[0].segment], hand: records[2].segment))
        let third = try await catalog.segmentHand()
        try await catalog.saveSegments(SegmentChanges(records: [record(3, nil, reads: 1)]))

        #expect(first == 5 && second == 5 && third == 8)
        #expect(try await catalog.segmentHand() == nil)
    }

    @Test("A segment without a new position keeps its position, and removed segments are deleted")
    func whatDidNotMoveKeepsItsPlaceAndWhatIsGoneGoes() async throws {
        let testStore = try await testStore()
        let catalog = testStore.store.catalog
        try await catalog.replaceSegments([record(1, 1), record(2, 2), record(3, 3)], form: form)
        let changes = SegmentChanges(records: [record(1, nil, reads: 5), record(4, 9)], gone: [record(2, nil).segment])
        try await catalog.saveSegments(changes)

        #expect(try await kept(in: catalog) == [record(1, 1, reads: 5), record(3, 3)])
        testStore.commits.discard(TestStore.id(1))
        try await testStore.commits.flush()
        #expect(try await kept(in: catalog) == [record(3, 3)])
    }
}
