package import CacheCore
import GRDB

extension Catalog {
    /// Under which algorithm and grid segments are kept; nil where none are, or not all of them, or nobody can
    /// tell.
    package func segmentForm() async throws(CacheError) -> LedgerForm? {
        let text = try await read { db in
            try String.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'segments'")
        }
        guard let parts = text?.split(separator: " "), parts.count == 2, let bytes = Int64(parts[1]),
            let algorithm = EvictionAlgorithm(rawValue: String(parts[0]))
        else { return nil }
        return LedgerForm(algorithm: algorithm, segmentBytes: bytes)
    }

    /// The number of the segment at which the next choice of victims begins; nil: the first. That segment may be gone.
    package func segmentHand() async throws(CacheError) -> Int64? {
        try await read { try Int64.fetchOne($0, sql: "SELECT value FROM meta WHERE name = 'segments.hand'") }
    }

    /// The assets that are pinned.
    static func pinnedAssets(_ db: Database) throws -> [AssetID] {
        // What is no name is a damaged row's, and goes with it.
        try Row.fetchAll(db, sql: "SELECT id FROM assets WHERE is_pinned").compactMap { try? RowCoding.assetID($0[0]) }
    }

    /// Tells of every segment that is kept, in the order in which the policy takes them up.
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
                let standing = Standing(isProven: row[3], reads: UInt16(clamping: row[4] as Int64), priority: row[5])
                tell(
                    SegmentRecord(
                        segment: SegmentID(asset: try RowCoding.assetID(row[0]), index: index), sequence: row[2],
                        standing: standing, arrivedAt: row[6], readAt: row[7], reads: row[8]))
            }
        }
    }

    /// Writes down what changed, in one transaction; what belongs to no asset's row is left out.
    package func saveSegments(_ changes: SegmentChanges) async throws(CacheError) {
        try await write { db in
            for record in changes.records { try Self.save(record, db) }
            for segment in changes.gone {
                try db.cachedStatement(sql: "DELETE FROM segments WHERE asset = ? AND position = ?")
                    .execute(arguments: [RowCoding.blob(segment.asset), segment.index])
            }
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

    /// Writes all segments down anew, in bounded transactions; until the last one is done, none count as kept.
    package func replaceSegments(
        _ records: [SegmentRecord], form: LedgerForm, hand: SegmentID? = nil
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
            "sequence": record.sequence, "isProven": record.standing.isProven,
            "counted": Int64(record.standing.reads), "priority": record.standing.priority,
            "arrivedAt": record.arrivedAt, "readAt": record.readAt, "reads": record.reads,
        ])
    }
}
