import CacheCore
import CacheTestKit
import GRDB
import TestChance

@testable import CacheStore

/// Random life of a store, determined by a seed: fills, cuts, purges, new generations, settings and restarts. Records
/// every operation and the promises after each commit.
struct PowerCutScenario {
    /// The current generation of an asset and its written extents.
    private struct Life {
        var file: SparseFile
        var generation: Int64
        var extents: ByteRangeSet
    }

    /// The master keys; nil: all files are plain. Otherwise those of every second asset are encrypted.
    private let masterKeys: MasterKeys?
    private let directory: TemporaryDirectory
    private let log: DiskLog
    private var random: SeededRandom
    private var lives: [UInt64: Life] = [:]
    private var removed: Set<UInt64> = []
    private(set) var promises: [(count: Int, promise: PowerCut.Promise)] = []

    private init(seed: UInt64, masterKeys: MasterKeys?) throws {
        self.masterKeys = masterKeys
        directory = try TemporaryDirectory()
        log = DiskLog(root: directory.path)
        random = SeededRandom(seed: seed)
    }

    /// Runs the scenario. Returns its power-cut simulation and the number of operations.
    static func recorded(
        seed: UInt64, starts: Int, steps: Int, isEncrypted: Bool = false
    ) async throws -> (cut: PowerCut, operations: Int) {
        let masterKeys = isEncrypted ? TestStore.masterKeys("k1") : nil
        var scenario = try Self(seed: seed, masterKeys: masterKeys)
        try await RecordingVFS.recording(scenario.log) {
            for start in 0..<starts { try await scenario.live(steps: steps, isOrderly: start % 2 == 0) }
        }
        let operations = scenario.log.operations
        let cut = PowerCut(
            operations, store: "data", promises: scenario.promises, truth: Self.truth, masterKeys: masterKeys)
        return (cut, operations.count)
    }

    private mutating func live(steps: Int, isOrderly: Bool) async throws {
        let testStore = try TestStore(in: directory, disk: RecordingDisk(log), masterKeys: masterKeys ?? MasterKeys())
        // Cause frequent checkpoints.
        try await testStore.store.catalog.pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 60")
        }
        _ = try await testStore.store.reconcile()
        try await takeUp(testStore)
        for _ in 0..<steps { try await step(testStore) }
        if isOrderly { try await flush(testStore) }
        try testStore.store.close(isOrderly: isOrderly)
    }

    /// Promises the contents found at a start, because they are durable.
    private mutating func takeUp(_ testStore: TestStore) async throws {
        lives = [:]
        removed = []
        for number in Self.assets {
            let loaded = try await testStore.store.load(TestStore.id(number))
            if let loaded, let file = loaded.file {
                let generation = loaded.record.generation.number
                lives[number] = Life(file: file, generation: generation, extents: loaded.extents)
            }
            promise(number)
        }
    }

    private mutating func step(_ testStore: TestStore) async throws {
        let number = Self.assets[below(Self.assets.count)]
        switch below(16) {
        case 0...5: try fill(number, testStore)
        case 6, 7: cut(number, testStore)
        case 8: try begin(number, generation: (lives[number]?.generation ?? 0) + 1, testStore)
        case 9: remove(number, testStore)
        case 10:
            testStore.commits.touched(TestStore.id(number), at: Timestamp(seconds: 2000), hits: 1)
            if let life = lives[number] { testStore.commits.refreshed(Self.record(number, life.generation)) }
        case 11: try await set(number, testStore)
        default: try await flush(testStore)
        }
    }

    private mutating func fill(_ number: UInt64, _ testStore: TestStore) throws {
        if lives[number] == nil { try begin(number, generation: 1, testStore) }
        guard let life = lives[number] else { return }
        let bytes = Self.truth(TestStore.id(number), life.generation)
        let first = below(bytes.count)
        let end = min(bytes.count, first + 1 + below(120_000))
        for start in stride(from: first, to: end, by: 50_000) {
            let part = start..<min(start + 50_000, end)
            let range = Int64(part.lowerBound)..<Int64(part.upperBound)
            try life.file.write(at: range.lowerBound, Array(bytes[part]))
            testStore.commits.grew(life.file, life.file.kept(range))
            lives[number]?.extents.insert(range)
        }
    }

    private mutating func cut(_ number: UInt64, _ testStore: TestStore) {
        guard let life = lives[number] else { return }
        let first = Int64(below(Self.lengths[Int(number)]))
        let range = first..<first + 1 + Int64(below(200_000))
        lives[number]?.extents.remove(range)
        promises.append((log.count, .nothing(TestStore.id(number))))
        // Model bytes that failed verification: they are removed from the row but not from the disk.
        if below(4) == 0 {
            testStore.commits.unclaim(life.file, [range])
        } else {
            testStore.commits.cut(life.file, [range])
        }
    }

    private mutating func begin(_ number: UInt64, generation: Int64, _ testStore: TestStore) throws {
        promises.append((log.count, .nothing(TestStore.id(number))))
        let file = try testStore.store.createFile(
            asset: TestStore.id(number), generation: generation, isEncrypted: masterKeys != nil && number % 2 == 1)
        lives[number] = Life(file: file, generation: generation, extents: ByteRangeSet())
        removed.remove(number)
        testStore.commits.began(Self.record(number, generation), file: file)
    }

    private mutating func remove(_ number: UInt64, _ testStore: TestStore) {
        promises.append((log.count, .nothing(TestStore.id(number))))
        lives[number] = nil
        removed.insert(number)
        testStore.commits.discard(TestStore.id(number))
    }

    private mutating func set(_ number: UInt64, _ testStore: TestStore) async throws {
        let catalog = testStore.store.catalog
        var policy = PolicySettings()
        policy.capacityBytes = Int64(number) << 30
        let revision = try await catalog.savePolicy(policy)
        promises.append((log.count, .policy(revision)))
        let settings = OriginSettings(baseURL: "https://up.test/\(number)")
        _ = try await catalog.saveOrigin(Origin(name: "origin\(number)", settings: settings))
    }

    private mutating func flush(_ testStore: TestStore) async throws {
        try await testStore.commits.flush()
        for number in Self.assets { promise(number) }
    }

    private mutating func promise(_ number: UInt64) {
        let id = TestStore.id(number)
        if let life = lives[number] {
            promises.append((log.count, .atLeast(id, generation: life.generation, life.extents)))
        } else if removed.contains(number) {
            promises.append((log.count, .absent(id)))
        }
    }

    private mutating func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

    private static let assets: [UInt64] = Array(1...8)
    /// The lengths of the assets, indexed by asset number.
    private static let lengths = [0, 600_000, 300_000, 262_144, 90_000, 40_000, 4096, 5000, 700]

    private static func record(_ number: UInt64, _ generation: Int64) -> AssetRecord {
        TestStore.record(number, generation: generation, length: Int64(lengths[Int(number)]))
    }

    /// The bytes of a generation. No byte is zero, and no two generations are equal.
    private static let truth: @Sendable (AssetID, Int64) -> [UInt8] = { id, generation in
        let first = Int(id.low) * 4099 + Int(generation) * 257
        return Array(pattern[first..<first + lengths[Int(id.low)]])
    }

    private static let pattern: [UInt8] = {
        var random = SeededRandom(seed: 99)
        return (0..<800_000).map { _ in UInt8(random.next() % 255) + 1 }
    }()
}
