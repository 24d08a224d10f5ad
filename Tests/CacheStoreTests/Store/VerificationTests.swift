import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Testing

@testable import CacheStore

/// Tests of `larder verify` and `larder export` below the command line.
@Suite struct VerificationReportTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func kinds(repairing: Bool = false) async throws -> [VerificationReport.Finding.Kind] {
        let testStore = try TestStore(in: directory)
        let audit = try await testStore.store.audit(repairing: repairing)
        try testStore.store.close()
        return audit.findings.map(\.kind).sorted { $0.rawValue < $1.rawValue }
    }

    @Test("Verification finds no fault in an intact store")
    func nothingIsFoundInAStoreThatIsRight() async throws {
        let testStore = try TestStore(in: directory)
        let file = try testStore.fill(1, 100..<700_000, 800_000..<900_000)
        try await testStore.commits.flush()
        try await testStore.commits.punch(file, [300_000..<310_000])
        let audit = try await testStore.store.audit(repairing: false)

        #expect(audit.findings == [])
        #expect(audit.assets == 1 && audit.files == 1)
        #expect(audit.bytes == 789_900)
        try testStore.store.close()
    }

    @Test("Verification finds and repairs damage")
    func damageIsFoundAndRepaired() async throws {
        let testStore = try TestStore(in: directory)
        let files = try (1...5).map { try testStore.fill($0, 0..<600_000) }
        try await testStore.commits.flush()
        try await testStore.store.catalog.write { db in
            try db.execute(
                sql: "UPDATE assets SET cached_bytes = 7 WHERE id = ?", arguments: [RowCoding.blob(TestStore.id(4))])
            try db.execute(
                sql: "UPDATE assets SET row_sum = row_sum + 1 WHERE id = ?",
                arguments: [RowCoding.blob(TestStore.id(5))])
        }
        try testStore.store.close()
        let paths = files.compactMap(\.path)
        try damage(paths[0], at: 300_000)
        try SystemDisk().unlink(paths[1])
        let short = try SystemDisk().open(paths[2], .readWrite)
        try SystemDisk().truncate(short, to: 599_000)
        SystemDisk().close(short)
        let stranger = directory.path("data/assets/00/stranger")
        SystemDisk().close(try SystemDisk().open(stranger, .create))

        let expected: [VerificationReport.Finding.Kind] = [
            .badBytes, .badBytes, .damagedRow, .missingFile, .orphanFile, .orphanFile, .shortFile, .wrongCount,
        ]
        let found = try await kinds()
        #expect(Set(found) == Set(expected))
        let repaired = try await kinds(repairing: true)
        #expect(Set(repaired) == Set(expected))
        let after = try await kinds()
        #expect(after == [])
        let left = try TestStore(in: directory)
        for number in UInt64(1)...4 {
            let loaded = try #require(try await left.store.load(TestStore.id(number)))
            for run in loaded.extents.runs {
                #expect(try #require(loaded.file).bytes(run).isSame(as: TestStore.content(run)))
            }
        }
        #expect(try await left.store.load(TestStore.id(5)) == nil)
        try left.store.close()
    }

    @Test("Verification continues past files it cannot read or remove")
    func whatCannotBeReadOrRemovedDoesNotStopTheRest() async throws {
        let testStore = try TestStore(in: directory)
        for number in UInt64(1)...3 { try testStore.fill(number, 0..<1000) }
        try await testStore.commits.flush()
        let stray = directory.path("data/assets/07/\(TestStore.id(9))-7-100000009.bytes")
        #expect(try SystemDisk().createDirectory(stray))
        try testStore.store.close()

        let disk = FaultyDisk()
        let found = try TestStore(in: directory, disk: disk)
        disk.fail(.open, with: EACCES)
        let audit = try await found.store.audit(repairing: true)
        #expect(audit.findings.map(\.kind) == [.unreadable, .orphanFile, .orphanFile])
        #expect(audit.assets == 3 && audit.bytes == 2000 && !audit.isRepaired)
        try found.store.close()

        try FileManager.default.removeItem(atPath: stray)
        let after = try await kinds(repairing: true)
        #expect(after == [])
    }

    @Test("A complete asset can be exported while the store is in use")
    func aCompleteAssetIsExportedAlsoWhileTheStoreIsInUse() async throws {
        let testStore = try TestStore(in: directory)
        let file = try testStore.fill(1, length: 600_000, 0..<600_000)
        try testStore.fill(2, length: 600_000, 0..<599_999)
        try await testStore.commits.flush()
        let (store, target) = (directory.path("data"), directory.path("copy.bin"))

        #expect(try Export.copy(TestStore.id(1).description, from: store, to: target) == 600_000)
        #expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: target))).isSame(as: TestStore.content(0..<600_000)))
        #expect(Self.code { try Export.copy(TestStore.id(1).description, from: store, to: target) } == .conflict)
        let other = directory.path("other.bin")
        #expect(Self.code { try Export.copy("/o/media/2.mp4", from: store, to: other) } == .conflict)
        #expect(Self.code { try Export.copy("/o/media/3.mp4", from: store, to: other) } == .notFound)
        #expect(Self.code { try Export.copy("x", from: target, to: other) } == .notFound)
        try damage(#require(file.path), at: 5)
        #expect(Self.code { try Export.copy("/o/media/1.mp4", from: store, to: other) } == .storageCorrupt)
        #expect(!FileManager.default.fileExists(atPath: other))
        try testStore.store.close()
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
