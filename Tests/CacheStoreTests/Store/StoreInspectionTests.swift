import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Testing

@testable import CacheStore

@Suite struct StoreInspectionTests {
    @Test("A store in use names its process, a closed one names none, and neither changes")
    func storesAreInspected() async throws {
        let directory = try TemporaryDirectory()
        let testStore = try TestStore(in: directory)
        let path = testStore.store.layout.directory
        let used = try StoreInspection(directory: path)
        try testStore.store.close()
        let files = try FileManager.default.contentsOfDirectory(atPath: path).sorted()

        let closed = try StoreInspection(directory: path)

        #expect(used.hasCatalog && used.holder?.hasPrefix("process \(getpid()) since ") == true)
        #expect(closed == StoreInspection(hasCatalog: true, holder: nil))
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).sorted() == files)
    }

    @Test("An empty directory has no store, and foreign files are rejected")
    func otherDirectories() throws {
        let directory = try TemporaryDirectory()
        let empty = try StoreInspection(directory: directory.path)
        try Data().write(to: URL(fileURLWithPath: directory.path + "/notes.txt"))

        let error = #expect(throws: CacheError.self) { try StoreInspection(directory: directory.path) }

        #expect(empty == StoreInspection(hasCatalog: false, holder: nil))
        #expect(error?.message.contains("it contains notes.txt") == true)
    }

    @Test("A catalog of a newer version is rejected")
    func newerCatalogs() async throws {
        let testStore = try TestStore()
        try await testStore.store.catalog.write { db in
            try db.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('v999')")
        }
        let path = testStore.store.layout.directory

        let error = #expect(throws: CacheError.self) { try StoreInspection(directory: path) }

        #expect(error?.code == .conflict)
        try testStore.store.close()
    }
}
