import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Testing

@testable import CacheStore

/// `larder verify` and `larder export`, without the program around them.
@Suite struct AuditTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func kinds(repairing: Bool = false) async throws -> [Audit.Finding.Kind] {
        let shelf = try Shelf(in: directory)
        let audit = try await shelf.store.audit(repairing: repairing)
        try shelf.store.close()
        return audit.findings.map(\.kind).sorted { $0.rawValue < $1.rawValue }
    }

    @Test func nothingIsFoundInAStoreThatIsRight() async throws {
        let shelf = try Shelf(in: directory)
        let file = try shelf.fill(1, 100..<700_000, 800_000..<900_000)
        try await shelf.commits.flush()
        try await shelf.commits.punch(file, [300_000..<310_000])
        let audit = try await shelf.store.audit(repairing: false)

        #expect(audit.findings == [])
        #expect(audit.assets == 1 && audit.files == 1)
        #expect(audit.bytes == 789_900)
        try shelf.store.close()
    }

    @Test func damageIsFoundAndRepaired() async throws {
        let shelf = try Shelf(in: directory)
        let files = try (1...5).map { try shelf.fill($0, 0..<600_000) }
        try await shelf.commits.flush()
        try await shelf.store.catalog.write { db in
            try db.execute(
                sql: "UPDATE assets SET cached_bytes = 7 WHERE id = ?", arguments: [RowCoding.blob(Shelf.id(4))])
            try db.execute(
                sql: "UPDATE assets SET row_sum = row_sum + 1 WHERE id = ?", arguments: [RowCoding.blob(Shelf.id(5))])
        }
        try shelf.store.close()
        let paths = files.compactMap(\.path)
        try damage(paths[0], at: 300_000)
        try SystemDisk().unlink(paths[1])
        let short = try SystemDisk().open(paths[2], .readWrite)
        try SystemDisk().truncate(short, to: 599_000)
        SystemDisk().close(short)
        let stranger = directory.path("data/assets/00/stranger")
        SystemDisk().close(try SystemDisk().open(stranger, .create))

        let expected: [Audit.Finding.Kind] = [
            .badBytes, .badBytes, .damagedRow, .missingFile, .orphanFile, .orphanFile, .shortFile, .wrongCount,
        ]
        let found = try await kinds()
        #expect(Set(found) == Set(expected))
        let repaired = try await kinds(repairing: true)
        #expect(Set(repaired) == Set(expected))
        let after = try await kinds()
        #expect(after == [])
        let left = try Shelf(in: directory)
        for number in UInt64(1)...4 {
            let loaded = try #require(try await left.store.load(Shelf.id(number)))
            for run in loaded.extents.runs {
                #expect(try #require(loaded.file).bytes(run).isSame(as: Shelf.content(run)))
            }
        }
        #expect(try await left.store.load(Shelf.id(5)) == nil)
        try left.store.close()
    }

    @Test func whatCannotBeReadOrRemovedDoesNotStopTheRest() async throws {
        let shelf = try Shelf(in: directory)
        for number in UInt64(1)...3 { try shelf.fill(number, 0..<1000) }
        try await shelf.commits.flush()
        let stray = directory.path("data/assets/07/\(Shelf.id(9))-7-100000009.bytes")
        #expect(try SystemDisk().createDirectory(stray))
        try shelf.store.close()

        let disk = FaultyDisk()
        let found = try Shelf(in: directory, disk: disk)
        disk.fail(.open, with: EACCES)
        let audit = try await found.store.audit(repairing: true)
        #expect(audit.findings.map(\.kind) == [.unreadable, .orphanFile, .orphanFile])
        #expect(audit.assets == 3 && audit.bytes == 2000 && !audit.isRepaired)
        try found.store.close()

        try FileManager.default.removeItem(atPath: stray)
        let after = try await kinds(repairing: true)
        #expect(after == [])
    }

    @Test func aCompleteAssetIsExportedAlsoWhileTheStoreIsInUse() async throws {
        let shelf = try Shelf(in: directory)
        let file = try shelf.fill(1, length: 600_000, 0..<600_000)
        try shelf.fill(2, length: 600_000, 0..<599_999)
        try await shelf.commits.flush()
        let (store, target) = (directory.path("data"), directory.path("copy.bin"))

        #expect(try Export.copy(Shelf.id(1).description, from: store, to: target) == 600_000)
        #expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: target))).isSame(as: Shelf.content(0..<600_000)))
        #expect(Self.code { try Export.copy(Shelf.id(1).description, from: store, to: target) } == .conflict)
        let other = directory.path("other.bin")
        #expect(Self.code { try Export.copy("/o/media/2.mp4", from: store, to: other) } == .conflict)
        #expect(Self.code { try Export.copy("/o/media/3.mp4", from: store, to: other) } == .notFound)
        #expect(Self.code { try Export.copy("x", from: target, to: other) } == .notFound)
        try damage(#require(file.path), at: 5)
        #expect(Self.code { try Export.copy("/o/media/1.mp4", from: store, to: other) } == .storageCorrupt)
        #expect(!FileManager.default.fileExists(atPath: other))
        try shelf.store.close()
        #expect(Self.code { try Export.copy("/o/media/1.mp4", from: store, to: other) } == .storageCorrupt)
    }

    private static func code(_ body: () throws -> Int64) -> CacheError.Code? {
        do {
            _ = try body()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }
}
