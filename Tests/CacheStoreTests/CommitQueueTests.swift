import CacheCore
import CacheStore
import CacheTestKit
import Testing

@Suite struct CommitQueueTests {
    @Test func whatWasFlushedIsThereAfterReopening() async throws {
        let directory = try TemporaryDirectory()
        try await {
            let shelf = try Shelf(in: directory)
            try shelf.fill(1, 0..<1000, 5000..<9000)
            try await shelf.commits.flush()
            try shelf.store.close()
        }()

        let again = try Shelf(in: directory)
        let asset = try #require(try await again.store.load(Shelf.id(1)))

        #expect(asset.extents.runs == [0..<1000, 5000..<9000])
        #expect(asset.record == Shelf.record(1))
        #expect(try asset.file?.bytes(5000..<9000) == Shelf.content(5000..<9000))
    }
}
