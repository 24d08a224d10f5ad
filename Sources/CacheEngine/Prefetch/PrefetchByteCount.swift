import CacheCore

/// Byte counts of one item: bytes that were on disk when it started, and bytes fetched since.
struct PrefetchByteCount {
    /// The minimum time between two progress reports.
    private static let interval = Duration.milliseconds(250)

    /// The counts to report.
    private(set) var progress: PrefetchSchedule.Progress
    /// The extents of the asset when the item started.
    private var before = ByteRangeSet()
    /// Bytes that the same item fetched before it was interrupted. They are on disk now, but count as fetched by it.
    private var credit: Int64
    /// The uptime of the last progress report; nil before the first one.
    private var toldAt: Duration?

    init(_ item: JobItemRecord) {
        credit = item.bytesFromUpstream
        progress = PrefetchSchedule.Progress(assetID: item.assetID, bytesTotal: item.bytesTotal)
    }

    /// Starts the count. `before`: the extents on disk.
    mutating func begin(_ asset: AssetID, before: ByteRangeSet) {
        progress.assetID = asset
        self.before = before
    }

    /// Restarts the count for another generation of the asset: all of its bytes come from the upstream.
    mutating func beginAnew() {
        (before, credit) = (ByteRangeSet(), 0)
        (progress.bytesFromCache, progress.bytesFromUpstream) = (0, 0)
    }

    /// Enters the ranges of an item by time.
    mutating func resolved(_ ranges: [String], _ result: PlayResult) { progress.resolved = (ranges, result) }

    /// Enters the seconds that play with the bytes on disk.
    mutating func plays(_ seconds: Double) { progress.resolved?.result.playableSeconds = seconds }

    /// Sets the item's total size in bytes.
    mutating func measured(_ bytes: Int64) { progress.bytesTotal = bytes }

    /// Counts the ranges that were fetched for an item that fails.
    mutating func failed(fetched: ByteRangeSet) {
        progress.bytesFromUpstream += fetched.runs.reduce(Int64(0)) { $0 + $1.length - before.byteCount(in: $1) }
    }

    /// Counts `range`, which is on disk now.
    mutating func passed(_ range: ByteRange) {
        let found = before.byteCount(in: range)
        let own = min(found, credit)
        credit -= own
        progress.bytesFromCache += found - own
        progress.bytesFromUpstream += range.length - found + own
    }

    /// Whether a progress report is due; if so, this counts as the report.
    mutating func isDue(at uptime: Duration) -> Bool {
        if let toldAt, uptime - toldAt < Self.interval { return false }
        toldAt = uptime
        return true
    }
}
