/// The checksum of a run of bytes.
package enum BlockSum: Hashable, Sendable {
    /// CRC-32C (RFC 3720 §12.1).
    case crc32C(UInt32)
    /// The first 128 bits of an HMAC-SHA256 with the key of an encrypted file. The two halves are big-endian.
    case keyed(high: UInt64, low: UInt64)
}

/// Checksums of a file's bytes, by runs inside blocks.
///
/// A piece lies inside one block of the file; adjacent pieces of a block are combined. The sum of two CRC-32C pieces
/// follows from theirs; that of keyed ones is computed from the bytes (``claim(_:written:look:)``). A complete block therefore has
/// one checksum, and so has each run at the edge of an extent. The checksum of a part of a piece is unknown: to remove
/// bytes from a piece, the caller must read the rest from the file.
package struct BlockChecksums: Hashable, Sendable {
    /// The size of a block in bytes.
    package static let blockBytes: Int64 = 256 << 10

    /// A run inside one block, and the checksum of its bytes.
    package struct Piece: Hashable, Sendable {
        package var range: ByteRange
        package var sum: BlockSum

        package init(range: ByteRange, sum: BlockSum) {
            self.range = range
            self.sum = sum
        }

        package init(range: ByteRange, sum: UInt32) { self.init(range: range, sum: .crc32C(sum)) }
    }

    /// In ascending order. No two pieces overlap, and none crosses the end of a block.
    package private(set) var pieces: [Piece] = []

    package init() {}

    package init(_ pieces: some Sequence<Piece>) {
        for piece in pieces { insert(piece) }
    }

    /// `range`, split at block boundaries.
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

    /// The pieces that overlap `range`.
    package func pieces(touching range: ByteRange) -> ArraySlice<Piece> {
        guard !range.isEmpty else { return [] }
        let first = firstPiece { $0.range.upperBound > range.lowerBound }
        return pieces[first..<firstPiece(from: first) { $0.range.lowerBound >= range.upperBound }]
    }

    /// The runs of `range` without a checksum.
    package func gaps(in range: ByteRange) -> [ByteRange] {
        ByteRangeSet(pieces(touching: range).map(\.range)).gaps(in: range)
    }

    /// Inserts a piece and removes the pieces that overlap it, including their checksums outside it. `joining`: the
    /// piece is combined with adjacent pieces of its block.
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

    /// Removes and returns the pieces that overlap `range`.
    @discardableResult
    package mutating func remove(touching range: ByteRange) -> [Piece] {
        let touching = pieces(touching: range)
        pieces.removeSubrange(touching.indices)
        return Array(touching)
    }

    /// The index of the first piece where `holds` is true, by binary search; `holds` must be monotonic.
    private func firstPiece(from start: Int = 0, where holds: (Piece) -> Bool) -> Int {
        var (low, high) = (start, pieces.count)
        while low < high {
            let middle = (low + high) / 2
            if holds(pieces[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

extension BlockChecksums.Piece {
    /// Both pieces as one; nil unless ``precedes(_:)``, and for keyed checksums.
    fileprivate func joined(with next: Self) -> Self? {
        guard precedes(next), case .crc32C(let first) = sum, case .crc32C(let second) = next.sum else { return nil }
        return Self(
            range: range.lowerBound..<next.range.upperBound,
            sum: CRC32C.combine(first, second, secondLength: next.range.length))
    }

    /// Whether `next` begins at the end of this piece, inside the same block.
    func precedes(_ next: Self) -> Bool {
        range.upperBound == next.range.lowerBound && range.upperBound % BlockChecksums.blockBytes != 0
    }
}
