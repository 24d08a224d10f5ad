/// Accounts for the disk space of the store and chooses the segments to evict.
///
/// A value without I/O: it only decides. The owner of the ledger reserves, writes and punches, and reports each change
/// of the disk with `arrived`, `gone`, `used(changedBy:)` and `count`. A reservation or a choice of victims alone frees
/// nothing.
package struct SpaceLedger: Sendable {
    /// Statistics of one segment, next to the entry of the policy. Kept small, because a store may have millions of
    /// segments. Times are seconds since 1970.
    struct SegmentStats: Hashable, Sendable {
        /// When bytes of the segment were last written; if they were only counted, their last use.
        var arrivedAt: UInt32 = 0
        /// When the segment was last read; 0: never.
        var readAt: UInt32 = 0
        /// Counted reads: reads less than `RecentReads.interval` apart count as one.
        var reads: UInt32 = 0

        /// The later of the last write and the last read.
        var lastUse: UInt32 { max(arrivedAt, readAt) }
    }

    /// The policy in force. `algorithm` and `grid` follow it only after a rebuild, see `adopt(_:)`.
    package internal(set) var settings: PolicySettings
    /// Allocated disk blocks of all files, in bytes.
    package var usedBytes: Int64 = 0
    /// Free bytes of the file system; nil until measured.
    package var freeDiskBytes: Int64?
    /// Bytes granted to fills that are not yet written.
    package internal(set) var reservedBytes: Int64 = 0
    /// Assets of which nothing is evicted.
    package var pinned: Set<AssetID> = []
    /// Ranges that unfinished prefetch jobs claim. They are skipped, so that a job does not evict its own items.
    package var held: [AssetID: ByteRangeSet] = [:]
    /// The bytes that prefetch jobs claim in total.
    package var heldBytes: Int64 = 0
    /// The grid that divides assets into segments.
    package let grid: SegmentGrid
    let algorithm: EvictionAlgorithm
    /// The order of eviction, and the table of all segments with bytes on disk.
    var policy: any EvictionPolicy
    /// Statistics, indexed by the policy's slot of the segment.
    var stats: [SegmentStats] = []
    /// Events since a rebuild began; nil: no rebuild is in progress.
    var journal: [Event]?
    /// The changes that are not yet persisted.
    var kept = PersistedState()
    /// Limits the bytes that are protected by the grace period.
    var recent = GraceBudget()
    /// The usage of each owner with a quota.
    var shares = QuotaUsage()

    /// Creates an empty ledger. `form`: the algorithm and grid of the persisted state; nil: those of the settings.
    package init(settings: PolicySettings, form: EvictionLayout? = nil) {
        self.settings = settings
        grid = form.map { SegmentGrid(segmentBytes: $0.segmentBytes) } ?? SegmentGrid(capacity: settings.capacityBytes)
        algorithm = form?.algorithm ?? settings.algorithm
        policy = algorithm.policy(capacityBytes: settings.capacityBytes ?? .max)
    }

    // MARK: Space

    /// Reserves `bytes` if they fit below the capacity and leave `minFreeDiskBytes` free. Returns false otherwise.
    package mutating func reserve(_ bytes: Int64) -> Bool {
        if let capacity = settings.capacityBytes, usedBytes + reservedBytes + bytes > capacity { return false }
        if let freeDiskBytes, freeDiskBytes - reservedBytes - bytes < settings.minFreeDiskBytes { return false }
        reservedBytes += bytes
        return true
    }

    /// Reserves `bytes` above the limit: nothing more can be evicted, and readers take precedence.
    package mutating func grantOverLimit(_ bytes: Int64) { reservedBytes += bytes }

    /// Records a change of the allocated blocks. Growth is also subtracted from the free space until the next
    /// measurement.
    package mutating func used(changedBy bytes: Int64) {
        usedBytes = max(0, usedBytes + bytes)
        if bytes > 0 { freeDiskBytes = freeDiskBytes.map { $0 - bytes } }
    }

    /// Whether the reservations and `waitingBytes` exceed the free space of the disk.
    package func isShortOfDisk(waitingBytes: Int64) -> Bool { lack(waitingBytes: waitingBytes).disk > 0 }

    /// Returns a reservation, after its bytes were written or the fill ended.
    package mutating func release(_ bytes: Int64) { reservedBytes = max(0, reservedBytes - bytes) }

    /// The bytes to evict now if `waitingBytes` more are requested: from above the high watermark down to the low
    /// watermark, or the bytes that the disk lacks, whichever is more. Never more than the store has.
    package func excess(waitingBytes: Int64) -> Int64 {
        let lack = lack(waitingBytes: waitingBytes)
        return min(max(lack.capacity, lack.disk), usedBytes)
    }

    /// The bytes to free because of the capacity and because of the disk; 0 or less if the limit is met.
    func lack(waitingBytes: Int64) -> (capacity: Int64, disk: Int64) {
        var lack: (capacity: Int64, disk: Int64) = (0, 0)
        let needed = usedBytes + reservedBytes + waitingBytes
        if let capacity = settings.capacityBytes, needed > Self.part(settings.highWatermark, of: capacity) {
            lack.capacity = needed - Self.part(settings.lowWatermark, of: capacity)
        }
        if let freeDiskBytes {
            lack.disk = settings.minFreeDiskBytes - (freeDiskBytes - reservedBytes - waitingBytes)
        }
        return lack
    }

    /// The bytes that the store holds after eviction: the low watermark, or without a capacity the used and the free
    /// bytes less `minFreeDiskBytes`. The policy divides this size into its queues.
    var roomBytes: Int64 {
        if let capacity = settings.capacityBytes { return Self.part(settings.lowWatermark, of: capacity) }
        return freeDiskBytes.map { max(0, usedBytes + $0 - settings.minFreeDiskBytes) } ?? .max
    }

    /// The share `mark` of the capacity, rounded down. For the largest capacities `Double` may round up beyond `Int64`;
    /// the result is then the capacity.
    private static func part(_ mark: Double, of capacity: Int64) -> Int64 {
        Int64(exactly: (Double(capacity) * mark).rounded(.down)) ?? capacity
    }

    // MARK: Segments

    /// Announces a requested range, before its bytes arrive, so that the policy keeps its history of these segments.
    package mutating func expect(_ range: ByteRange, of asset: AssetID) {
        for (id, _) in parts(of: range, of: asset) { policy.expect(id) }
    }

    /// Records bytes that were written to a hole. Segments that had no bytes are admitted as the most recent ones.
    package mutating func arrived(
        _ range: ByteRange, of asset: AssetID, from owners: AssetOwners = AssetOwners(), at now: Timestamp
    ) {
        journal?.append(.arrived(range, asset, now))
        shares.meet(asset, of: owners)
        recent.note(range.length, at: UInt32(clamping: now.seconds), atMost: roomBytes / 20)
        for (id, part) in parts(of: range, of: asset) {
            let known = policy.bytes(of: id)
            let bytes = min((known ?? 0) + part.length, grid.segmentBytes)
            policy.admit(id, bytes: bytes)
            shares.change(asset, by: bytes - (known ?? 0))
            stats(of: id) { stats in
                if known == nil { stats = SegmentStats() }
                stats.arrivedAt = UInt32(clamping: now.seconds)
            }
            if known == nil { kept.note(id, hasMoved: true) }
        }
    }

    /// Records a read of bytes that were on disk before. Reads of a segment within `RecentReads.interval` count as one.
    package mutating func read(_ range: ByteRange, of asset: AssetID, at now: Timestamp) {
        journal?.append(.read(range, asset, now))
        let now = UInt32(clamping: now.seconds)
        for (id, _) in parts(of: range, of: asset) {
            guard let slot = policy.table.slot(of: id), RecentReads.isDue(now, after: stats[slot].readAt) else {
                continue
            }
            stats[slot].readAt = now
            stats[slot].reads &+= 1
            policy.touch(id)
            kept.note(id, hasMoved: algorithm.readsMove)
        }
    }

    /// Records bytes that were removed from the disk. A segment without bytes leaves the policy.
    package mutating func gone(_ range: ByteRange, of asset: AssetID) {
        journal?.append(.gone(range, asset))
        for (id, part) in parts(of: range, of: asset) {
            guard let bytes = policy.bytes(of: id) else { continue }
            shares.change(asset, by: -min(bytes, part.length))
            if bytes > part.length {
                policy.resize(id, bytes: bytes - part.length)
            } else {
                policy.remove(id)
                kept.note(id, hasMoved: false)
            }
        }
    }

    /// Replaces the recorded bytes of one asset by `runs`, all its bytes on disk. Segments that the policy does not
    /// know are admitted with `lastUse` as their last use.
    ///
    /// Segments in holes between the runs are removed, up to 4096 for each hole, to bound the time under the lock. The
    /// rest is removed when the policy chooses it.
    package mutating func count(
        _ runs: some Sequence<ByteRange>, of asset: AssetID, from owners: AssetOwners = AssetOwners(),
        lastUse: Timestamp
    ) {
        let extents = ByteRangeSet(runs)
        shares.own(asset, by: owners, bytes: extents.byteCount)
        journal?.append(.counted(extents, asset, lastUse: lastUse))
        var end: Int32 = 0
        for index in Set(extents.runs.flatMap { grid.indices(of: $0) }).sorted() {
            let id = SegmentID(asset: asset, index: index)
            let isNew = policy.table.slot(of: id) == nil
            policy.admit(id, bytes: extents.byteCount(in: grid.run(of: index)))
            if isNew {
                stats(of: id) { $0 = SegmentStats(arrivedAt: UInt32(clamping: lastUse.seconds)) }
                kept.note(id, hasMoved: true)
            }
            // The rest of a longer hole stays until the policy chooses a segment of it.
            for hole in end..<min(index, Int32(clamping: Int(end) + 4096)) {
                let hole = SegmentID(asset: asset, index: hole)
                guard policy.table.slot(of: hole) != nil else { continue }
                policy.remove(hole)
                kept.note(hole, hasMoved: false)
            }
            end = index + 1
        }
    }

    /// Whether the last bytes of the segment arrived after a time.
    package func arrived(_ segment: SegmentID, after time: Timestamp) -> Bool {
        guard let slot = policy.table.slot(of: segment), slot < stats.count else { return false }
        return stats[slot].arrivedAt > UInt32(clamping: time.seconds)
    }

    /// Whether bytes of the segment are on disk.
    package func has(_ segment: SegmentID) -> Bool { policy.table.slot(of: segment) != nil }

    /// The counted reads of all segments that the range touches.
    package func reads(of asset: AssetID, in range: ByteRange) -> Int64 {
        parts(of: range, of: asset).reduce(0) { sum, part in
            sum + (policy.table.slot(of: part.0).map { Int64(stats[$0].reads) } ?? 0)
        }
    }

    /// Chooses the segments to evict to free `bytes`, in eviction order, at most `limit`. Nothing is removed yet.
    ///
    /// Never chosen: segments of pinned assets, and those in `besides`. Others are chosen only under a condition:
    /// - Claims of prefetch jobs: only if space `isUrgent` and the jobs claim more than the capacity, which was
    ///   lowered since, or there is no capacity.
    /// - Segments younger than the grace period, at most a twentieth of `roomBytes`: only if space `isUrgent` or the
    ///   store exceeds its capacity.
    ///
    /// `isUrgent`: a fill waits for this space, an owner exceeds its maximum, or an administrator requested the
    /// eviction. `owner`: only assets of this owner. `keepsQuotas`: other owners keep their minimum.
    package mutating func victims(
        toFree bytes: Int64, at now: Timestamp, isUrgent: Bool, besides: Set<SegmentID> = [], limit: Int = .max,
        of owner: QuotaOwner? = nil, keepsQuotas: Bool = true
    ) -> [Victim] {
        if policy.capacityBytes != roomBytes { policy.capacityBytes = roomBytes }
        // Without this cap a burst of new segments would be protected, and would force out segments worth keeping.
        let young = max(UInt32(clamping: (now - settings.grace).seconds), recent.start)
        let isContended = isUrgent && settings.capacityBytes.map { heldBytes > $0 } ?? true
        let grid = grid
        let (pinned, held, stats) = (pinned, isContended ? [:] : held, stats)
        let isUrgent = isUrgent || settings.capacityBytes.map { usedBytes > $0 } ?? false
        var moved: [Int] = []
        guard
            var choice = shares.choice(of: owner, segmentBytes: grid.segmentBytes, keepsQuotas: keepsQuotas)
        else { return [] }
        let victims = policy.victims(toFree: bytes, atMost: limit) { id, slot in
            if pinned.contains(id.asset) || besides.contains(id) { return true }
            if let claim = held[id.asset], claim.byteCount(in: grid.run(of: id.index)) > 0 { return true }
            if !isUrgent, stats[slot].arrivedAt > young { return true }
            return choice.spares(id.asset)
        } moving: { slot in
            moved.append(slot)
        }
        for slot in moved { kept.note(policy.table.segment(at: slot), hasMoved: algorithm.choicesMove) }
        return victims
    }

    /// The range of the asset that the segment covers.
    package func range(of segment: SegmentID) -> ByteRange { grid.run(of: segment.index) }

    /// Changes the statistics of a segment, if the policy knows it. The slot may have belonged to another segment
    /// before.
    mutating func stats(of id: SegmentID, _ change: (inout SegmentStats) -> Void) {
        guard let slot = policy.table.slot(of: id) else { return }
        while stats.count <= slot { stats.appendClosely(SegmentStats()) }
        change(&stats[slot])
    }

    /// The segments that the range touches, each with its part of the range.
    private func parts(of range: ByteRange, of asset: AssetID) -> [(SegmentID, ByteRange)] {
        grid.indices(of: range).map { (SegmentID(asset: asset, index: $0), grid.run(of: $0).clamped(to: range)) }
    }
}
