/// The algorithm and the segment size that a persisted eviction state belongs to. Another layout cannot restore it
/// directly.
package struct EvictionLayout: Hashable, Sendable {
    package var algorithm: EvictionAlgorithm
    package var segmentBytes: Int64

    package init(algorithm: EvictionAlgorithm, segmentBytes: Int64) {
        self.algorithm = algorithm
        self.segmentBytes = segmentBytes
    }
}

/// The persisted state of one segment. Its size is not persisted: the extents of the asset give it.
package struct SegmentRecord: Hashable, Sendable {
    package var segment: SegmentID
    /// The position in the order of the policy; nil: unchanged since the last write.
    package var sequence: Int64?
    package var entry: PolicyEntry
    /// Seconds since 1970, like `readAt`; 0: never.
    package var arrivedAt: Int64
    package var readAt: Int64
    /// Counted reads, see `SpaceLedger.SegmentStats`.
    package var reads: Int64

    package init(
        segment: SegmentID, sequence: Int64?, entry: PolicyEntry, arrivedAt: Int64, readAt: Int64, reads: Int64
    ) {
        self.segment = segment
        self.sequence = sequence
        self.entry = entry
        self.arrivedAt = arrivedAt
        self.readAt = readAt
        self.reads = reads
    }
}

/// The difference to the state that was persisted last.
package struct SegmentChanges: Sendable {
    package var records: [SegmentRecord]
    /// Segments that left the policy.
    package var gone: [SegmentID]
    /// The position where the next choice of victims starts, for SIEVE. `isEmpty` ignores it, because it moves only
    /// together with other changes.
    package var hand: SegmentID?

    package init(records: [SegmentRecord] = [], gone: [SegmentID] = [], hand: SegmentID? = nil) {
        self.records = records
        self.gone = gone
        self.hand = hand
    }

    package var isEmpty: Bool { records.isEmpty && gone.isEmpty }
}

/// Tracks the changes that must be persisted.
struct PersistedState: Sendable {
    /// Whether the full state is persisted under the layout of the ledger, so that changes suffice.
    var isBegun = false
    /// Changed segments. The value is the new sequence number if the segment moved, else nil.
    var dirty: [SegmentID: Int64?] = [:]
    /// The last sequence number that was assigned.
    var sequence: Int64 = 0

    /// Records a changed segment. A moved segment gets the next sequence number.
    mutating func note(_ segment: SegmentID, hasMoved: Bool) {
        guard hasMoved else {
            if dirty[segment] == nil { dirty.updateValue(nil, forKey: segment) }
            return
        }
        sequence += 1
        dirty[segment] = sequence
    }
}

extension SpaceLedger {
    /// The layout under which the state of this ledger is persisted.
    package var form: EvictionLayout { EvictionLayout(algorithm: algorithm, segmentBytes: grid.segmentBytes) }

    /// Whether changes suffice; false: the full state must be persisted.
    package var isKept: Bool { kept.isBegun }

    /// Returns the changes since the last call and clears them; nil: the full state must be persisted, see `recordAll`.
    package mutating func takeChanges() -> SegmentChanges? {
        guard kept.isBegun else { return nil }
        var changes = SegmentChanges(hand: hand)
        for (id, sequence) in kept.dirty {
            if let slot = policy.table.slot(of: id) {
                changes.records.append(record(at: slot, sequence: sequence))
            } else {
                changes.gone.append(id)
            }
        }
        kept.dirty = [:]
        return changes
    }

    /// The position where the next choice of victims starts; nil: at the oldest segment, as most algorithms do.
    package var hand: SegmentID? { policy.hand.map { policy.table.segment(at: $0) } }

    /// Returns a copy. Its `records` and `hand` must be persisted under `form`. From now on only changes are collected.
    package mutating func recordAll() -> SpaceLedger {
        defer {
            kept.isBegun = true
            kept.dirty = [:]
            kept.sequence += Int64(policy.count)
        }
        return self
    }

    /// Records that a write failed: the full state must be persisted next.
    package mutating func failedToKeep() { kept.isBegun = false }

    /// All segments in the order of the policy, with consecutive sequence numbers.
    package var records: [SegmentRecord] {
        policy.slots.enumerated().map { record(at: $1, sequence: kept.sequence + 1 + Int64($0)) }
    }

    private func record(at slot: Int, sequence: Int64?) -> SegmentRecord {
        let stats = stats[slot]
        return SegmentRecord(
            segment: policy.table.segment(at: slot), sequence: sequence, entry: policy.entry(at: slot),
            arrivedAt: Int64(stats.arrivedAt), readAt: Int64(stats.readAt), reads: Int64(stats.reads))
    }

    /// Restores a persisted segment without bytes; call it in the order of the records, then `count` the bytes. It has
    /// no effect on a segment that is known already. `hand`: the sequence number of the segment where the hand
    /// stood. That segment may have been evicted since; the hand then takes the next one.
    package mutating func restore(_ record: SegmentRecord, hand: Int64? = nil) {
        kept.sequence = max(kept.sequence, record.sequence ?? 0)
        guard policy.table.slot(of: record.segment) == nil else { return }
        policy.restore(record.segment, bytes: 0, entry: record.entry)
        if let hand, policy.hand == nil, record.sequence ?? 0 >= hand {
            policy.hand = policy.table.slot(of: record.segment)
        }
        stats(of: record.segment) { stats in
            stats = SegmentStats(
                arrivedAt: UInt32(clamping: record.arrivedAt), readAt: UInt32(clamping: record.readAt),
                reads: UInt32(clamping: record.reads))
        }
    }

    /// Records that the full state was restored under the layout of the ledger.
    package mutating func wasRestored() { kept.isBegun = true }

    /// The second (since 1970) after which at most a twentieth of `roomBytes` arrived, from the statistics of the
    /// segments; 0 if less arrived in total.
    package var recentStart: UInt32 {
        var arrived: [UInt32: Int64] = [:]
        for slot in policy.slots { arrived[stats[slot].arrivedAt, default: 0] += policy.table.bytes(at: slot) }
        var rest = roomBytes / 20
        for (second, bytes) in arrived.sorted(by: { $0.key > $1.key }) {
            rest -= bytes
            if rest < 0 { return second }
        }
        return 0
    }

    /// Ends the grace period of everything that arrived up to `second`, because more than the budget arrived since.
    package mutating func beginRecent(at second: UInt32) { recent.begin(at: second) }

    /// Restored segments for which no bytes were counted.
    package var empty: [SegmentID] {
        policy.slots.filter { policy.table.bytes(at: $0) == 0 }.map { policy.table.segment(at: $0) }
    }

    /// Removes those of the segments that have no bytes.
    package mutating func drop(_ segments: some Sequence<SegmentID>) {
        for id in segments where policy.bytes(of: id) == 0 {
            policy.remove(id)
            kept.note(id, hasMoved: false)
        }
    }
}

extension EvictionAlgorithm {
    /// Whether a read changes the position of a segment.
    var readsMove: Bool { self == .lru || self == .lfuda || self == .gdsf }
    /// Whether a choice of victims changes the position of a segment that it skips because of its reads.
    var choicesMove: Bool { self == .s3fifo }
}
