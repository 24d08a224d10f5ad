import CacheCore
import CacheTestKit
import GRDB
import TestChance

@testable import CacheStore

/// A store's life, as a seed decides it: fills, cuts, purges, new generations, settings, starts. Every operation is recorded,
/// and what has been promised after each commit.
struct PowerCutScenario {
    private struct Life {
        var file: SparseFile
        var generation: Int64
        var extents: ByteRangeSet
    }

    private let directory: TemporaryDirectory
    private let log: DiskLog
    private var chance: SeededRandom
    private var lives: [UInt64: Life] = [:]
    private var removed: Set<UInt64> = []
    private(set) var promises: [(count: Int, promise: PowerCut.Promise)] = []

    private init(seed: UInt64) throws {
        directory = try TemporaryDirectory(isInMemory: true)
        log = DiskLog(root: directory.path)
        chance = SeededRandom(seed: seed)
    }

    /// Lives it, and answers what can be cut.
    static func recorded(seed: UInt64, starts: Int, steps: Int) async throws -> (cut: PowerCut, operations: Int) {
        var scenario = try Self(seed: seed)
        try await RecordingVFS.recording(scenario.log) {
            for start in 0..<starts { try await scenario.live(steps: steps, isOrderly: start % 2 == 0) }
        }
        let operations = scenario.log.operations
        let cut = PowerCut(operations, store: "data", promises: scenario.promises, truth: Self.truth)
        return (cut, operations.count)
    }

    private mutating func live(steps: Int, isOrderly: Bool) async throws {
        let shelf = try Shelf(in: directory, disk: RecordingDisk(log))
        // So that there are many checkpoints.
        try await shelf.store.catalog.pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 60")
        }
        _ = try await shelf.store.reconcile()
        try await takeUp(shelf)
        for _ in 0..<steps { try await step(shelf) }
        if isOrderly { try await flush(shelf) }
        try shelf.store.close(isOrderly: isOrderly)
    }

    /// What a start has found is durable.
    private mutating func takeUp(_ shelf: Shelf) async throws {
        lives = [:]
        removed = []
        for number in Self.assets {
            let loaded = try await shelf.store.load(Shelf.id(number))
            if let loaded, let file = loaded.file {
                let generation = loaded.record.generation.number
                lives[number] = Life(file: file, generation: generation, extents: loaded.extents)
            }
            promise(number)
        }
    }

    private mutating func step(_ shelf: Shelf) async throws {
        let number = Self.assets[below(Self.assets.count)]
        switch below(16) {
        case 0...5: try fill(number, shelf)
        case 6, 7: cut(number, shelf)
        case 8: try begin(number, generation: (lives[number]?.generation ?? 0) + 1, shelf)
        case 9: remove(number, shelf)
        case 10:
            shelf.commits.touched(Shelf.id(number), at: Timestamp(seconds: 2000), hits: 1)
            if let life = lives[number] { shelf.commits.refreshed(Self.record(number, life.generation)) }
        case 11: try await set(number, shelf)
        default: try await flush(shelf)
        }
    }

    private mutating func fill(_ number: UInt64, _ shelf: Shelf) throws {
        if lives[number] == nil { try begin(number, generation: 1, shelf) }
        guard let life = lives[number] else { return }
        let bytes = Self.truth(Shelf.id(number), life.generation)
        let first = below(bytes.count)
        let end = min(bytes.count, first + 1 + below(120_000))
        for start in stride(from: first, to: end, by: 50_000) {
            let part = start..<min(start + 50_000, end)
            let range = Int64(part.lowerBound)..<Int64(part.upperBound)
            try life.file.write(at: range.lowerBound, Array(bytes[part]))
            shelf.commits.grew(life.file, life.file.kept(range))
            lives[number]?.extents.insert(range)
        }
    }

    private mutating func cut(_ number: UInt64, _ shelf: Shelf) {
        guard let life = lives[number] else { return }
        let first = Int64(below(Self.lengths[Int(number)]))
        let range = first..<first + 1 + Int64(below(200_000))
        lives[number]?.extents.remove(range)
        promises.append((log.count, .nothing(Shelf.id(number))))
        // Bad bytes that are about to be written anew leave the rows alone.
        if below(4) == 0 {
            shelf.commits.disclaim(life.file, [range])
        } else {
            shelf.commits.cut(life.file, [range])
        }
    }

    private mutating func begin(_ number: UInt64, generation: Int64, _ shelf: Shelf) throws {
        promises.append((log.count, .nothing(Shelf.id(number))))
        let file = try shelf.store.createFile(asset: Shelf.id(number), generation: generation)
        lives[number] = Life(file: file, generation: generation, extents: ByteRangeSet())
        removed.remove(number)
        shelf.commits.began(Self.record(number, generation), file: file)
    }

    private mutating func remove(_ number: UInt64, _ shelf: Shelf) {
        promises.append((log.count, .nothing(Shelf.id(number))))
        lives[number] = nil
        removed.insert(number)
        shelf.commits.discard(Shelf.id(number))
    }

    private mutating func set(_ number: UInt64, _ shelf: Shelf) async throws {
        let catalog = shelf.store.catalog
        var policy = PolicySettings()
        policy.capacityBytes = Int64(number) << 30
        let revision = try await catalog.savePolicy(policy)
        promises.append((log.count, .policy(revision)))
        let settings = OriginSettings(baseURL: "https://up.test/\(number)")
        _ = try await catalog.saveOrigin(Origin(name: "origin\(number)", settings: settings))
    }

    private mutating func flush(_ shelf: Shelf) async throws {
        try await shelf.commits.flush()
        for number in Self.assets { promise(number) }
    }

    private mutating func promise(_ number: UInt64) {
        let id = Shelf.id(number)
        if let life = lives[number] {
            promises.append((log.count, .atLeast(id, generation: life.generation, life.extents)))
        } else if removed.contains(number) {
            promises.append((log.count, .absent(id)))
        }
    }

    private mutating func below(_ bound: Int) -> Int { Int(chance.next() % UInt64(bound)) }

    private static let assets: [UInt64] = Array(1...8)
    /// Of the assets, by their numbers.
    private static let lengths = [0, 600_000, 300_000, 262_144, 90_000, 40_000, 4096, 5000, 700]

    private static func record(_ number: UInt64, _ generation: Int64) -> AssetRecord {
        Shelf.record(number, generation: generation, length: Int64(lengths[Int(number)]))
    }

    /// No byte is zero, and no two generations have the same ones.
    private static let truth: @Sendable (AssetID, Int64) -> [UInt8] = { id, generation in
        let first = Int(id.low) * 4099 + Int(generation) * 257
        return Array(pattern[first..<first + lengths[Int(id.low)]])
    }

    private static let pattern: [UInt8] = {
        var chance = SeededRandom(seed: 99)
        return (0..<800_000).map { _ in UInt8(chance.next() % 255) + 1 }
    }()
}
