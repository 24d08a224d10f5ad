import CacheCore
import CacheStore
import CacheTestKit
import Logging

/// A store in its own directory. It can be closed and reopened.
struct TestStore {
    /// Wall clock with a constant time.
    struct FixedClock: WallClock {
        func now() -> Timestamp { Timestamp(seconds: 1_800_000_000) }
    }

    let directory: TemporaryDirectory
    let disk: any Disk
    let store: Store
    let commits: CommitQueue

    init(
        in directory: TemporaryDirectory? = nil, disk: any Disk = SystemDisk(), masterKeys: MasterKeys = MasterKeys(),
        limits: CommitQueue.Limits = CommitQueue.Limits(), openFileLimit: Int = 256,
        lost: @escaping @Sendable (FileName, ByteRangeSet) -> Void = { _, _ in },
        spoiled: @escaping @Sendable (FileName, [ByteRange]) -> Void = { _, _ in },
        freed: @escaping @Sendable (FileName, Int64) -> Void = { _, _ in }
    ) throws {
        self.directory = try directory ?? TemporaryDirectory()
        self.disk = disk
        store = try Store.open(
            directory: self.directory.path("data"), disk: disk, masterKeys: masterKeys, openFileLimit: openFileLimit,
            wallClock: FixedClock(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        commits = CommitQueue(
            store: store, limits: limits, uptime: ContinuousClock().stopwatch(), lost: lost, spoiled: spoiled,
            freed: freed)
    }

    /// Starts a generation of an asset, writes the ranges and reports them, without a flush.
    @discardableResult
    func fill(
        _ number: UInt64, generation: Int64 = 1, length: Int64? = 1 << 20, isEncrypted: Bool = false,
        _ ranges: ByteRange...
    ) throws -> SparseFile {
        let record = Self.record(number, generation: generation, length: length)
        let file = try store.createFile(asset: record.id, generation: generation, isEncrypted: isEncrypted)
        commits.began(record, file: file)
        for range in ranges { try grow(file, range) }
        return file
    }

    func grow(_ file: SparseFile, _ range: ByteRange) throws {
        try file.write(at: range.lowerBound, Self.content(range))
        commits.grew(file, file.kept(range))
    }

    /// Master keys with these identifiers; the last one is active.
    static func masterKeys(_ ids: String...) -> MasterKeys {
        MasterKeys(
            MasterKeys.Content(keys: ids.map { MasterKey(id: $0, key: Array(repeating: $0.utf8.last ?? 0, count: 32)) })
        )
    }

    static func id(_ number: UInt64) -> AssetID { AssetID(high: number &* 0x9E37_79B9_7F4A_7C15, low: number) }

    static func record(_ number: UInt64, generation: Int64 = 1, length: Int64? = 1 << 20) -> AssetRecord {
        AssetRecord(
            id: id(number), key: "/o/media/\(number).mp4", origin: "media",
            url: "https://up.test/\(number).mp4?sig=\(number)",
            generation: Generation(number: generation, length: length, receivedAt: Timestamp(seconds: 1000)),
            createdAt: Timestamp(seconds: 1000), lastAccessAt: Timestamp(seconds: 1000))
    }

    /// A record without any default value.
    static func fullRecord(_ number: UInt64) -> AssetRecord {
        var record = record(number, generation: 4, length: nil)
        record.generation.contentType = "video/mp4"
        record.generation.contentTypeFrom = .extension
        record.generation.validators = Validators(
            entityTag: EntityTag("W/\"x\""), lastModified: "Sat, 21 Nov 2026 08:00:00 GMT", lastModifiedIsStrong: true)
        record.generation.acceptsRanges = false
        record.generation.headers = HeaderList([.init("Cache-Control", "max-age=5"), .init("X-Ä", "a\"b")])
        record.generation.initialAge = .seconds(12)
        record.generation.freshUntil = Timestamp(seconds: 99)
        record.generation.isStorable = false
        record.hits = 5
        record.isPinned = true
        record.pinnedUntil = Timestamp(seconds: 2_000_000_000)
        record.tags = ["film", "2026"]
        record.ttl = .milliseconds(1500)
        record.verify = .always
        return record
    }

    /// The content of all test files: never zero, and a function of the offset.
    static func content(_ range: ByteRange) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Int(range.length)) { bytes, count in
            // Whole copies of the pattern: a loop over bytes is slow without optimization.
            while count < bytes.count {
                let first = Int((range.lowerBound + Int64(count)) % period)
                let piece = pattern[first..<min(pattern.count, first + bytes.count - count)]
                UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(bytes)[count...])
                    .copyBytes(from: piece)
                count += piece.count
            }
        }
    }

    private static let period: Int64 = 251
    private static let pattern = (0..<251 * 256).map { UInt8($0 % 251) + 1 }
}

extension CommitQueue {
    /// Removes ranges and returns after the punches.
    func punch(_ file: SparseFile, _ ranges: [ByteRange]) async throws(CacheError) {
        cut(file, ranges)
        try await flush()
    }

    /// Removes assets and returns when the removal is durable.
    func remove(_ assets: [AssetID]) async throws(CacheError) {
        for asset in assets { discard(asset) }
        try await flush()
    }
}

extension SparseFile {
    func write(at offset: Int64, _ bytes: [UInt8]) throws {
        let outcome = bytes.withUnsafeBytes { buffer in Result { try write(buffer, at: offset) } }
        try outcome.get()
    }

    func bytes(_ range: ByteRange) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(range.length))
        let count = try bytes.withUnsafeMutableBytes { buffer in
            try Result { try read(into: buffer, at: range.lowerBound) }.get()
        }
        return Array(bytes.prefix(count))
    }
}
