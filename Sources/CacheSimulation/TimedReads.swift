import CacheCore

/// Reorders reads by the time of their bytes. A read with a duration is divided into pieces of 1 MiB, spread evenly
/// over it and interleaved with other reads.
///
/// This matters for small caches, in which bytes stay for seconds only: reads in between may evict them.
struct TimedReads<Reads: Sequence<ReadTrace.Read>>: Sequence, IteratorProtocol {
    private static var pieceBytes: Int64 { 1 << 20 }
    /// The duration of one slot.
    private static var slotMilliseconds: Int64 { 250 }
    /// The ring covers 512 s, more than the longest span of a read.
    private static var slotCount: Int64 { 2048 }

    private var reads: Reads.Iterator
    /// The next read of the source; nil at its end.
    private var upcoming: ReadTrace.Read?
    /// A ring of future pieces, by their time. The current slot is in reverse order, for `popLast`.
    private var slots = [[ReadTrace.Read]](repeating: [], count: Int(Self.slotCount))
    /// The current time in units of a slot.
    private var slot: Int64
    /// The number of pieces in `slots`.
    private var waiting = 0

    /// `reads`: approximately in the order of their start times.
    init(_ reads: Reads) {
        self.reads = reads.makeIterator()
        upcoming = self.reads.next()
        slot = upcoming.map { Self.slot(of: $0) } ?? 0
    }

    mutating func next() -> ReadTrace.Read? {
        while waiting > 0 {
            if let piece = slots[Int(slot % Self.slotCount)].popLast() {
                waiting -= 1
                return piece
            }
            if let upcoming, Self.slot(of: upcoming) <= slot { break }
            slot += 1
            slots[Int(slot % Self.slotCount)].reverse()
        }
        guard let read = upcoming else { return nil }
        upcoming = reads.next()
        slot = Swift.max(slot, Self.slot(of: read))
        guard read.span > .zero else { return read }
        return first(of: read)
    }

    /// Puts all pieces except the first into the slots of their times. Returns the first piece.
    private mutating func first(of read: ReadTrace.Read) -> ReadTrace.Read {
        let indices = read.run.lowerBound / Self.pieceBytes...(read.run.upperBound - 1) / Self.pieceBytes
        let pieces = indices.map { index in
            var piece = read
            piece.run = ByteRange(offset: index * Self.pieceBytes, length: Self.pieceBytes).clamped(to: read.run)
            piece.at = read.at + read.span * Int(index - indices.lowerBound) / Swift.max(1, indices.count - 1)
            piece.span = .zero
            return piece
        }
        for piece in pieces.dropFirst() {
            let place = Swift.min(Swift.max(Self.slot(of: piece), slot + 1), slot + Self.slotCount - 1)
            slots[Int(place % Self.slotCount)].append(piece)
        }
        waiting += pieces.count - 1
        return pieces[0]
    }

    /// The slot of a time, counted from 1970.
    private static func slot(of read: ReadTrace.Read) -> Int64 { Swift.max(0, read.at.milliseconds) / slotMilliseconds }
}
