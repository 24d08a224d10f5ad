package import CacheCore

/// What a look at a file's bytes and their sums has shown.
package enum CheckedBytes: Hashable, Sendable {
    /// They are what was written: of these runs, which are the pieces around what was asked for.
    case right([ByteRange])
    /// These runs of the pieces are not, or nobody knows, or they cannot be read.
    case bad([ByteRange])
}

extension CommitQueue {
    /// Reads bytes of one block, all of which are claimed, into `bytes`, and compares them and what shares a piece with them with
    /// their sums. Blocks.
    ///
    /// Only `range` is held while this looks; what shares a piece with it may be given up meanwhile, and become a hole:
    ///
    /// 1. The sums go with the commit that gives bytes up, and the hole is made after it.
    /// 2. So where bytes do not fit a sum that is still there when they have been read, they are bad; where it is not, the bytes
    ///    are looked at again, with the sums that there are now.
    package func read(
        _ range: ByteRange, of file: SparseFile, into bytes: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> CheckedBytes {
        var known = try sums(of: file, around: range)
        for _ in 0..<8 {
            var bad: [ByteRange] = []
            for piece in known.pieces where try !fits(piece, file, range, into: bytes) { bad.append(piece.range) }
            if bad.isEmpty, known.gaps.isEmpty {
                let isThere = try copySpilled(known, file, range, bytes)
                return isThere ? .right(known.pieces.map(\.range)) : .bad(known.spilled)
            }
            // What is claimed in memory is in the catalog behind a commit; and a sum that was taken out is not there any more.
            if !known.gaps.isEmpty { try unlessDamaged(()) { () throws(CacheError) in try commitNow() } }
            let now = try sums(of: file, around: range)
            if now == known { return try bad.isEmpty ? judge(known, file, range, bytes) : .bad(bad + known.gaps) }
            known = now
        }
        return .bad([range])
    }

    /// As `read`, for those who do not want the bytes. Blocks.
    package func check(_ range: ByteRange, of file: SparseFile) throws(CacheError) -> CheckedBytes {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(range.length), alignment: 8)
        defer { bytes.deallocate() }
        return try read(range, of: file, into: bytes)
    }

    private struct Known: Hashable {
        var pieces: [BlockSums.Piece]
        var gaps: [ByteRange]
        /// What the disk had no room for, and is in memory as it came.
        var spilled: [ByteRange]
    }

    /// The sums that are not in the catalog yet are looked at first: they leave the file only when they are there.
    private func sums(of file: SparseFile, around range: ByteRange) throws(CacheError) -> Known {
        guard let name = file.name else { return Known(pieces: [], gaps: [range], spilled: []) }
        var sums = file.writtenSums(in: ByteRangeSet([range]))
        let known = try unlessDamaged(BlockSums()) { () throws(CacheError) in
            try store.catalog.sums(of: name.serial, around: range)
        }
        for piece in known.pieces(touching: range) { sums.insert(piece, joining: false) }
        let pieces = Array(sums.pieces(touching: range))
        let gaps = sums.gaps(in: range).flatMap { file.stored($0) }
        let spilled = sums.gaps(in: range).flatMap { ByteRangeSet(gaps).gaps(in: $0) }
        return Known(pieces: pieces, gaps: gaps, spilled: spilled)
    }

    /// What a damaged catalog cannot tell is not known: bytes are then fetched again, in place of a read that fails.
    private func unlessDamaged<Value>(
        _ unknown: Value, _ body: () throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        do throws(CacheError) { return try body() } catch  where error.cause is DamagedCatalog { return unknown }
    }

    private func fits(
        _ piece: BlockSums.Piece, _ file: SparseFile, _ range: ByteRange, into bytes: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> Bool {
        guard let found = try file.wholeBytes(piece.range), Checksum.of(found) == piece.sum else { return false }
        copy(found, at: piece.range, to: bytes, of: range)
        return true
    }

    /// Answers whether it was there still.
    private func copySpilled(
        _ known: Known, _ file: SparseFile, _ range: ByteRange, _ bytes: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> Bool {
        for run in known.spilled {
            guard let found = try file.wholeBytes(run) else { return false }
            copy(found, at: run, to: bytes, of: range)
        }
        return true
    }

    /// Nothing is wrong but that some bytes have no sum: those of a store from before there were sums are believed.
    private func judge(
        _ known: Known, _ file: SparseFile, _ range: ByteRange, _ bytes: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> CheckedBytes {
        let isUnsummed = try unlessDamaged(false) { () throws(CacheError) in
            try file.name.map { (name) throws(CacheError) in try store.catalog.isUnsummed(name.serial) } ?? false
        }
        guard isUnsummed else { return .bad(known.gaps) }
        for gap in known.gaps {
            guard let found = try file.wholeBytes(gap) else { return .bad(known.gaps) }
            copy(found, at: gap, to: bytes, of: range)
        }
        guard try copySpilled(known, file, range, bytes) else { return .bad(known.spilled) }
        return .right(known.pieces.map(\.range) + known.gaps)
    }

    private func copy(
        _ found: [UInt8], at place: ByteRange, to bytes: UnsafeMutableRawBufferPointer, of range: ByteRange
    ) {
        let part = place.clamped(to: range)
        guard !part.isEmpty else { return }
        let source = found[Int(part.lowerBound - place.lowerBound)..<Int(part.upperBound - place.lowerBound)]
        let first = Int(part.lowerBound - range.lowerBound)
        bytes[first..<first + source.count].copyBytes(from: source)
    }
}
