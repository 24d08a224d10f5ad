package import CacheCore

/// Records recent reads (asset, range, time) for simulations of eviction policies.
///
/// A read takes 16 bytes. Consecutive reads that continue one another are merged into one entry with a duration.
///
/// If reads exceed the limit, the trace downsamples: it keeps all reads of half as many chunks (spatial sampling,
/// Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015). At the smallest sample the oldest reads
/// are dropped. A chunk holds whole segments of any grid.
///
/// Recording must be fast, since it happens on the read path. Entries are therefore stored in small pieces:
/// - After a copy of the trace, copy-on-write duplicates only the pieces that change.
/// - Downsampling processes one piece with each recorded read, instead of all at once.
package struct ReadTrace: Sendable {
    /// One read of a run within one chunk; its start is rounded down to 16 KiB.
    package struct Read: Hashable, Sendable {
        package var asset: AssetID
        package var run: ByteRange
        package var at: Timestamp
        /// The time from the first to the last byte, rounded down to 2.5 s.
        package var span = Duration.zero
    }

    /// The compact form of a read, 16 bytes.
    fileprivate struct Entry {
        /// The lowest 32 bits of the asset's identifier, a digest.
        var asset: UInt32
        /// The start of the run, in units of 16 KiB.
        var place: UInt32
        /// The lower 25 bits: bytes, up to a whole chunk. The upper 7 bits: the span in units of 2.5 s.
        var size: UInt32
        /// The time in quarters of a second since `epoch`.
        var at: UInt32
    }

    /// A part of the trace; see `pieceLimit` for its size.
    private struct Piece {
        var entries: [Entry] = []
        /// Bytes of all reads that were recorded while this was the last piece, whether sampled or not.
        var bytes: Int64 = 0
    }

    /// The progress of downsampling.
    private struct Downsampling {
        /// The index of the piece to filter next.
        var next = 0
        /// The index of the piece that receives the remaining entries.
        var filled = 0
    }

    /// The maximum number of entries, at least 64.
    private let limit: Int
    /// The maximum number of entries in a piece.
    private let pieceLimit: Int
    /// No recorded time is earlier.
    private let epoch: Timestamp
    /// Never empty; the last piece receives new entries.
    private var pieces = [Piece()]
    /// The number of pieces that were dropped from the front.
    private var dropped = 0
    /// A chunk is sampled if its 24-bit hash is below this value.
    private var threshold = 1 << 24
    /// Nil: all entries are sampled ones.
    private var thinning: Downsampling?
    /// The entries that later reads may extend. Emptied when downsampling starts, because entries move.
    private var runs = OpenRuns()
    /// The number of entries, including those that downsampling has yet to remove.
    package private(set) var count = 0

    /// The size of a chunk, the unit of sampling.
    package static let chunkBytes: Int64 = 16 << 20
    /// The resolution of an entry's start.
    fileprivate static let unitBytes: Int64 = 16 << 10
    /// The number of hash values.
    private static let hashes = 1 << 24
    /// The threshold below which the trace drops reads instead of downsampling.
    private static let smallest = hashes / 256

    /// `limit`: the maximum number of entries. `epoch`: the earliest time; earlier reads are recorded at this time.
    package init(limit: Int = 1 << 21, epoch: Timestamp) {
        self.limit = max(64, limit)
        pieceLimit = min(2048, self.limit / 16)
        self.epoch = epoch
    }

    /// The sampled share of all chunks, above 0 and at most 1.
    package var share: Double { Double(threshold) / Double(Self.hashes) }

    /// Records a read of `run`, one entry for each chunk. Bytes of an asset beyond 64 TiB are ignored.
    package mutating func note(_ run: ByteRange, of asset: AssetID, at now: Timestamp) {
        let quarters = UInt32(clamping: max(0, now.milliseconds - epoch.milliseconds) / 250)
        let name = UInt32(truncatingIfNeeded: asset.low)
        var start = run.lowerBound
        while start < run.upperBound, let place = UInt32(exactly: start / Self.unitBytes) {
            let end = min(run.upperBound, (start / Self.chunkBytes + 1) * Self.chunkBytes)
            let entry = Entry(asset: name, place: place, size: UInt32(end - start), at: quarters)
            pieces[pieces.count - 1].bytes &+= end - start
            if isSampled(entry), !extend(by: entry, from: start) { append(entry) }
            start = end
        }
    }

    /// Adds the read to an entry that it continues. Returns whether there is one.
    private mutating func extend(by entry: Entry, from start: Int64) -> Bool {
        guard thinning == nil, let (piece, place) = runs.place(of: entry), piece >= dropped else { return false }
        let last = pieces[piece - dropped].entries[place]
        guard last.isContinued(by: entry, from: start) else { return false }
        pieces[piece - dropped].entries[place].extend(by: entry)
        return true
    }

    /// Appends an entry. Each call processes one piece of a downsampling in progress, so the margin below `limit`
    /// suffices.
    private mutating func append(_ entry: Entry) {
        thinOut()
        if count >= limit - limit / pieceLimit { makeRoom() }
        guard isSampled(entry) else { return }
        if pieces[pieces.count - 1].entries.count >= pieceLimit { pieces.append(Piece()) }
        let last = pieces.count - 1
        add(entry, to: last)
        if thinning == nil { runs.note(entry, at: (dropped + last, pieces[last].entries.count - 1)) }
    }

    /// Appends an entry to a piece, with the full capacity reserved at once.
    private mutating func add(_ entry: Entry, to piece: Int) {
        if pieces[piece].entries.isEmpty { pieces[piece].entries.reserveCapacity(pieceLimit) }
        pieces[piece].entries.append(entry)
        count += 1
    }

    /// Starts downsampling, or at the smallest sample drops the oldest piece.
    private mutating func makeRoom() {
        guard thinning == nil else { return }
        if threshold > Self.smallest {
            halve()
        } else {
            count -= pieces.removeFirst().entries.count
            dropped += 1
        }
    }

    /// Halves the sampled chunks. New reads of other chunks are ignored at once; `thinOut` removes the recorded ones
    /// piece by piece.
    private mutating func halve() {
        threshold /= 2
        thinning = Downsampling()
        runs = OpenRuns()
    }

    /// Filters one more piece of a downsampling in progress, and compacts the entries that remain.
    private mutating func thinOut() {
        guard var thinning else { return }
        var piece = Piece()
        swap(&piece, &pieces[thinning.next])
        count -= piece.entries.count
        pieces[thinning.filled].bytes &+= piece.bytes
        for entry in piece.entries where isSampled(entry) {
            if pieces[thinning.filled].entries.count >= pieceLimit { thinning.filled += 1 }
            add(entry, to: thinning.filled)
        }
        thinning.next += 1
        self.thinning = thinning
        guard thinning.next == pieces.count else { return }
        pieces.removeSubrange((thinning.filled + 1)...)
        self.thinning = nil
    }

    /// Whether the chunk of the entry is in the sample.
    private func isSampled(_ entry: Entry) -> Bool {
        guard threshold < Self.hashes else { return true }
        // This hash differs from the hash of segments: otherwise a simulation that samples segments of this sample
        // would choose correlated ones.
        let chunk = SegmentID(asset: AssetID(high: 0x5EED, low: UInt64(entry.asset)), index: entry.chunk)
        return chunk.hashed(below: Self.hashes) < threshold
    }

    /// The sampled reads since `time`, in the order of recording.
    package func reads(since time: Timestamp) -> some Sequence<Read> {
        pieces.lazy.flatMap(\.entries).filter(isSampled).map(read).filter { $0.at >= time }
    }

    /// The ratio of sampled bytes since `time` to the bytes expected in a sample of this share (the adjustment of
    /// SHARDS).
    ///
    /// A few very popular chunks may be in the sample or not. Estimated misses are multiplied by this ratio to correct
    /// for them. It is 1 without sampling or without reads.
    package func weight(since time: Timestamp) -> Double {
        guard share < 1 else { return 1 }
        var (sampled, expected): (Double, Double) = (0, 0)
        for piece in pieces where !piece.entries.isEmpty {
            let recent = piece.entries.filter { read($0).at >= time }
            sampled += Double(recent.lazy.filter(isSampled).reduce(0) { $0 + Int64($1.bytes) })
            expected += Double(piece.bytes) * share * Double(recent.count) / Double(piece.entries.count)
        }
        return expected > 0 ? sampled / expected : 1
    }

    /// The read that an entry stands for. The identifier of its asset has 32 bits only.
    private func read(_ entry: Entry) -> Read {
        let asset = AssetID(high: 0, low: UInt64(entry.asset))
        let run = ByteRange(offset: Int64(entry.place) * Self.unitBytes, length: Int64(entry.bytes))
        return Read(
            asset: asset, run: run, at: epoch + .milliseconds(Int64(entry.at) * 250),
            span: .milliseconds(Int64(entry.spans) * 2500))
    }

    /// A copy, downsampled until it has at most `count` entries.
    package func sampled(atMost count: Int) -> ReadTrace {
        var copy = self
        while copy.thinning != nil || (copy.count > count && copy.threshold > 1) {
            if copy.thinning == nil { copy.halve() } else { copy.thinOut() }
        }
        return copy
    }
}

/// The fields of the compact form.
extension ReadTrace.Entry {
    private static let sizeBits: UInt32 = 25

    fileprivate var bytes: UInt32 { size & (1 << Self.sizeBits - 1) }
    /// In units of 2.5 s.
    fileprivate var spans: UInt32 { size >> Self.sizeBits }
    fileprivate var chunk: Int32 { Int32(Int64(place) * ReadTrace.unitBytes / ReadTrace.chunkBytes) }

    /// Adds the bytes of a read that continues this one, and extends the span to its time.
    fileprivate mutating func extend(by entry: Self) {
        size = (bytes + entry.bytes) | ((entry.at &- at) / 10) << Self.sizeBits
    }

    /// Whether `entry` continues this read: same chunk, a start within 16 KiB of the end, and less than 300 s after the
    /// first byte, the interval within which reads count as one.
    fileprivate func isContinued(by entry: Self, from start: Int64) -> Bool {
        let end = Int64(place) * ReadTrace.unitBytes + Int64(bytes)
        return asset == entry.asset && chunk == entry.chunk && 0..<ReadTrace.unitBytes ~= start - end
            && entry.at &- at < 300 * 4
    }
}

/// A hash table without collision chains: finds the last entry of a chunk, which the next read may extend. Of chunks
/// that share a slot it has the latest.
private struct OpenRuns: Sendable {
    /// The position of an entry.
    private struct Slot {
        /// The index counted from the first piece ever, including dropped ones; `.max`: the slot is empty.
        var piece: UInt32 = .max
        var place: UInt32 = 0
    }

    /// The number of slots.
    private static let count = 2048

    /// Empty until the first entry, to save memory.
    private var slots: [Slot] = []

    /// The position of the entry that was noted for the chunk, or for another chunk with the same slot.
    func place(of entry: ReadTrace.Entry) -> (piece: Int, place: Int)? {
        guard !slots.isEmpty, case let slot = slots[slot(of: entry)], slot.piece != .max else { return nil }
        return (Int(slot.piece), Int(slot.place))
    }

    mutating func note(_ entry: ReadTrace.Entry, at position: (piece: Int, place: Int)) {
        if slots.isEmpty { slots = Array(repeating: Slot(), count: Self.count) }
        slots[slot(of: entry)] = Slot(
            piece: UInt32(truncatingIfNeeded: position.piece), place: UInt32(position.place))
    }

    private func slot(of entry: ReadTrace.Entry) -> Int {
        SegmentID(asset: AssetID(high: 0, low: UInt64(entry.asset)), index: entry.chunk).hashed(below: Self.count)
    }
}
