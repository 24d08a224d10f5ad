/// The latest reads of a service, to be played against eviction policies: which run of which asset was read, and when.
///
/// A read takes 16 bytes; reads that go on from one another are one, of which is known how long it took. Where more come than there is room for, it keeps to a
/// sample of the chunks, half as many each time, with all reads of each (the spatial sampling of Waldspurger et al.,
/// "Efficient MRC Construction with SHARDS", FAST 2015); where the sample is as small as it may be, the oldest reads go.
/// Chunks hold whole segments of any grid.
///
/// Who notes a read may have no time: what is kept lies in small pieces, so that a copy costs the next one to note a read no
/// more than some of them, and another sample is come to by one piece with each read.
package struct ReadTrace: Sendable {
    /// One read of a run within one chunk; its beginning is known to 16 KiB.
    package struct Read: Hashable, Sendable {
        package var asset: AssetID
        package var run: ByteRange
        package var at: Timestamp
        /// From the first byte to the last, known to 2.5 s.
        package var span = Duration.zero
    }

    fileprivate struct Entry {
        /// Of the asset's identifier, which is a digest.
        var asset: UInt32
        /// In units of 16 KiB.
        var place: UInt32
        /// Bytes in the lower 25 bits, for they may be a whole chunk; above them the span, in units of 2.5 s.
        var size: UInt32
        /// In quarters of a second since `epoch`.
        var at: UInt32
    }

    private struct Piece {
        var entries: [Entry] = []
        /// Of all reads that were noted while it was the last, those too that are not of the sample.
        var bytes: Int64 = 0
    }

    /// How far thinning out has come.
    private struct Thinning {
        /// The piece that is looked at next, and the one that takes what stays.
        var next = 0
        var filled = 0
    }

    private let limit: Int
    private let pieceLimit: Int
    private let epoch: Timestamp
    private var pieces = [Piece()]
    /// Pieces that went before them.
    private var dropped = 0
    /// A chunk is sampled if its hash, of 24 bits, is below.
    private var threshold = 1 << 24
    /// Nil: all that is kept is of the sample.
    private var thinning: Thinning?
    private var runs = OpenRuns()
    /// Reads that are kept, those among them that are no longer of the sample.
    package private(set) var count = 0

    /// What is sampled as one.
    package static let chunkBytes: Int64 = 16 << 20
    fileprivate static let unitBytes: Int64 = 16 << 10
    private static let hashes = 1 << 24
    private static let smallest = hashes / 256

    /// `limit`: reads that are kept; `epoch`: no read is older.
    package init(limit: Int = 1 << 21, epoch: Timestamp) {
        self.limit = max(64, limit)
        pieceLimit = min(2048, self.limit / 16)
        self.epoch = epoch
    }

    /// The share of all chunks whose reads are kept.
    package var share: Double { Double(threshold) / Double(Self.hashes) }

    /// A run was read; beyond 64 TiB nothing is noted.
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

    /// Adds the read to one that it goes on from; answers whether there is one.
    private mutating func extend(by entry: Entry, from start: Int64) -> Bool {
        guard thinning == nil, let (piece, place) = runs.place(of: entry), piece >= dropped else { return false }
        let last = pieces[piece - dropped].entries[place]
        guard last.isContinued(by: entry, from: start) else { return false }
        pieces[piece - dropped].entries[place].extend(by: entry)
        return true
    }

    private mutating func append(_ entry: Entry) {
        thinOut()
        if count >= limit - limit / pieceLimit { makeRoom() }
        guard isSampled(entry) else { return }
        if pieces[pieces.count - 1].entries.count >= pieceLimit { pieces.append(Piece()) }
        let last = pieces.count - 1
        add(entry, to: last)
        if thinning == nil { runs.note(entry, at: (dropped + last, pieces[last].entries.count - 1)) }
    }

    private mutating func add(_ entry: Entry, to piece: Int) {
        if pieces[piece].entries.isEmpty { pieces[piece].entries.reserveCapacity(pieceLimit) }
        pieces[piece].entries.append(entry)
        count += 1
    }

    private mutating func makeRoom() {
        guard thinning == nil else { return }
        if threshold > Self.smallest {
            halve()
        } else {
            count -= pieces.removeFirst().entries.count
            dropped += 1
        }
    }

    /// Keeps to half as many chunks, from now on; the reads of the others go by and by.
    private mutating func halve() {
        threshold /= 2
        thinning = Thinning()
        runs = OpenRuns()
    }

    /// Goes through one more piece.
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

    private func isSampled(_ entry: Entry) -> Bool {
        guard threshold < Self.hashes else { return true }
        // Another hash than that of segments: who samples segments of this sample must not meet the same ones again.
        let print = SegmentID(asset: AssetID(high: 0x5EED, low: UInt64(entry.asset)), index: entry.chunk).mixed
        return print.scaled(below: Self.hashes) < threshold
    }

    /// The reads since `time`, in the order they were noted.
    package func reads(since time: Timestamp) -> some Sequence<Read> {
        pieces.lazy.flatMap(\.entries).filter(isSampled).map(read).filter { $0.at >= time }
    }

    /// How much was read of the sampled chunks since `time`, beside what would have been of as many average ones: a few that are
    /// read by everybody may be in the sample or not, and what is missed is told by this (the adjustment of SHARDS).
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

    private func read(_ entry: Entry) -> Read {
        let asset = AssetID(high: 0, low: UInt64(entry.asset))
        let run = ByteRange(offset: Int64(entry.place) * Self.unitBytes, length: Int64(entry.bytes))
        return Read(
            asset: asset, run: run, at: epoch + .milliseconds(Int64(entry.at) * 250),
            span: .milliseconds(Int64(entry.spans) * 2500))
    }

    /// The same with at most about so many reads, of a smaller sample.
    package func sampled(atMost count: Int) -> ReadTrace {
        var copy = self
        while copy.thinning != nil { copy.thinOut() }
        while copy.count > count, copy.threshold > 1 {
            copy.halve()
            while copy.thinning != nil { copy.thinOut() }
        }
        return copy
    }
}

extension ReadTrace.Entry {
    private static let sizeBits: UInt32 = 25

    fileprivate var bytes: UInt32 { size & (1 << Self.sizeBits - 1) }
    fileprivate var spans: UInt32 { size >> Self.sizeBits }
    fileprivate var chunk: Int32 { Int32(Int64(place) * ReadTrace.unitBytes / ReadTrace.chunkBytes) }

    fileprivate mutating func extend(by entry: Self) {
        size = (bytes + entry.bytes) | ((entry.at &- at) / 10) << Self.sizeBits
    }

    /// Whether a read of the same chunk begins where this one ended, soon enough to be no use of its own.
    fileprivate func isContinued(by entry: Self, from start: Int64) -> Bool {
        let end = Int64(place) * ReadTrace.unitBytes + Int64(bytes)
        return asset == entry.asset && chunk == entry.chunk && 0..<ReadTrace.unitBytes ~= start - end
            && entry.at &- at < 300 * 4
    }
}

/// Where the latest reads of many chunks lie, for those that go on from them; of chunks that share a slot the last.
private struct OpenRuns: Sendable {
    private struct Slot {
        /// Counted from the first there ever was.
        var piece: UInt32 = .max
        var place: UInt32 = 0
    }

    private static let count = 2048

    private var slots: [Slot] = []

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
        SegmentID(asset: AssetID(high: 0, low: UInt64(entry.asset)), index: entry.chunk).mixed.scaled(below: Self.count)
    }
}
