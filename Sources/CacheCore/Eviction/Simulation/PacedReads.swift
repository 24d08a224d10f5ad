/// Reads in the order of their bytes: one that took a while in pieces of 1 MiB, evenly over that while, between those of others.
///
/// Where bytes stay for seconds only, it matters what else was read meanwhile.
struct PacedReads<Reads: Sequence<ReadTrace.Read>>: Sequence, IteratorProtocol {
    private static var pieceBytes: Int64 { 1 << 20 }
    private static var slotMilliseconds: Int64 { 250 }
    /// Slots hold what comes within more than the longest span there is.
    private static var slotCount: Int64 { 2048 }

    private var reads: Reads.Iterator
    private var upcoming: ReadTrace.Read?
    /// Pieces whose time is to come, by that; those of `slot` itself in reverse order.
    private var slots = [[ReadTrace.Read]](repeating: [], count: Int(Self.slotCount))
    private var slot: Int64
    private var waiting = 0

    /// `reads`: in the order of their beginnings, more or less.
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

    /// Keeps all pieces but the first for their time.
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

    private static func slot(of read: ReadTrace.Read) -> Int64 { Swift.max(0, read.at.milliseconds) / slotMilliseconds }
}
