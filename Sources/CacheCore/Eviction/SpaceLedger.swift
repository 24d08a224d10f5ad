/// How the store's disk space is used, and what is to go when it runs short; a value that only decides.
package struct SpaceLedger: Sendable {
    /// What is known of a segment beside what the policy knows; small, for there may be millions. In seconds since 1970.
    struct Heat: Hashable, Sendable {
        var arrivedAt: UInt32 = 0
        /// 0: never.
        var readAt: UInt32 = 0
        /// Reads closer together than the interval count as one.
        var reads: UInt32 = 0

        var lastUse: UInt32 { max(arrivedAt, readAt) }
    }

    /// The policy in force; its algorithm, and the grid of its capacity, once the ledger was rebuilt.
    package internal(set) var settings: PolicySettings
    /// Real disk blocks of all files.
    package var usedBytes: Int64 = 0
    /// Free bytes of the disk, for everybody; nil until measured.
    package var freeDiskBytes: Int64?
    /// Promised to windows under way.
    package internal(set) var reservedBytes: Int64 = 0
    package var pinned: Set<AssetID> = []
    /// The claims of unfinished prefetch jobs: spared, so that nothing is evicted for a job that the job itself wants.
    package var held: [AssetID: ByteRangeSet] = [:]
    /// The bytes that prefetch jobs claim.
    package var heldBytes: Int64 = 0
    package let grid: SegmentGrid
    let algorithm: EvictionAlgorithm
    var policy: any EvictionPolicy
    /// By the policy's places.
    var heats: [Heat] = []
    /// What happened since a rebuilding began; nil: there is none under way.
    var journal: [Event]?
    var kept = KeptState()
    var recent = RecentArrivals()
    var shares = OwnerShares()

    /// `form`: that of what was written down; nil: as the settings say.
    package init(settings: PolicySettings, form: LedgerForm? = nil) {
        self.settings = settings
        grid = form.map { SegmentGrid(segmentBytes: $0.segmentBytes) } ?? SegmentGrid(capacity: settings.capacityBytes)
        algorithm = form?.algorithm ?? settings.algorithm
        policy = algorithm.policy(capacityBytes: settings.capacityBytes ?? .max)
    }

    // MARK: Space

    /// Promises `bytes` if they fit under the capacity, and above what must stay free of the disk.
    package mutating func reserve(_ bytes: Int64) -> Bool {
        if let capacity = settings.capacityBytes, usedBytes + reservedBytes + bytes > capacity { return false }
        if let freeDiskBytes, freeDiskBytes - reservedBytes - bytes < settings.minFreeDiskBytes { return false }
        reservedBytes += bytes
        return true
    }

    /// Promises `bytes` though they do not fit: nothing more can be evicted, and readers come first.
    package mutating func overdraw(_ bytes: Int64) { reservedBytes += bytes }

    /// The files' blocks have changed; what they have taken the disk has no more, until it is measured again.
    package mutating func used(changedBy bytes: Int64) {
        usedBytes = max(0, usedBytes + bytes)
        if bytes > 0 { freeDiskBytes = freeDiskBytes.map { $0 - bytes } }
    }

    /// Whether more is promised, and asked for, than the disk may give.
    package func isShortOfDisk(waitingBytes: Int64) -> Bool { lack(waitingBytes: waitingBytes).disk > 0 }

    package mutating func release(_ bytes: Int64) { reservedBytes = max(0, reservedBytes - bytes) }

    /// How many bytes are to be freed now, with `waitingBytes` more asked for: from above the high watermark down to the
    /// low one, and as much as the disk lacks.
    package func excess(waitingBytes: Int64) -> Int64 {
        let lack = lack(waitingBytes: waitingBytes)
        return min(max(lack.capacity, lack.disk), usedBytes)
    }

    /// What the capacity, and what the disk asks to be freed; not more than 0 where they ask for nothing.
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

    /// What there is room for, once eviction has done its work: that is what the policy divides into its queues.
    var roomBytes: Int64 {
        if let capacity = settings.capacityBytes { return Self.part(settings.lowWatermark, of: capacity) }
        return freeDiskBytes.map { max(0, usedBytes + $0 - settings.minFreeDiskBytes) } ?? .max
    }

    /// Exact but for the largest, which a `Double` may round up to more than there is.
    private static func part(_ mark: Double, of capacity: Int64) -> Int64 {
        Int64(exactly: (Double(capacity) * mark).rounded(.down)) ?? capacity
    }

    // MARK: Segments

    /// Bytes were asked for, and are about to come.
    package mutating func expect(_ range: ByteRange, of asset: AssetID) {
        for (id, _) in parts(of: range, of: asset) { policy.expect(id) }
    }

    /// Bytes were written where none were; the segments they lie in are the most recent now if they are new.
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
            heat(of: id) { heat in
                if known == nil { heat = Heat() }
                heat.arrivedAt = UInt32(clamping: now.seconds)
            }
            if known == nil { kept.note(id, hasMoved: true) }
        }
    }

    /// Bytes that had been there before were read.
    package mutating func read(_ range: ByteRange, of asset: AssetID, at now: Timestamp) {
        journal?.append(.read(range, asset, now))
        let now = UInt32(clamping: now.seconds)
        for (id, _) in parts(of: range, of: asset) {
            guard let place = policy.table.place(of: id), ReadMemory.isDue(now, after: heats[place].readAt) else {
                continue
            }
            heats[place].readAt = now
            heats[place].reads &+= 1
            policy.touch(id)
            kept.note(id, hasMoved: algorithm.readsMove)
        }
    }

    /// Bytes are off the disk.
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

    /// These are all the bytes of the asset on disk, whatever was counted before; segments that are new were last used at
    /// `lastUse`.
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
            let isNew = policy.table.place(of: id) == nil
            policy.admit(id, bytes: extents.byteCount(in: grid.run(of: index)))
            if isNew {
                heat(of: id) { $0 = Heat(arrivedAt: UInt32(clamping: lastUse.seconds)) }
                kept.note(id, hasMoved: true)
            }
            // A hole of more is left to whoever chooses a segment of it.
            for hole in end..<min(index, Int32(clamping: Int(end) + 4096)) {
                let hole = SegmentID(asset: asset, index: hole)
                guard policy.table.place(of: hole) != nil else { continue }
                policy.remove(hole)
                kept.note(hole, hasMoved: false)
            }
            end = index + 1
        }
    }

    /// Whether bytes of the segment are on disk.
    package func has(_ segment: SegmentID) -> Bool { policy.table.place(of: segment) != nil }

    package func reads(of asset: AssetID, in range: ByteRange) -> Int64 {
        parts(of: range, of: asset).reduce(0) { sum, part in
            sum + (policy.table.place(of: part.0).map { Int64(heats[$0].reads) } ?? 0)
        }
    }

    /// The segments to evict to free `bytes`, first to go first, at most `limit`; pinned assets never, those of prefetch jobs
    /// only where space is `isDesperate` and they claim more than a capacity that was lowered, segments younger
    /// than the grace, a twentieth of the room at most, only where space is `isDesperate` or above the capacity, and none of those in `besides`. `owner`: only
    /// of its assets; `keepsQuotas`: not of others that would have less than is left to them then.
    package mutating func victims(
        toFree bytes: Int64, at now: Timestamp, isDesperate: Bool, besides: Set<SegmentID> = [], limit: Int = .max,
        of owner: QuotaOwner? = nil, keepsQuotas: Bool = true
    ) -> [Victim] {
        if policy.capacityBytes != roomBytes { policy.capacityBytes = roomBytes }
        // Where much comes within the grace, what is worth keeping would go for what nobody asks for again.
        let young = max(UInt32(clamping: (now - settings.grace).seconds), recent.start)
        let isContended = isDesperate && settings.capacityBytes.map { heldBytes > $0 } ?? true
        let grid = grid
        let (pinned, held, heats) = (pinned, isContended ? [:] : held, heats)
        let isDesperate = isDesperate || settings.capacityBytes.map { usedBytes > $0 } ?? false
        var moved: [Int] = []
        guard
            var choice = shares.choice(of: owner, segmentBytes: grid.segmentBytes, keepsQuotas: keepsQuotas)
        else { return [] }
        let victims = policy.victims(toFree: bytes, atMost: limit) { id, place in
            if pinned.contains(id.asset) || besides.contains(id) { return true }
            if let claim = held[id.asset], claim.byteCount(in: grid.run(of: id.index)) > 0 { return true }
            if !isDesperate, heats[place].arrivedAt > young { return true }
            return choice.spares(id.asset)
        } moving: { place in
            moved.append(place)
        }
        for place in moved { kept.note(policy.table.segment(at: place), hasMoved: algorithm.choicesMove) }
        return victims
    }

    /// The bytes of the asset that the segment stands for.
    package func range(of segment: SegmentID) -> ByteRange { grid.run(of: segment.index) }

    /// Changes what is known of a segment, if it is known; its place may have had another one before.
    mutating func heat(of id: SegmentID, _ change: (inout Heat) -> Void) {
        guard let place = policy.table.place(of: id) else { return }
        while heats.count <= place { heats.appendClosely(Heat()) }
        change(&heats[place])
    }

    private func parts(of range: ByteRange, of asset: AssetID) -> [(SegmentID, ByteRange)] {
        grid.indices(of: range).map { (SegmentID(asset: asset, index: $0), grid.run(of: $0).clamped(to: range)) }
    }
}
