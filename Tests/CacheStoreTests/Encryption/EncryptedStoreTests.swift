import CacheCore
import CacheTestKit
import Foundation
import Testing

@testable import CacheStore

/// Encrypted files in a real store: bytes on disk, keys in the catalog, and their loss.
@Suite struct EncryptedStoreTests {
    private let directory: TemporaryDirectory
    private static let whole: ByteRange = 0..<600_000

    init() throws { directory = try TemporaryDirectory() }

    private func store(_ keys: MasterKeys) throws -> TestStore { try TestStore(in: directory, masterKeys: keys) }

    /// A closed store with asset 1, which is encrypted under `key`.
    private func fill(_ key: String = "k1") async throws {
        let testStore = try store(TestStore.masterKeys(key))
        try testStore.fill(1, length: Self.whole.upperBound, isEncrypted: true, Self.whole)
        try await testStore.commits.flush()
        try testStore.store.close()
    }

    /// All bytes of the files in the data directory.
    private func allBytes() throws -> Data {
        let root = directory.path("data")
        var bytes = Data()
        for name in try FileManager.default.subpathsOfDirectory(atPath: root) {
            bytes.append(FileManager.default.contents(atPath: root + "/" + name) ?? Data())
        }
        return bytes
    }

    @Test("No 16 bytes of content are in the data directory, and a restart decrypts them")
    func restart() async throws {
        try await fill()
        let content = Data(TestStore.content(Self.whole))
        let all = try allBytes()
        for offset in stride(from: 0, to: 251, by: 16) {
            #expect(all.range(of: content[offset..<offset + 16]) == nil)
        }
        let testStore = try store(TestStore.masterKeys("k1"))
        let loaded = try #require(try await testStore.store.load(TestStore.id(1)))
        #expect(loaded.extents.runs == [Self.whole])
        let file = try #require(loaded.file)
        #expect(try file.bytes(100..<300_000) == TestStore.content(100..<300_000))
        #expect(file.pinForSendfile(0..<1000) == nil)
        #expect(try await testStore.store.audit(repairing: false).findings == [])
        try testStore.store.close()
    }

    @Test("Bytes that come again before the commit of their removal are right after a kill")
    func bytesBeforeTheCommit() async throws {
        try await fill()
        let testStore = try store(TestStore.masterKeys("k1"))
        let file = try #require(try await testStore.store.load(TestStore.id(1))?.file)
        testStore.commits.cut(file, [100_000..<400_001])
        try testStore.grow(file, 100_000..<300_000)
        try testStore.store.close(isOrderly: false)  // without a commit

        let next = try store(TestStore.masterKeys("k1"))
        let loaded = try #require(try await next.store.load(TestStore.id(1)))
        #expect(loaded.extents.runs == [Self.whole])
        #expect(try loaded.file?.bytes(Self.whole) == TestStore.content(Self.whole))
        #expect(try await next.store.audit(repairing: false).findings == [])
    }

    @Test("Bytes that come again before their punch stay, also if the file has them already", arguments: [false, true])
    func bytesBeforeThePunch(_ isHeld: Bool) async throws {
        try await fill()
        var former: TestStore? = isHeld ? try store(TestStore.masterKeys("k1")) : nil
        try former?.store.handOver()
        let testStore = try store(TestStore.masterKeys("k1"))
        let file = try #require(try await testStore.store.load(TestStore.id(1))?.file)
        testStore.commits.cut(file, [100_000..<400_001])
        if isHeld { try await testStore.commits.flush() }
        try testStore.grow(file, 100_000..<300_000)
        former = nil
        for _ in 0..<2 { try await testStore.commits.flush() }
        #expect(try file.bytes(0..<300_000) == TestStore.content(0..<300_000))
        #expect(throws: CacheError.self) { try file.bytes(300_000..<300_001) }
        try testStore.store.close()

        let next = try store(TestStore.masterKeys("k1"))
        let loaded = try #require(try await next.store.load(TestStore.id(1)))
        #expect(loaded.extents.runs == [0..<300_000, 400_001..<Self.whole.upperBound])
        #expect(try await next.store.audit(repairing: false).findings == [])
    }

    @Test("Ranges of later runs have other nonces, and evicted bytes that are fetched again are right")
    func refetch() async throws {
        try await fill()
        let testStore = try store(TestStore.masterKeys("k1"))
        let file = try #require(try await testStore.store.load(TestStore.id(1))?.file)
        let gone: ByteRange = 100_000..<400_001
        try await testStore.commits.punch(file, [gone])
        #expect(throws: CacheError.self) { try file.bytes(99_000..<101_000) }
        for part in [200_000..<300_000, 100_000..<200_000, 300_000..<400_001] as [ByteRange] {
            try testStore.grow(file, part)
        }
        try await testStore.commits.flush()
        #expect(try file.bytes(Self.whole) == TestStore.content(Self.whole))
        let nonces = Set(try #require(file.cipher).runs(in: [Self.whole]).map(\.nonce))
        #expect(nonces.count == 2)
        try testStore.store.close()
        let again = try store(TestStore.masterKeys("k1"))
        #expect(try await again.store.load(TestStore.id(1))?.extents.runs == [Self.whole])
        #expect(try await again.store.audit(repairing: false).findings == [])
        try again.store.close()
    }

    @Test("A changed byte of an encrypted file fails its checksum")
    func damage() async throws {
        try await fill()
        try CacheTestKit.damage(try #require(try directory.assetFiles("data").first), at: 300_000)
        let testStore = try store(TestStore.masterKeys("k1"))
        let file = try #require(try await testStore.store.load(TestStore.id(1))?.file)
        #expect(try testStore.commits.check(0..<1000, of: file) == .right([0..<262_144]))
        #expect(try testStore.commits.check(300_000..<300_001, of: file) == .bad([262_144..<524_288]))
        try testStore.store.close()
    }

    @Test("Without the master key the asset stays, and its bytes are errors or are fetched again")
    func missingKey() async throws {
        try await fill()
        for keys in [MasterKeys(), TestStore.masterKeys("k2"), wrong("k1")] {
            let testStore = try store(keys)
            let file = try #require(try await testStore.store.load(TestStore.id(1))?.file)
            #expect(file.lock?.code == .encryptionKeyMissing)
            #expect(throws: CacheError.self) { try file.bytes(0..<1) }
            #expect(throws: CacheError.self) { try testStore.commits.check(0..<1, of: file) }
            let audit = try await testStore.store.audit(repairing: true)
            #expect(audit.findings == [] && audit.lockedBytes == Self.whole.length)
            #expect(throws: CacheError.self) {
                try Export.copy("/o/media/1.mp4", from: directory.path("data"), to: directory.path("out"))
            }
            // The key arrives while the file is open.
            keys.replace(MasterKeys.Content(keys: [key("k1")]))
            #expect(try file.bytes(0..<100) == TestStore.content(0..<100))
            try testStore.store.close()
        }
        for rule in MissingKeyRule.allCases {
            let testStore = try store(MasterKeys(MasterKeys.Content(keys: [key("k2")], onMissingKey: rule)))
            let loaded = try #require(try await testStore.store.load(TestStore.id(1)))
            #expect(testStore.store.isUsable(loaded, encrypted: true) == (rule == .refuse))
            #expect(!testStore.store.isUsable(loaded, encrypted: false))
            try testStore.store.close()
        }
    }

    private func key(_ id: String) -> MasterKey {
        MasterKey(id: id, key: Array(repeating: id.utf8.last ?? 0, count: 32))
    }

    private func wrong(_ id: String) -> MasterKeys {
        MasterKeys(MasterKeys.Content(keys: [MasterKey(id: id, key: Array(repeating: 0, count: 32))]))
    }

    @Test("Export decrypts")
    func export() async throws {
        try await fill()
        let content = MasterKeys.Content(keys: [key("k1")])
        let count = try Export.copy(
            "/o/media/1.mp4", from: directory.path("data"), to: directory.path("out"), masterKeys: content)
        #expect(count == Self.whole.length)
        let out = try #require(FileManager.default.contents(atPath: directory.path("out")))
        #expect(Array(out) == TestStore.content(Self.whole))
    }

    @Test("A rotation seals the keys again, continues after a restart, and skips files without their key")
    func rotation() async throws {
        try await fill("k0")
        let testStore = try store(TestStore.masterKeys("k1"))
        for number in UInt64(2)...6 { try testStore.fill(number, isEncrypted: true, 0..<100) }
        try await testStore.commits.flush()
        let (store, now) = (testStore.store, Timestamp(seconds: 5))
        store.masterKeys.replace(MasterKeys.Content(keys: [key("k1"), key("k2")]))
        var rotation = try await store.beginRotation(at: now)
        #expect(rotation.files == 6 && rotation.activeKey == "k2")
        rotation = try await store.rotate(rotation, limit: 3, at: now)
        #expect(rotation.finishedAt == nil && rotation.filesDone == 2 && rotation.filesLocked == 1)
        try store.close(isOrderly: false)

        let keys = MasterKeys(MasterKeys.Content(keys: [key("k1"), key("k2")]))
        let again = try self.store(keys)
        rotation = try #require(try await again.store.rotation())
        while rotation.finishedAt == nil { rotation = try await again.store.rotate(rotation, limit: 3, at: now) }
        #expect(rotation.filesDone == 5)
        let use = try await again.store.masterKeyUse().sorted { $0.id < $1.id }
        #expect(use.map(\.files) == [1, 5] && use.map(\.isAvailable) == [false, true])
        keys.replace(MasterKeys.Content(keys: [key("k2")]))
        let file = try #require(try await again.store.load(TestStore.id(2))?.file)
        #expect(try file.bytes(0..<100) == TestStore.content(0..<100))
        try again.store.close()
    }

    @Test("An erasure leaves no sealed key in the store, and ends open readers; a copy from before needs the old key")
    func erasure() async throws {
        try await fill()
        let testStore = try store(TestStore.masterKeys("k1"))
        try testStore.fill(2, isEncrypted: false, 0..<100)
        try testStore.fill(3, isEncrypted: true, 0..<100)
        try await testStore.commits.flush()
        let catalog = testStore.store.catalog
        let file = try #require(try await testStore.store.load(TestStore.id(1))?.file)
        let serial = try #require(file.name).serial
        let sealed = try #require(try catalog.cipher(of: serial)).0.bytes
        // The key is in the log or in the catalog before.
        #expect(try allBytes().range(of: sealed) != nil)
        let copy = directory.path("copy")
        try FileManager.default.copyItem(atPath: directory.path("data"), toPath: copy)

        let versions = [1, 3].map { AssetVersion(TestStore.record($0)) }
        await #expect(throws: CacheError.self) {
            try await testStore.store.erase([AssetVersion(TestStore.record(2))], at: Timestamp(seconds: 9))
        }
        let receipt = try await testStore.store.erase(versions, at: Timestamp(seconds: 9))
        #expect(receipt.sequence == 1 && receipt.assets.map(\.id) == [TestStore.id(1), TestStore.id(3)])
        #expect(receipt.assets.allSatisfy { $0.masterKey == "k1" && $0.nameDigest.count == 64 })
        #expect(try allBytes().range(of: sealed) == nil)
        #expect(throws: CacheError.self) { try file.bytes(0..<1) }
        // A repeated erasure has an equal receipt, except for its number.
        let second = try await testStore.store.erase(versions, at: Timestamp(seconds: 9))
        #expect(second.assets == receipt.assets && second.sequence == 2 && receipt.isLogEmpty)
        try testStore.store.close(isOrderly: false)

        // A start between the erasure and the deletion of the files does not take the bytes for plain ones.
        let again = try store(TestStore.masterKeys("k1"))
        let erased = try #require(try await again.store.load(TestStore.id(1)))
        #expect(erased.file?.lock != nil && !again.store.isUsable(erased, encrypted: true))
        #expect(try await again.store.load(TestStore.id(2))?.file?.lock == nil)
        try again.store.close()

        try FileManager.default.removeItem(atPath: directory.path("data"))
        try FileManager.default.moveItem(atPath: copy, toPath: directory.path("data"))
        for (keys, isReadable) in [(TestStore.masterKeys("k1"), true), (TestStore.masterKeys("k2"), false)] {
            let old = try store(keys)
            #expect((try await old.store.load(TestStore.id(1))?.file?.lock == nil) == isReadable)
            try old.store.close()
        }
    }

    @Test("Transient files are readable with a key that no store has")
    func transient() throws {
        let testStore = try store(TestStore.masterKeys("k1"))
        let file = try testStore.store.createTransient(isEncrypted: true)
        try file.write(at: 5, TestStore.content(5..<5000))
        #expect(try file.bytes(5..<5000) == TestStore.content(5..<5000))
        try testStore.store.close()
    }
}
