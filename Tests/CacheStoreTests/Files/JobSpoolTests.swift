import CacheCore
import CacheTestKit
import Testing

@testable import CacheStore

@Suite struct JobSpoolTests {
    private static var items: [JobItemRecord] {
        (0..<3000).map { index in
            var item = JobItemRecord(
                index: index, reference: .mounted(origin: "media", path: "film-\(index).mp4?sig=\"x\"", key: nil),
                ranges: index % 2 == 0 ? ["bytes=0-9"] : [], tags: ["a", "b"], isPinned: true)
            if index % 100 == 0 { item.play = .live }
            if index % 100 == 1 { item.reference = .url("https://up.test/\(index)?sig=1", key: "k") }
            if index % 100 == 2 { item.reference = .known(TestStore.id(3)) }
            return item
        }
    }

    private func names(_ store: TestStore) throws -> [String] {
        try store.disk.list(store.store.layout.spool)
    }

    @Test("The items of a spool file are read from any position, also by the next process")
    func roundTrip() throws {
        let first = try TestStore()
        var spool = try first.store.jobSpools.create("j")
        try spool.append(Self.items[..<1000])
        try spool.append(Self.items[1000...])
        try spool.finish()
        #expect(try first.store.jobSpools.items(of: "j", from: 0) == Self.items)
        try first.store.close()

        let next = try TestStore(in: first.directory)
        try next.store.jobSpools.removeAll(except: ["j"])
        #expect(try next.store.jobSpools.items(of: "j", from: 2990) == Array(Self.items[2990...]))
        try next.store.jobSpools.remove("j")
        #expect(try names(next).isEmpty)
        #expect(throws: CacheError.self) { try next.store.jobSpools.items(of: "j", from: 0) }
    }

    @Test("A file has no plain names, and one without a job is removed")
    func isSealed() throws {
        let first = try TestStore()
        var spool = try first.store.jobSpools.create("j")
        try spool.append(Self.items)
        try spool.finish()
        let descriptor = try first.disk.open(first.store.layout.spool + "/j.items", .readOnly)
        let bytes = try first.disk.readAll(descriptor, limit: 1 << 20)
        first.disk.close(descriptor)
        #expect(bytes.count > 100_000)
        #expect(!String(decoding: bytes, as: UTF8.self).contains("film-1"))
        try first.store.close()
        let next = try TestStore(in: first.directory)
        try next.store.jobSpools.removeAll(except: ["other"])
        #expect(try names(next).isEmpty)
    }

    @Test("The sizes of one file and of all files are limited, and free again after a discard")
    func limits() throws {
        let store = try TestStore()
        let all = JobSpools(
            layout: store.store.layout, disk: store.disk, secrets: store.store.catalog.secrets,
            limits: (total: 800 << 10, ofJob: 300 << 10))
        let long = JobItemRecord(
            index: 0, reference: .mounted(origin: "m", path: String(repeating: "x", count: 70 << 10), key: nil))
        for _ in 0..<4 {
            var spool = try all.create("j")
            let error = #expect(throws: CacheError.self) { for _ in 0..<5 { try spool.append([long]) } }
            #expect(error?.code == .payloadTooLarge)
            try spool.discard()
        }
        #expect(try names(store).isEmpty)
        var spools: [JobSpool] = []
        let error = #expect(throws: CacheError.self) {
            for number in 0..<4 {
                var spool = try all.create("j\(number)")
                defer { spools.append(spool) }
                for _ in 0..<4 { try spool.append([long]) }
            }
        }
        #expect(error?.code == .overloaded)
        for spool in spools { try spool.discard() }
        #expect(try names(store).isEmpty)
    }

    @Test("A file that is cut or damaged does not have all items")
    func damage() throws {
        let store = try TestStore()
        var spool = try store.store.jobSpools.create("j")
        try spool.append(Self.items)
        try spool.finish()
        let descriptor = try store.disk.open(store.store.layout.spool + "/j.items", .readWrite)
        try store.disk.truncate(descriptor, to: 70_000)
        store.disk.close(descriptor)
        #expect(try store.store.jobSpools.items(of: "j", from: 0).count < 3000)
        let again = try store.disk.open(store.store.layout.spool + "/j.items", .readWrite)
        var bytes = try store.disk.readAll(again, limit: 70_000)
        bytes[100] ^= 1
        try store.disk.writeAll(again, bytes)
        store.disk.close(again)
        #expect(throws: CacheError.self) { try store.store.jobSpools.items(of: "j", from: 0) }
    }
}
