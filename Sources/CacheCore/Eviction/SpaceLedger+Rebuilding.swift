extension SpaceLedger {
    /// A change of segments while a rebuild is in progress.
    enum Event: Sendable {
        case arrived(ByteRange, AssetID, Timestamp)
        case read(ByteRange, AssetID, Timestamp)
        case gone(ByteRange, AssetID)
        case counted(ByteRangeSet, AssetID, lastUse: Timestamp)
    }

    /// Puts settings in force. Another algorithm or grid requires a rebuild, which takes time proportional to the
    /// segments. The rebuild runs without the lock that guards the ledger:
    ///
    /// 1. Under the lock, `beginRebuilding` returns a copy. The ledger stays in use and records all events in a
    ///    journal.
    /// 2. Without the lock, the caller calls `rebuilt` on the copy. Meanwhile reads, writes and evictions change the
    ///    ledger, not the copy.
    /// 3. Under the lock, `finishRebuilding` replays the journal on the result and replaces the ledger by it. The
    ///    result now contains every event of step 2.
    /// 4. If the settings changed again since step 1, `beginRebuilding` returns another copy. The caller repeats the
    ///    steps until it returns nil.
    package mutating func adopt(_ settings: PolicySettings) { self.settings = settings }

    /// Whether algorithm or grid differ from the settings.
    private var isOutdated: Bool {
        algorithm != settings.algorithm || grid != SegmentGrid(capacity: settings.capacityBytes)
    }

    /// A copy to rebuild; nil if no rebuild is needed or one is in progress. Starts the journal.
    package mutating func beginRebuilding() -> SpaceLedger? {
        guard isOutdated, journal == nil else { return nil }
        defer { journal = [] }
        return self
    }

    /// The same segments with their statistics under the algorithm and grid of the settings.
    package func rebuilt() -> SpaceLedger {
        var new = SpaceLedger(settings: settings)
        for part in parts(on: new.grid) { new.insert(part) }
        if algorithm == settings.algorithm, let hand {
            let index = new.grid.index(of: range(of: hand).lowerBound)
            new.policy.hand = new.policy.table.slot(of: SegmentID(asset: hand.asset, index: index))
        }
        return new
    }

    /// Replays the journal on `rebuilt` and makes it this ledger.
    ///
    /// `isGuess`: the grid became finer, so the bytes of some segments are guesses and must be counted. `replaced`: the
    /// old ledger, for the caller to release outside of the lock, because freeing many segments takes time.
    package mutating func finishRebuilding(_ rebuilt: SpaceLedger) -> (isGuess: Bool, replaced: SpaceLedger) {
        var new = rebuilt
        new.settings = settings
        new.usedBytes = usedBytes
        new.freeDiskBytes = freeDiskBytes
        new.reservedBytes = reservedBytes
        new.pinned = pinned
        new.held = held
        new.heldBytes = heldBytes
        let isFiner = new.grid.segmentBytes < grid.segmentBytes
        for event in journal ?? [] { new.replay(event) }
        // The replay counted no owners: the usage in force has counted each event already.
        new.shares = shares
        new.recent = recent
        defer { self = new }
        return (isFiner, self)
    }

    /// Applies one event of the journal.
    private mutating func replay(_ event: Event) {
        switch event {
        case .arrived(let range, let asset, let now): arrived(range, of: asset, at: now)
        case .read(let range, let asset, let now): read(range, of: asset, at: now)
        case .gone(let range, let asset): gone(range, of: asset)
        case .counted(let extents, let asset, let lastUse): count(extents.runs, of: asset, lastUse: lastUse)
        }
    }

    /// A segment during a rebuild, independent of the policy.
    fileprivate struct Part {
        let segment: SegmentID
        var bytes: Int64
        var entry: PolicyEntry
        var stats: SegmentStats
    }

    /// Restores a segment with its statistics.
    private mutating func insert(_ part: Part) {
        policy.restore(part.segment, bytes: part.bytes, entry: part.entry)
        guard let slot = policy.table.slot(of: part.segment) else { return }
        while stats.count <= slot { stats.appendClosely(SegmentStats()) }
        stats[slot] = part.stats
    }

    /// The segments in the order of restoring: the order of the policy, or for another algorithm that of their last
    /// use.
    private func parts(on grid: SegmentGrid) -> [Part] {
        var slots = policy.slots
        let isSame = algorithm == settings.algorithm
        if !isSame { slots.sort { (stats[$0].lastUse, stats[$0].reads) < (stats[$1].lastUse, stats[$1].reads) } }
        let parts = slots.map { slot in
            Part(
                segment: policy.table.segment(at: slot), bytes: policy.table.bytes(at: slot),
                entry: isSame ? policy.entry(at: slot) : PolicyEntry(stats[slot]), stats: stats[slot])
        }
        if grid.segmentBytes > self.grid.segmentBytes { return joined(parts, on: grid) }
        return grid.segmentBytes < self.grid.segmentBytes ? parts.flatMap { divided($0, on: grid) } : parts
    }

    /// Merges segments for a coarser grid. A merged segment has the position of its last part, the best entry and the
    /// latest times.
    private func joined(_ parts: [Part], on grid: SegmentGrid) -> [Part] {
        var joined: [Part] = []
        var slots: [SegmentID: Int] = [:]
        for part in parts.reversed() {
            let id = SegmentID(asset: part.segment.asset, index: grid.index(of: range(of: part.segment).lowerBound))
            if let slot = slots[id] {
                joined[slot].add(part)
            } else {
                slots[id] = joined.count
                joined.append(
                    Part(segment: id, bytes: part.bytes, entry: part.entry, stats: part.stats))
            }
        }
        return joined.reversed()
    }

    /// Divides a segment for a finer grid; each part gets the entry of the whole. If the segment is not full, its bytes
    /// are assumed to be its first ones.
    private func divided(_ part: Part, on grid: SegmentGrid) -> [Part] {
        let run = range(of: part.segment)
        return grid.indices(of: run).map { index in
            let before = grid.run(of: index).lowerBound - run.lowerBound
            return Part(
                segment: SegmentID(asset: part.segment.asset, index: index),
                bytes: min(max(0, part.bytes - before), grid.segmentBytes), entry: part.entry, stats: part.stats)
        }
    }
}

extension SpaceLedger.Part {
    /// Merges another segment into this one.
    fileprivate mutating func add(_ other: Self) {
        bytes += other.bytes
        entry.isProven = entry.isProven || other.entry.isProven
        entry.reads = max(entry.reads, other.entry.reads)
        if let priority = other.entry.priority { entry.priority = max(entry.priority ?? priority, priority) }
        stats.arrivedAt = max(stats.arrivedAt, other.stats.arrivedAt)
        stats.readAt = max(stats.readAt, other.stats.readAt)
        stats.reads = max(stats.reads, other.stats.reads)
    }
}

extension PolicyEntry {
    /// The entry for another algorithm, derived from the statistics.
    fileprivate init(_ stats: SpaceLedger.SegmentStats) {
        self.init(isProven: stats.reads > 0, reads: UInt16(clamping: stats.reads))
    }
}
