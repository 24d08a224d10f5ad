/// Checksums of a file's bytes: which runs have one, and what it is.
///
/// A piece lies inside one block of the file; pieces of a block that touch become one. So a complete block has one sum, and
/// each run at an extent's edge another. The sum of a part of a piece is not known: who takes bytes out of a piece must look
/// at the file.
package struct BlockSums: Hashable, Sendable {
    package static let blockBytes: Int64 = 256 << 10

    /// A run inside one block, and the CRC-32C of its bytes.
    package struct Piece: Hashable, Sendable {
        package var range: ByteRange
        package var sum: UInt32

        package init(range: ByteRange, sum: UInt32) {
            self.range = range
            self.sum = sum
        }
    }

    /// In ascending order; no two overlap, none crosses a block's end.
    package private(set) var pieces: [Piece] = []

    package init() {}

    package init(_ pieces: some Sequence<Piece>) {
        for piece in pieces { insert(piece) }
    }

    /// The run, cut at the blocks' ends.
    package static func cut(_ range: ByteRange) -> [ByteRange] {
        var parts: [ByteRange] = []
        var start = range.lowerBound
        while start < range.upperBound {
            let end = min(range.upperBound, (start / blockBytes + 1) * blockBytes)
            parts.append(start..<end)
            start = end
        }
        return parts
    }

    /// The pieces that share bytes with `range`.
    package func pieces(touching range: ByteRange) -> ArraySlice<Piece> {
        guard !range.isEmpty else { return [] }
        let first = firstPiece { $0.range.upperBound > range.lowerBound }
        return pieces[first..<firstPiece(from: first) { $0.range.lowerBound >= range.upperBound }]
    }

    /// The runs of `range` without a sum.
    package func gaps(in range: ByteRange) -> [ByteRange] {
        ByteRangeSet(pieces(touching: range).map(\.range)).gaps(in: range)
    }

    /// Adds a piece in place of those that share bytes with it; the sums of what is left of them are lost. `joining`: it
    /// becomes one with those of its block that it touches.
    package mutating func insert(_ piece: Piece, joining: Bool = true) {
        guard !piece.range.isEmpty else { return }
        var piece = piece
        var place = pieces(touching: piece.range).indices
        if joining {
            if place.lowerBound > 0, let joined = pieces[place.lowerBound - 1].joined(with: piece) {
                piece = joined
                place = (place.lowerBound - 1)..<place.upperBound
            }
            if place.upperBound < pieces.count, let joined = piece.joined(with: pieces[place.upperBound]) {
                piece = joined
                place = place.lowerBound..<(place.upperBound + 1)
            }
        }
        pieces.replaceSubrange(place, with: CollectionOfOne(piece))
    }

    /// Takes the pieces that share bytes with `range` out, and answers them.
    @discardableResult
    package mutating func remove(touching range: ByteRange) -> [Piece] {
        let touching = pieces(touching: range)
        pieces.removeSubrange(touching.indices)
        return Array(touching)
    }

    private func firstPiece(from start: Int = 0, where holds: (Piece) -> Bool) -> Int {
        var (low, high) = (start, pieces.count)
        while low < high {
            let middle = (low + high) / 2
            if holds(pieces[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

extension BlockSums.Piece {
    /// Both as one, where `next` begins at this one's end inside the same block.
    fileprivate func joined(with next: Self) -> Self? {
        guard range.upperBound == next.range.lowerBound, range.upperBound % BlockSums.blockBytes != 0 else {
            return nil
        }
        return Self(
            range: range.lowerBound..<next.range.upperBound,
            sum: CRC32C.combine(sum, next.sum, secondLength: next.range.length))
    }
}
