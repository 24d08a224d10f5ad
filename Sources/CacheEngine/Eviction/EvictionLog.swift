import CacheCore
import CacheStore
import Synchronization

/// What was evicted and why, for a day. It is written down behind the evictions, which do not wait for it.
final class EvictionLog: Sendable {
    static let kept = Duration.seconds(86_400)
    /// What cannot be written down is dropped, oldest first, beyond so many.
    private static let limit = 10_000

    private let pending = Mutex<[EvictionRecord]>([])
    private let catalog: Catalog
    private let wallClock: any WallClock

    init(catalog: Catalog, wallClock: any WallClock) {
        self.catalog = catalog
        self.wallClock = wallClock
    }

    /// Without effect where nothing went.
    func note(_ reason: EvictionReason, _ ranges: [ByteRange], of target: AssetTarget) {
        let bytes = ranges.byteCount
        guard bytes > 0 else { return }
        let record = EvictionRecord(
            at: wallClock.now(), reason: reason, assetID: target.id, key: target.key, origin: target.originName,
            bytes: bytes, ranges: ranges)
        pending.withLock { pending in
            pending.append(record)
            if pending.count > 2 * Self.limit { pending.removeFirst(Self.limit) }
        }
    }

    /// Writes down what was noted.
    func write() async throws(CacheError) {
        let records = pending.withLock { pending in
            defer { pending = [] }
            return pending
        }
        guard !records.isEmpty else { return }
        do {
            try await catalog.logEvictions(records, forgettingBefore: wallClock.now() - Self.kept)
        } catch {
            pending.withLock { $0 = records + $0 }
            throw error
        }
    }
}
