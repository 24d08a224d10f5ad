import CacheCore

/// Work for the next commit. It is applied in this order: removals, cuts, new rows, refreshed rows, growth, uses.
struct PendingWork: Sendable {
    /// Ranges of one file.
    struct Ranges: Sendable {
        var file: SparseFile
        var ranges = ByteRangeSet()
    }

    /// Ranges of one file that lose their extents.
    struct Cut: Sendable {
        var file: SparseFile
        /// Ranges to remove from the row.
        var ranges = ByteRangeSet()
        /// The part of `ranges` to punch as well. Bytes written again since are excluded.
        var holes = ByteRangeSet()
    }

    /// A row to insert or replace.
    struct Begun: Sendable {
        var record: AssetRecord
        /// Nil: keep the row's file if it has the same generation.
        var file: SparseFile?
        /// The file of the row whose bytes `file` has; nil: the bytes are new.
        var former: FileName?
    }

    /// Uses of an asset: the time of the last one, and their number.
    struct Use: Sendable {
        var at: Timestamp
        var hits: Int64

        /// The combination of two uses.
        func and(_ other: Use) -> Use { Use(at: max(at, other.at), hits: hits + other.hits) }
    }

    /// Assets to delete from the catalog.
    private(set) var removals: Set<AssetID> = []
    /// Removals of the running commit.
    private(set) var removing: Set<AssetID> = []
    /// Rows to insert or replace.
    private(set) var begun: [AssetID: Begun] = [:]
    /// Rows to update with metadata of the same generation.
    private(set) var refreshed: [AssetID: AssetRecord] = [:]
    /// Written ranges to claim, by file serial.
    private(set) var growth: [Int64: Ranges] = [:]
    /// Ranges to remove, by file serial.
    private(set) var cuts: [Int64: Cut] = [:]
    /// Uses to add to existing rows.
    private(set) var uses: [AssetID: Use] = [:]
    /// Files that were created and discarded before any commit: to be unlinked.
    private(set) var abandoned: [FileName] = []

    var isEmpty: Bool {
        removals.isEmpty && begun.isEmpty && refreshed.isEmpty && growth.isEmpty && cuts.isEmpty && uses.isEmpty
            && abandoned.isEmpty
    }

    /// Whether applying the work frees disk space.
    var frees: Bool { !removals.isEmpty || cuts.values.contains { !$0.holes.isEmpty } }

    /// Number of written bytes that are not claimed yet.
    private(set) var byteCount: Int64 = 0
    /// Uptime when the first of the unclaimed bytes was reported. Failed commits do not reset it.
    private var oldest: Duration?
    /// Uptime of the oldest unclaimed report; nil if there are no unclaimed bytes.
    var waitingSince: Duration? { byteCount > 0 ? oldest : nil }

    /// Adds a new row. It supersedes a pending one; a file that only that one names is abandoned. `former`: the file whose
    /// bytes the new one has.
    mutating func begin(_ record: AssetRecord, file: SparseFile?, converting former: FileName? = nil) {
        var (file, former) = (file, former)
        if let earlier = begun[record.id], let earlierFile = earlier.file, earlierFile !== file {
            // A report without a file keeps the pending file of the same generation.
            if file == nil, earlier.record.generation.number == record.generation.number {
                (file, former) = (earlierFile, earlier.former)
            } else if let name = earlierFile.name {
                abandon(name)
            }
        }
        refreshed[record.id] = nil
        begun[record.id] = Begun(record: record, file: file, former: former)
    }

    /// Adds new metadata, in the pending new row if there is one of the same generation.
    mutating func refresh(_ record: AssetRecord) {
        if let earlier = begun[record.id] {
            // Metadata of another generation is obsolete.
            guard earlier.record.generation.number == record.generation.number else { return }
            begun[record.id]?.record = record
        } else {
            refreshed[record.id] = record
        }
    }

    /// Adds a written range. It also cancels a pending punch of the range. `uptime`: of the report; evaluated only for
    /// the first unclaimed bytes.
    mutating func grow(
        _ file: SparseFile, _ serial: Int64, _ range: ByteRange, at uptime: @autoclosure () -> Duration?
    ) {
        if byteCount == 0 { oldest = uptime() }
        byteCount += growth[serial, default: Ranges(file: file)].ranges.insert(range)
        cuts[serial]?.holes.remove(range)
    }

    /// Removes ranges of a file: from the pending growth at once, and from the row with the commit. `makingHoles`: the
    /// ranges are also punched.
    mutating func cut(
        _ file: SparseFile, _ serial: Int64, _ ranges: some Sequence<ByteRange>, makingHoles: Bool
    ) {
        for range in ranges {
            byteCount -= growth[serial]?.ranges.remove(range) ?? 0
            cuts[serial, default: Cut(file: file)].ranges.insert(range)
            if makingHoles { cuts[serial]?.holes.insert(range) }
        }
    }

    /// Adds uses; those of one asset are combined.
    mutating func use(_ more: [AssetID: Use]) {
        uses.merge(more) { $0.and($1) }
    }

    /// Schedules the deletion of a row and drops the other pending work of the asset.
    mutating func remove(_ asset: AssetID) {
        withdraw(asset)
        removals.insert(asset)
    }

    /// Drops the pending work of an asset, and abandons its new file.
    mutating func withdraw(_ asset: AssetID) {
        if let name = begun.removeValue(forKey: asset)?.file?.name { abandon(name) }
        refreshed[asset] = nil
        uses[asset] = nil
        for (serial, ranges) in growth where ranges.file.name?.asset == asset { dropGrowth(serial) }
        for (serial, ranges) in cuts where ranges.file.name?.asset == asset { cuts[serial] = nil }
    }

    /// Drops the pending growth of a file; returns the dropped ranges.
    @discardableResult
    mutating func dropGrowth(_ serial: Int64) -> ByteRangeSet {
        guard let dropped = growth.removeValue(forKey: serial) else { return ByteRangeSet() }
        byteCount -= dropped.ranges.byteCount
        return dropped.ranges
    }

    /// Schedules a file without a row for unlinking.
    mutating func abandon(_ name: FileName) {
        dropGrowth(name.serial)
        cuts[name.serial] = nil
        abandoned.append(name)
    }
}

/// Transfer of the work to a commit and back.
extension PendingWork {
    /// Moves all work out of this value, for a commit.
    mutating func take() -> PendingWork {
        let taken = self
        self = PendingWork()
        removing = taken.removals
        return taken
    }

    /// Ends the commit that `take` started.
    mutating func done() { removing = [] }

    /// Restores the work of a failed commit, and applies the later work on top of it.
    mutating func restore(_ earlier: PendingWork) {
        let later = self
        self = earlier
        removing = []
        // The later work is applied in the order of a commit.
        for asset in later.removals { remove(asset) }
        for cut in later.cuts.values { self.cut(cut) }
        for work in later.begun.values { begin(work.record, file: work.file, converting: work.former) }
        for record in later.refreshed.values { refresh(record) }
        for (serial, added) in later.growth {
            for range in added.ranges.runs { grow(added.file, serial, range, at: later.oldest) }
        }
        use(later.uses)
        abandoned += later.abandoned
    }

    /// Adds a later cut to this one, including the choice of the ranges to punch.
    private mutating func cut(_ later: Cut) {
        guard let serial = later.file.name?.serial else { return }
        cut(later.file, serial, later.ranges.runs, makingHoles: false)
        cut(later.file, serial, later.holes.runs, makingHoles: true)
    }
}
