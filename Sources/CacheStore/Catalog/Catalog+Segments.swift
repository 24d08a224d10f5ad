package import CacheCore
import GRDB

/// Persisted state of the eviction policy: the table `segments`. `meta` records the layout (`segments`) and the CLOCK
/// hand (`segments.hand`).
extension Catalog {
    /// Returns the layout (algorithm and segment size) of the persisted segments. Nil if no segments are persisted, if
    /// a rewrite did not complete, or if the value is invalid.
    package func segmentForm() async throws(CacheError) -> EvictionLayout? {
        let text = try await read { db in
            try String.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'segments'")
        }
        guard let parts = text?.split(separator: " "), parts.count == 2, let bytes = Int64(parts[1]),
            let algorithm = EvictionAlgorithm(rawValue: String(parts[0]))
        else { return nil }
        return EvictionLayout(algorithm: algorithm, segmentBytes: bytes)
    }

    /// Returns the sequence number of the segment where the next victim selection starts; nil means the first
    /// segment. That segment may no longer exist.
    package func segmentHand() async throws(CacheError) -> Int64? {
        try await read { try Int64.fetchOne($0, sql: "SELECT value FROM meta WHERE name = 'segments.hand'") }
    }

    /// Returns the pinned assets.
    static func pinnedAssets(_ db: Database) throws -> [AssetID] {
        // An invalid identifier belongs to a damaged row, which `Store.load` deletes later.
        try Row.fetchAll(
            db, sql: "SELECT id FROM assets WHERE is_pinned AND id NOT IN (SELECT asset FROM purged)"
        ).compactMap { try? RowCoding.assetID($0[0]) }
    }

    /// Passes every persisted segment to `tell`, ordered by priority and sequence: the order in which the policy
    /// restores them.
    package func eachSegment(_ tell: @escaping @Sendable (SegmentRecord) -> Void) async throws(CacheError) {
        try await read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT asset, position, sequence, is_proven, counted_reads, priority, arrived_at, read_at, reads
                    FROM segments ORDER BY priority, sequence
                    """)
            while let row = try rows.next() {
                let index = Int32(clamping: row[1] as Int64)
                let entry = PolicyEntry(isProven: row[3], reads: UInt16(clamping: row[4] as Int64), priority: row[5])
                tell(
                    SegmentRecord(
                        segment: SegmentID(asset: try RowCoding.assetID(row[0]), index: index), sequence: row[2],
                        entry: entry, arrivedAt: row[6], readAt: row[7], reads: row[8]))
            }
        }
    }

    /// Writes the changed segments and the clock hand, in one transaction. Segments of assets without a row are
    /// ignored.
    package func saveSegments(_ changes: SegmentChanges) async throws(CacheError) {
        try await write { db in
            for record in changes.records { try Self.save(record, db) }
            for segment in changes.gone {
                try db.cachedStatement(sql: "DELETE FROM segments WHERE asset = ? AND position = ?")
                    .execute(arguments: [RowCoding.blob(segment.asset), segment.index])
            }
            // The hand is stored as a sequence number, so that it survives the deletion of its segment.
            try db.cachedStatement(sql: "DELETE FROM meta WHERE name = 'segments.hand'").execute()
            guard let hand = changes.hand else { return }
            try db.cachedStatement(
                sql: """
                    INSERT INTO meta (name, value)
                    SELECT 'segments.hand', sequence FROM segments WHERE asset = ? AND position = ?
                    """
            ).execute(arguments: [RowCoding.blob(hand.asset), hand.index])
        }
    }

    /// Replaces all persisted segments, in transactions of 10,000. The layout is written last: after an interruption
    /// the catalog counts as having no persisted segments.
    package func replaceSegments(
        _ records: [SegmentRecord], form: EvictionLayout, hand: SegmentID? = nil
    ) async throws(CacheError) {
        try await write { db in
            try db.execute(sql: "DELETE FROM meta WHERE name = 'segments'")
            try db.execute(sql: "DELETE FROM segments")
        }
        var rest = records[...]
        repeat {
            try await saveSegments(SegmentChanges(records: Array(rest.prefix(10_000)), hand: hand))
            rest = rest.dropFirst(10_000)
        } while !rest.isEmpty
        let text = "\(form.algorithm.rawValue) \(form.segmentBytes)"
        try await write { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('segments', ?)", arguments: [text])
        }
    }

    /// Inserts or updates one segment if its asset has a row.
    private static func save(_ record: SegmentRecord, _ db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO segments (
                    asset, position, sequence, is_proven, counted_reads, priority, arrived_at, read_at, reads)
                SELECT :asset, :position, coalesce(:sequence, 0), :isProven, :counted, :priority, :arrivedAt, :readAt, :reads
                WHERE EXISTS (SELECT 1 FROM assets WHERE id = :asset)
                ON CONFLICT (asset, position) DO UPDATE SET
                    sequence = coalesce(:sequence, sequence), is_proven = excluded.is_proven,
                    counted_reads = excluded.counted_reads, priority = excluded.priority,
                    arrived_at = excluded.arrived_at, read_at = excluded.read_at, reads = excluded.reads
                """
        ).execute(arguments: [
            "asset": RowCoding.blob(record.segment.asset), "position": record.segment.index,
            "sequence": record.sequence, "isProven": record.entry.isProven,
            "counted": Int64(record.entry.reads), "priority": record.entry.priority,
            "arrivedAt": record.arrivedAt, "readAt": record.readAt, "reads": record.reads,
        ])
    }
}
