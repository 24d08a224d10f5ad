import CacheCore
import CacheStore

/// Log of the evictions of the last day. Records are written to the catalog after the evictions, which do not wait for
/// it.
final class EvictionLog: Sendable {
    /// How long records are kept.
    static let kept = Duration.seconds(86_400)
    /// The number of oldest records that are dropped when twice as many are pending.
    private static let limit = 10_000

    /// Guards the records that are not in the catalog yet.
    private let pending = OrderedMutex<[EvictionRecord]>(.leaf, [])
    private let catalog: Catalog
    private let wallClock: any WallClock
    private let events: EventLog

    init(catalog: Catalog, wallClock: any WallClock, events: EventLog) {
        self.catalog = catalog
        self.wallClock = wallClock
        self.events = events
    }

    /// Adds a record; no effect if `ranges` have no bytes.
    func note(_ reason: EvictionReason, _ ranges: [ByteRange], of target: AssetTarget) {
        note(reason, ranges, of: target.id, key: target.key, origin: target.originName)
    }

    /// The same for an asset that is not open.
    func note(_ reason: EvictionReason, _ ranges: [ByteRange], of id: AssetID, key: String, origin: String) {
        let bytes = ranges.byteCount
        guard bytes > 0 else { return }
        let record = EvictionRecord(
            at: wallClock.now(), reason: reason, assetID: id, key: key, origin: origin, bytes: bytes, ranges: ranges)
        events.publish(.evicted(record))
        pending.withLock { pending in
            pending.append(record)
            if pending.count > 2 * Self.limit { pending.removeFirst(Self.limit) }
        }
    }

    /// Writes the pending records to the catalog. After an error they stay pending.
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
