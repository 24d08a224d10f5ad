/// Under which algorithm and grid of segments a ledger stands, and what was written down of it.
package struct LedgerForm: Hashable, Sendable {
    package var algorithm: EvictionAlgorithm
    package var segmentBytes: Int64

    package init(algorithm: EvictionAlgorithm, segmentBytes: Int64) {
        self.algorithm = algorithm
        self.segmentBytes = segmentBytes
    }
}

/// What is kept of a segment over a restart; how many bytes it has the extents say.
package struct SegmentRecord: Hashable, Sendable {
    package var segment: SegmentID
    /// Where it stands among the others; nil: where it stood.
    package var sequence: Int64?
    package var standing: Standing
    /// In seconds since 1970, 0: never.
    package var arrivedAt: Int64
    package var readAt: Int64
    package var reads: Int64

    package init(
        segment: SegmentID, sequence: Int64?, standing: Standing, arrivedAt: Int64, readAt: Int64, reads: Int64
    ) {
        self.segment = segment
        self.sequence = sequence
        self.standing = standing
        self.arrivedAt = arrivedAt
        self.readAt = readAt
        self.reads = reads
    }
}

/// What has changed since it was written down last.
package struct SegmentChanges: Sendable {
    package var records: [SegmentRecord]
    package var gone: [SegmentID]
    /// Where the next choice of victims begins, for an algorithm that goes round; it moves only where others change.
    package var hand: SegmentID?

    package init(records: [SegmentRecord] = [], gone: [SegmentID] = [], hand: SegmentID? = nil) {
        self.records = records
        self.gone = gone
        self.hand = hand
    }

    package var isEmpty: Bool { records.isEmpty && gone.isEmpty }
}

/// What must be written down.
struct KeptState: Sendable {
    /// Whether all else is written down already, under the ledger's form.
    var isBegun = false
    /// Segments that changed; with their new number, if they moved.
    var dirty: [SegmentID: Int64?] = [:]
    var sequence: Int64 = 0

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
    package var form: LedgerForm { LedgerForm(algorithm: algorithm, segmentBytes: grid.segmentBytes) }

    /// Whether only what changed is to be written down.
    package var isKept: Bool { kept.isBegun }

    /// What changed since the last time; nil: all must be written anew, with `recordAll`.
    package mutating func takeChanges() -> SegmentChanges? {
        guard kept.isBegun else { return nil }
        var changes = SegmentChanges(hand: hand)
        for (id, sequence) in kept.dirty {
            if let place = policy.table.place(of: id) {
                changes.records.append(record(at: place, sequence: sequence))
            } else {
                changes.gone.append(id)
            }
        }
        kept.dirty = [:]
        return changes
    }

    /// Where the next choice of victims begins; nil: with the oldest, as most algorithms do.
    package var hand: SegmentID? { policy.hand.map { policy.table.segment(at: $0) } }

    /// All there is, in a copy: `records` and `hand` of it are written down under the ledger's form, then what changes from now on.
    package mutating func recordAll() -> SpaceLedger {
        defer {
            kept.isBegun = true
            kept.dirty = [:]
            kept.sequence += Int64(policy.count)
        }
        return self
    }

    /// What was to be written down was not: all must be, anew.
    package mutating func failedToKeep() { kept.isBegun = false }

    /// All segments, numbered in their order.
    package var records: [SegmentRecord] {
        policy.places.enumerated().map { record(at: $1, sequence: kept.sequence + 1 + Int64($0)) }
    }

    private func record(at place: Int, sequence: Int64?) -> SegmentRecord {
        let heat = heats[place]
        return SegmentRecord(
            segment: policy.table.segment(at: place), sequence: sequence, standing: policy.standing(at: place),
            arrivedAt: Int64(heat.arrivedAt), readAt: Int64(heat.readAt), reads: Int64(heat.reads))
    }

    /// Takes up a segment that was written down, in the order of the records; its bytes are yet to be counted. Without effect
    /// where it is known already. `hand`: the number of the segment that the hand was at, which may have gone since.
    package mutating func restore(_ record: SegmentRecord, hand: Int64? = nil) {
        kept.sequence = max(kept.sequence, record.sequence ?? 0)
        guard policy.table.place(of: record.segment) == nil else { return }
        policy.restore(record.segment, bytes: 0, standing: record.standing)
        if let hand, policy.hand == nil, record.sequence ?? 0 >= hand {
            policy.hand = policy.table.place(of: record.segment)
        }
        heat(of: record.segment) { heat in
            heat = Heat(
                arrivedAt: UInt32(clamping: record.arrivedAt), readAt: UInt32(clamping: record.readAt),
                reads: UInt32(clamping: record.reads))
        }
    }

    /// All that was written down under the ledger's form is taken up.
    package mutating func wasRestored() { kept.isBegun = true }

    /// Since when a twentieth of the room has come, by what is known of the segments; 0 where there is less.
    package var recentStart: UInt32 {
        var arrived: [UInt32: Int64] = [:]
        for place in policy.places { arrived[heats[place].arrivedAt, default: 0] += policy.table.bytes(at: place) }
        var rest = roomBytes / 20
        for (second, bytes) in arrived.sorted(by: { $0.key > $1.key }) {
            rest -= bytes
            if rest < 0 { return second }
        }
        return 0
    }

    /// What had come by then is not spared for being new: more came since than may be.
    package mutating func beginRecent(at second: UInt32) { recent.begin(at: second) }

    /// Segments that were taken up and of which nothing was counted.
    package var empty: [SegmentID] {
        policy.places.filter { policy.table.bytes(at: $0) == 0 }.map { policy.table.segment(at: $0) }
    }

    /// Forgets those of the segments that have no bytes.
    package mutating func drop(_ segments: some Sequence<SegmentID>) {
        for id in segments where policy.bytes(of: id) == 0 {
            policy.remove(id)
            kept.note(id, hasMoved: false)
        }
    }
}

extension EvictionAlgorithm {
    /// Whether a read gives a segment another place in the order…
    var readsMove: Bool { self == .lru || self == .lfuda || self == .gdsf }
    /// …and whether a choice does that spares it.
    var choicesMove: Bool { self == .s3fifo }
}
