/// How sums follow what the catalog claims of a file.
///
/// Bytes of one file are bytes of one generation: what is written twice is the same twice. Where it is not, a sum that does not
/// fit shows it.
extension BlockSums {
    /// What a run's bytes in the file sum up to; nil where they cannot be read.
    package typealias Look = (ByteRange) throws(CacheError) -> UInt32?

    /// From now on `ranges` are claimed, too. `written`: the sums that were made while they were written; what these leave out
    /// is looked at. Answers what proved not to be what it was claimed to be before, or cannot be read: it has no sum.
    package mutating func claim(
        _ ranges: [ByteRange], written: BlockSums, look: Look
    ) throws(CacheError) -> [ByteRange] {
        var doubtful: [ByteRange] = []
        for range in ranges {
            for piece in written.pieces(touching: range) where range.covers(piece.range) {
                doubtful += try claim(piece, look)
            }
        }
        // What was bad and has been written since is not bad any more; the rest must not be taken for what was written.
        var bad = doubtful.flatMap { gaps(in: $0) }
        let spared = ByteRangeSet(bad)
        for gap in ranges.flatMap({ gaps(in: $0) }).flatMap({ spared.gaps(in: $0) }) {
            for part in Self.cut(gap) { bad += try claim(part, look) }
        }
        return bad
    }

    /// From now on `ranges` are claimed no more. What is left of pieces is looked at: it gets sums of its own where the whole is
    /// still what it was. Answers the rest of what is left: it has no sum. The bytes must still be in the file.
    package mutating func release(_ ranges: ByteRangeSet, look: Look) throws(CacheError) -> [ByteRange] {
        var bad: [ByteRange] = []
        for range in ranges.runs {
            for piece in remove(touching: range) {
                bad += try keep(ranges.gaps(in: piece.range), of: piece, look)
            }
        }
        return bad
    }

    /// Takes over what was made of written bytes. What is claimed already keeps its sums where it is more.
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

    private mutating func claim(_ part: ByteRange, _ look: Look) throws(CacheError) -> [ByteRange] {
        guard let sum = try look(part) else { return [part] }
        insert(Piece(range: part, sum: sum))
        return []
    }

    /// Gives the parts that are left of a piece sums of their own, if it is what it was.
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
    fileprivate func covers(_ other: ByteRange) -> Bool {
        lowerBound <= other.lowerBound && other.upperBound <= upperBound
    }
}
