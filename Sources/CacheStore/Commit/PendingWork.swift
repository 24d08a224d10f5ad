import CacheCore

/// What the next commit is to do, in the order of doing: removals, cuts, new rows, refreshed rows, growth, uses.
struct PendingWork: Sendable {
    struct Ranges: Sendable {
        var file: SparseFile
        var ranges = ByteRangeSet()
    }

    struct Cut: Sendable {
        var file: SparseFile
        /// What leaves the rows.
        var ranges = ByteRangeSet()
        /// What of it leaves the disk as well: not what has been written anew since.
        var holes = ByteRangeSet()
    }

    struct Begun: Sendable {
        var record: AssetRecord
        /// Nil: the file that the row has, where that is of the same generation.
        var file: SparseFile?
    }

    struct Use: Sendable {
        var at: Timestamp
        var hits: Int64

        func and(_ other: Use) -> Use { Use(at: max(at, other.at), hits: hits + other.hits) }
    }

    private(set) var removals: Set<AssetID> = []
    /// What the commit that is being made removes.
    private(set) var removing: Set<AssetID> = []
    private(set) var begun: [AssetID: Begun] = [:]
    private(set) var refreshed: [AssetID: AssetRecord] = [:]
    /// By serial, as `cuts`.
    private(set) var growth: [Int64: Ranges] = [:]
    private(set) var cuts: [Int64: Cut] = [:]
    private(set) var uses: [AssetID: Use] = [:]
    /// Files that were begun and given up before a commit saw them: to be unlinked.
    private(set) var abandoned: [FileName] = []

    var isEmpty: Bool {
        removals.isEmpty && begun.isEmpty && refreshed.isEmpty && growth.isEmpty && cuts.isEmpty && uses.isEmpty
            && abandoned.isEmpty
    }

    /// Whether the disk has more room when it is done.
    var frees: Bool { !removals.isEmpty || cuts.values.contains { !$0.holes.isEmpty } }

    /// Bytes that are written but not claimed yet.
    private(set) var byteCount: Int64 = 0
    private var oldest: ContinuousClock.Instant?
    /// Since when the oldest of them have waited.
    var waitingSince: ContinuousClock.Instant? { byteCount > 0 ? oldest : nil }

    mutating func begin(_ record: AssetRecord, file: SparseFile?) {
        var file = file
        if let earlier = begun[record.id], let earlierFile = earlier.file, earlierFile !== file {
            if file == nil, earlier.record.generation.number == record.generation.number {
                file = earlierFile
            } else if let name = earlierFile.name {
                abandon(name)
            }
        }
        refreshed[record.id] = nil
        begun[record.id] = Begun(record: record, file: file)
    }

    mutating func refresh(_ record: AssetRecord) {
        if let earlier = begun[record.id] {
            guard earlier.record.generation.number == record.generation.number else { return }
            begun[record.id]?.record = record
        } else {
            refreshed[record.id] = record
        }
    }

    mutating func grow(_ file: SparseFile, _ serial: Int64, _ range: ByteRange) {
        if byteCount == 0 { oldest = .now }
        byteCount += growth[serial, default: Ranges(file: file)].ranges.insert(range)
        cuts[serial]?.holes.remove(range)
    }

    mutating func cut(
        _ file: SparseFile, _ serial: Int64, _ ranges: some Sequence<ByteRange>, makingHoles: Bool
    ) {
        for range in ranges {
            byteCount -= growth[serial]?.ranges.remove(range) ?? 0
            cuts[serial, default: Cut(file: file)].ranges.insert(range)
            if makingHoles { cuts[serial]?.holes.insert(range) }
        }
    }

    mutating func use(_ more: [AssetID: Use]) {
        uses.merge(more) { $0.and($1) }
    }

    mutating func remove(_ asset: AssetID) {
        withdraw(asset)
        removals.insert(asset)
    }

    /// Drops what is pending for an asset, and the file it was to begin with.
    mutating func withdraw(_ asset: AssetID) {
        if let name = begun.removeValue(forKey: asset)?.file?.name { abandon(name) }
        refreshed[asset] = nil
        uses[asset] = nil
        for (serial, ranges) in growth where ranges.file.name?.asset == asset { dropGrowth(serial) }
        for (serial, ranges) in cuts where ranges.file.name?.asset == asset { cuts[serial] = nil }
    }

    /// Drops the bytes of one file; answers them.
    @discardableResult
    mutating func dropGrowth(_ serial: Int64) -> ByteRangeSet {
        guard let dropped = growth.removeValue(forKey: serial) else { return ByteRangeSet() }
        byteCount -= dropped.ranges.byteCount
        return dropped.ranges
    }

    /// Has a file unlinked that no row names.
    mutating func abandon(_ name: FileName) {
        dropGrowth(name.serial)
        cuts[name.serial] = nil
        abandoned.append(name)
    }
}

extension PendingWork {
    /// Takes everything out.
    mutating func take() -> PendingWork {
        let taken = self
        self = PendingWork()
        removing = taken.removals
        return taken
    }

    /// What was taken is done.
    mutating func done() { removing = [] }

    /// Puts work that could not be done back under what has come since.
    mutating func restore(_ earlier: PendingWork) {
        let later = self
        self = earlier
        removing = []
        for asset in later.removals { remove(asset) }
        for cut in later.cuts.values { self.cut(cut) }
        for work in later.begun.values { begin(work.record, file: work.file) }
        for record in later.refreshed.values { refresh(record) }
        for (serial, added) in later.growth {
            for range in added.ranges.runs { grow(added.file, serial, range) }
        }
        use(later.uses)
        abandoned += later.abandoned
    }

    private mutating func cut(_ later: Cut) {
        guard let serial = later.file.name?.serial else { return }
        cut(later.file, serial, later.ranges.runs, makingHoles: false)
        cut(later.file, serial, later.holes.runs, makingHoles: true)
    }
}
