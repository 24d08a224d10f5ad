/// Keeps checksums in step with the ranges that the catalog claims of a file.
///
/// A file has the bytes of one generation only, so bytes that are written twice must be equal. If they differ, a
/// checksum that does not match reveals it.
extension BlockChecksums {
    /// Reads a run from the file and returns its checksum; nil if the run cannot be read.
    package typealias Look = (ByteRange) throws(CacheError) -> BlockSum?

    /// Adds `ranges` to the claimed ranges. `written` has the checksums computed during writing; runs without one are
    /// read from the file. Returns ranges that do not match their earlier checksum or cannot be read: they have no
    /// checksum.
    package mutating func claim(
        _ ranges: [ByteRange], written: BlockChecksums, look: Look
    ) throws(CacheError) -> [ByteRange] {
        var doubtful: [ByteRange] = []
        for range in ranges {
            for piece in written.pieces(touching: range) where range.covers(piece.range) {
                doubtful += try claim(piece, look)
            }
        }
        // A damaged range that was rewritten since is valid again. The rest of it gets no checksum, because its bytes
        // are not those that were written.
        var bad = doubtful.flatMap { gaps(in: $0) }
        let spared = ByteRangeSet(bad)
        for gap in ranges.flatMap({ gaps(in: $0) }).flatMap({ spared.gaps(in: $0) }) {
            for part in Self.cut(gap) { bad += try claim(part, look) }
        }
        for range in ranges { bad += try joinKeyed(around: range, look) }
        return bad
    }

    /// The number of adjacent keyed pieces of an incomplete block that are combined. Fewer stay apart, so that bytes that
    /// arrive slowly are not read with each commit.
    private static let mostApart = 8

    /// Combines adjacent keyed pieces if they make up a block or are many, after a comparison with their checksums.
    /// Returns pieces that do not match: they have no checksum then.
    private mutating func joinKeyed(around range: ByteRange, _ look: Look) throws(CacheError) -> [ByteRange] {
        var bad: [ByteRange] = []
        for block in Self.cut(range) {
            let start = block.lowerBound / Self.blockBytes * Self.blockBytes
            var run: [Piece] = []
            for piece in Array(pieces(touching: ByteRange(offset: start, length: Self.blockBytes))) {
                guard case .keyed = piece.sum else { continue }
                if let last = run.last, !last.precedes(piece) {
                    bad += try join(run, look)
                    run = []
                }
                run.append(piece)
            }
            bad += try join(run, look)
        }
        return bad
    }

    /// Replaces adjacent pieces by one; returns those that do not match.
    private mutating func join(_ run: [Piece], _ look: Look) throws(CacheError) -> [ByteRange] {
        guard run.count > 1 else { return [] }
        let length = run[run.count - 1].range.upperBound - run[0].range.lowerBound
        guard length == Self.blockBytes || run.count > Self.mostApart else { return [] }
        var bad: [ByteRange] = []
        for piece in run where try look(piece.range) != piece.sum {
            remove(touching: piece.range)
            bad.append(piece.range)
        }
        guard bad.isEmpty else { return bad }
        return try claim(run[0].range.lowerBound..<run[run.count - 1].range.upperBound, look)
    }

    /// Removes `ranges` from the claimed ranges; their bytes must still be in the file. The rest of each split piece is
    /// read, and gets checksums of its own if the whole piece still matches. Returns the rests that do not match: they
    /// have no checksum.
    package mutating func release(_ ranges: ByteRangeSet, look: Look) throws(CacheError) -> [ByteRange] {
        var bad: [ByteRange] = []
        for range in ranges.runs {
            for piece in remove(touching: range) {
                bad += try keep(ranges.gaps(in: piece.range), of: piece, look)
            }
        }
        return bad
    }

    /// Adds a piece that was computed during writing. A claimed piece that covers it stays instead.
    private mutating func claim(_ piece: Piece, _ look: Look) throws(CacheError) -> [ByteRange] {
        let before = pieces(touching: piece.range)
        if before.contains(where: { $0.range.covers(piece.range) }) { return [] }
        let split = before.filter { !piece.range.covers($0.range) }
        insert(piece)
        var bad: [ByteRange] = []
        for old in split {
            bad += try keep(ByteRangeSet([piece.range]).gaps(in: old.range), of: old, look)
        }
        return bad
    }

    /// Reads a run and sets its checksum; returns the run if it cannot be read.
    private mutating func claim(_ part: ByteRange, _ look: Look) throws(CacheError) -> [ByteRange] {
        guard let sum = try look(part) else { return [part] }
        insert(Piece(range: part, sum: sum))
        return []
    }

    /// Adds checksums for the rests of a split piece if the whole piece still matches; otherwise returns the rests.
    private mutating func keep(
        _ parts: [ByteRange], of piece: Piece, _ look: Look
    ) throws(CacheError) -> [ByteRange] {
        guard !parts.isEmpty else { return [] }
        guard try look(piece.range) == piece.sum else { return parts }
        var bad: [ByteRange] = []
        for part in parts { bad += try claim(part, look) }
        return bad
    }
}

extension Range where Bound == Int64 {
    /// Whether all bytes of `other` are in this range.
    fileprivate func covers(_ other: ByteRange) -> Bool {
        lowerBound <= other.lowerBound && other.upperBound <= upperBound
    }
}
