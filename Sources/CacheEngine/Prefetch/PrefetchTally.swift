import CacheCore

/// Counts the bytes of one item: what was on disk when it began, and what came since.
struct PrefetchTally {
    /// How often progress is told.
    private static let interval = Duration.milliseconds(250)

    private(set) var progress: PrefetchSchedule.Progress
    private var before = ByteRangeSet()
    /// Bytes the same item had fetched before it was interrupted: they are on disk now, and still its own.
    private var credit: Int64
    private var toldAt: Duration?

    init(_ item: JobItemRecord) {
        credit = item.bytesFromUpstream
        progress = PrefetchSchedule.Progress(assetID: item.assetID, bytesTotal: item.bytesTotal)
    }

    /// `before` is what was on disk.
    mutating func begin(_ asset: AssetID, before: ByteRangeSet) {
        progress.assetID = asset
        self.before = before
    }

    /// The asset has become another one: all of it comes from the upstream.
    mutating func beginAnew() {
        (before, credit) = (ByteRangeSet(), 0)
        (progress.bytesFromCache, progress.bytesFromUpstream) = (0, 0)
    }

    mutating func measured(_ bytes: Int64) { progress.bytesTotal = bytes }

    /// The bytes of `range` are on disk now.
    mutating func passed(_ range: ByteRange) {
        let found = before.byteCount(in: range)
        let own = min(found, credit)
        credit -= own
        progress.bytesFromCache += found - own
        progress.bytesFromUpstream += range.length - found + own
    }

    /// Whether it is time to tell the progress; then it counts as told.
    mutating func isDue(at uptime: Duration) -> Bool {
        if let toldAt, uptime - toldAt < Self.interval { return false }
        toldAt = uptime
        return true
    }
}
