/// The latest reads of a service, to be played against eviction policies: which run of which asset was read, and when.
///
/// A read takes 16 bytes. Where more come than there is room for, it keeps to a sample of the chunks, half as many each
/// time, with all reads of each (the spatial sampling of Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST
/// 2015); where the sample is as small as it may be, the oldest reads go. Chunks hold whole segments of any grid.
package struct ReadTrace: Sendable {
    /// One read of a run within one chunk; its beginning is known to 16 KiB.
    package struct Read: Hashable, Sendable {
        package var asset: AssetID
        package var run: ByteRange
        package var at: Timestamp
    }

    private struct Entry {
        /// Of the asset's identifier, which is a digest.
        var asset: UInt32
        /// In units of 16 KiB.
        var place: UInt32
        var bytes: UInt32
        /// In quarters of a second since `epoch`.
        var at: UInt32
    }

    private let limit: Int
    private let epoch: Timestamp
    private var entries: [Entry] = []
    /// A chunk is sampled if its hash, of 24 bits, is below.
    private var threshold = 1 << 24

    /// What is sampled as one.
    package static let chunkBytes: Int64 = 16 << 20
    private static let unitBytes: Int64 = 16 << 10
    private static let hashes = 1 << 24
    private static let smallest = hashes / 256

    /// `limit`: reads that are kept; `epoch`: no read is older.
    package init(limit: Int = 1 << 19, epoch: Timestamp) {
        self.limit = max(2, limit)
        self.epoch = epoch
    }

    package var count: Int { entries.count }

    /// The share of all chunks whose reads are kept.
    package var share: Double { Double(threshold) / Double(Self.hashes) }

    /// A run was read; beyond 64 TiB nothing is noted.
    package mutating func note(_ run: ByteRange, of asset: AssetID, at now: Timestamp) {
        let quarters = UInt32(clamping: max(0, now.milliseconds - epoch.milliseconds) / 250)
        let name = UInt32(truncatingIfNeeded: asset.low)
        var start = run.lowerBound
        while start < run.upperBound, let place = UInt32(exactly: start / Self.unitBytes) {
            let end = min(run.upperBound, (start / Self.chunkBytes + 1) * Self.chunkBytes)
            let entry = Entry(asset: name, place: place, bytes: UInt32(end - start), at: quarters)
            if isSampled(entry) { append(entry) }
            start = end
        }
    }

    private mutating func append(_ entry: Entry) {
        while entries.count >= limit { shrink() }
        if isSampled(entry) { entries.append(entry) }
    }

    private mutating func shrink() {
        guard threshold > Self.smallest else { return entries.removeFirst(max(1, limit / 2)) }
        halve()
    }

    /// Keeps to half as many chunks.
    private mutating func halve() {
        threshold /= 2
        entries = entries.filter(isSampled)
    }

    private func isSampled(_ entry: Entry) -> Bool {
        guard threshold < Self.hashes else { return true }
        let chunk = Int32(Int64(entry.place) * Self.unitBytes / Self.chunkBytes)
        // Another hash than that of segments: who samples segments of this sample must not meet the same ones again.
        let print = SegmentID(asset: AssetID(high: 0x5EED, low: UInt64(entry.asset)), index: chunk).mixed
        return print.scaled(below: Self.hashes) < threshold
    }

    /// The reads since `time`, in the order they were noted.
    package func reads(since time: Timestamp) -> some Sequence<Read> {
        entries.lazy.map(read).filter { $0.at >= time }
    }

    private func read(_ entry: Entry) -> Read {
        let asset = AssetID(high: 0, low: UInt64(entry.asset))
        let run = ByteRange(offset: Int64(entry.place) * Self.unitBytes, length: Int64(entry.bytes))
        return Read(asset: asset, run: run, at: epoch + .milliseconds(Int64(entry.at) * 250))
    }

    /// The same with at most about so many reads, of a smaller sample.
    package func sampled(atMost count: Int) -> ReadTrace {
        var copy = self
        while copy.count > count, copy.threshold > 1 { copy.halve() }
        return copy
    }
}
