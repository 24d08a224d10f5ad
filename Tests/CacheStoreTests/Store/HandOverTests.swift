import CacheCore
import CacheTestKit
import Testing

@testable import CacheStore

/// Stores that the next process uses while the former one still reads files.
@Suite struct HandOverTests {
    /// Hands over a store with the committed asset 1. Returns the directory and the name of the asset's file.
    private func handOver(_ former: TestStore) async throws -> (TemporaryDirectory, FileName) {
        let name = try #require(try former.fill(1, 0..<1 << 20).name)
        try await former.commits.flush()
        try former.store.handOver()
        return (former.directory, name)
    }

    @Test("Bytes that a former process may read are punched after its end")
    func punchesWait() async throws {
        var former: TestStore? = try TestStore()
        let (directory, name) = try await handOver(try #require(former))

        let next = try TestStore(in: directory)
        #expect(next.store.isReadByFormerProcess)
        let file = try #require(try next.store.openFile(name))
        try await next.commits.punch(file, [0..<512 << 10])
        for _ in 0..<3 { try await next.commits.flush() }
        #expect(try file.bytes(0..<1 << 20).isSame(as: TestStore.content(0..<1 << 20)))
        #expect(try await next.store.catalog.extents(of: name.serial)?.runs == [512 << 10..<1 << 20])

        former = nil
        #expect(!next.store.isReadByFormerProcess)
        try await next.commits.flush()
        #expect(try file.bytes(0..<512 << 10).allSatisfy { $0 == 0 })
        #expect(try file.bytes(512 << 10..<1 << 20).isSame(as: TestStore.content(512 << 10..<1 << 20)))
    }

    @Test("Bytes that are written again while a former process reads stay")
    func rewrittenBytesStay() async throws {
        var former: TestStore? = try TestStore()
        let (directory, name) = try await handOver(try #require(former))

        let next = try TestStore(in: directory)
        let file = try #require(try next.store.openFile(name))
        try await next.commits.punch(file, [0..<512 << 10])
        try next.grow(file, 0..<256 << 10)
        former = nil
        // The page cache drops pages of the block once it has written them.
        #expect(
            try await eventually {
                try await next.commits.flush()
                return try file.bytes(256 << 10..<512 << 10).allSatisfy { $0 == 0 }
            })
        #expect(try file.bytes(0..<256 << 10).isSame(as: TestStore.content(0..<256 << 10)))
    }

    @Test("Each former process counts, and one process at a time uses the store")
    func severalFormerProcesses() async throws {
        var first: TestStore? = try TestStore()
        let directory = try #require(first?.directory)
        #expect(throws: CacheError.self) { try TestStore(in: directory) }
        try first?.store.handOver()
        var second: TestStore? = try TestStore(in: directory)
        #expect(throws: CacheError.self) { try TestStore(in: directory) }
        try second?.store.handOver()
        let third = try TestStore(in: directory)
        first = nil
        #expect(third.store.isReadByFormerProcess)
        second = nil
        #expect(!third.store.isReadByFormerProcess)
    }

    @Test("The catalog of a store that was handed over can be read, and not be written")
    func catalogIsReadOnly() async throws {
        let former = try TestStore()
        let (directory, name) = try await handOver(former)
        let next = try TestStore(in: directory)
        #expect(next.store.catalog.suspectRun == 0)
        try await next.store.catalog.saveSecret("new", as: "any")

        let error = await #expect(throws: CacheError.self) {
            try await former.store.catalog.saveSecret("old", as: "any")
        }
        #expect(error?.code == .shuttingDown)
        former.commits.touched(TestStore.id(1), at: Timestamp(seconds: 1_800_000_000))
        await #expect(throws: CacheError.self) { try await former.commits.flush() }
        #expect(try await former.store.catalog.extents(of: name.serial)?.runs == [0..<1 << 20])
        #expect(try await former.store.catalog.secret("any") == "new")
        try former.store.close()
        #expect(try await next.store.catalog.secret("any") == "new")
    }
}
