package import CacheCore

/// Result of comparing a file's bytes with their checksums.
package enum CheckedBytes: Hashable, Sendable {
    /// The bytes match. The ranges are the verified pieces around the requested range.
    case right([ByteRange])
    /// These ranges do not match, have no checksum, or cannot be read.
    case bad([ByteRange])
}

/// Verification of cached bytes against their checksums.
extension CommitQueue {
    /// Reads bytes of one block, all of them claimed, into `bytes`. Verifies them, and all other bytes of their pieces.
    /// Blocks.
    ///
    /// The caller holds only `range`. The rest of a piece can be evicted and punched meanwhile:
    ///
    /// 1. The commit that removes the extents also removes the checksum; the punch follows the commit.
    /// 2. If bytes do not match, and the checksum still exists after they were read, they are bad. If the checksum has
    ///    changed, the bytes are read again with the current checksums.
    /// 3. The commit that removes the row of the file removes all checksums. The bytes cannot be judged any more: this
    ///    throws `.assetChanged`, and is no damage.
    package func read(
        _ range: ByteRange, of file: SparseFile, into bytes: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> CheckedBytes {
        if let lock = file.lock { throw lock }
        var known = try sums(of: file, around: range)
        for _ in 0..<8 {
            var bad: [ByteRange] = []
            for piece in known.pieces where try !fits(piece, file, range, into: bytes) { bad.append(piece.range) }
            if bad.isEmpty, known.gaps.isEmpty {
                let isThere = try copySpilled(known, file, range, bytes)
                return isThere ? .right(known.pieces.map(\.range)) : .bad(known.spilled)
            }
            // Pending claims enter the catalog with a commit. If there is still no checksum after the commit, it is
            // really missing.
            if !known.gaps.isEmpty { try unlessDamaged(()) { () throws(CacheError) in try commitNow() } }
            let now = try sums(of: file, around: range)
            if now == known {
                try checkRow(of: file)
                return try bad.isEmpty ? judge(known, file, range, bytes) : .bad(bad + known.gaps)
            }
            known = now
        }
        return .bad([range])
    }

    /// As `read`, without returning the bytes. Blocks.
    package func check(_ range: ByteRange, of file: SparseFile) throws(CacheError) -> CheckedBytes {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(range.length), alignment: 8)
        defer { bytes.deallocate() }
        return try read(range, of: file, into: bytes)
    }

    /// The checksums of a range at one moment.
    private struct Known: Hashable {
        var pieces: [BlockChecksums.Piece]
        /// Stored ranges without a checksum.
        var gaps: [ByteRange]
        /// Ranges that the disk refused: they are in memory as received and have no checksum.
        var spilled: [ByteRange]
    }

    /// Reads the checksums of a range. The file's uncommitted checksums are read first: they leave the file only after
    /// they are in the catalog, so none is missed.
    private func sums(of file: SparseFile, around range: ByteRange) throws(CacheError) -> Known {
        guard let name = file.name else { return Known(pieces: [], gaps: [range], spilled: []) }
        var sums = file.writtenSums(in: ByteRangeSet([range]))
        let known = try unlessDamaged(BlockChecksums()) { () throws(CacheError) in
            try store.catalog.sums(of: name.serial, around: range)
        }
        for piece in known.pieces(touching: range) { sums.insert(piece, joining: false) }
        let pieces = Array(sums.pieces(touching: range))
        let gaps = sums.gaps(in: range).flatMap { file.stored($0) }
        let spilled = sums.gaps(in: range).flatMap { ByteRangeSet(gaps).gaps(in: $0) }
        return Known(pieces: pieces, gaps: gaps, spilled: spilled)
    }

    /// Throws `.assetChanged` if no row references the file any more.
    private func checkRow(of file: SparseFile) throws(CacheError) {
        guard let name = file.name else { return }
        let isPending = { self.pending.withLock { $0.begun[name.asset]?.file === file } }
        let hasRow = try unlessDamaged(true) { () throws(CacheError) in
            if try store.catalog.hasRow(of: name.serial) { return true }
            // The row of a new asset is first pending, then a part of the commit in progress, then in the catalog. It is
            // looked for in this order, so that it cannot move past the search; a failed commit makes it pending again.
            if isPending() { return true }
            waitForCommit()
            return try store.catalog.hasRow(of: name.serial) || isPending()
        }
        if !hasRow { throw CacheError(.assetChanged, "The asset was removed while its bytes were read.") }
    }

    /// Runs `body`; returns `unknown` if the catalog is damaged. The bytes then count as unverified and are fetched
    /// again, instead of failing the read.
    private func unlessDamaged<Value>(
        _ unknown: Value, _ body: () throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        do throws(CacheError) { return try body() } catch  where error.cause is DamagedCatalog { return unknown }
    }

    /// Whether a piece matches its checksum; copies its part of `range` if so.
    private func fits(
        _ piece: BlockChecksums.Piece, _ file: SparseFile, _ range: ByteRange, into bytes: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> Bool {
        guard let found = try file.wholeBytes(piece.range), file.sum(of: found, at: piece.range.lowerBound) == piece.sum
        else { return false }
        copy(found, at: piece.range, to: bytes, of: range)
        return true
    }

    /// Copies the spilled bytes; returns false if some have left the memory meanwhile.
    private func copySpilled(
        _ known: Known, _ file: SparseFile, _ range: ByteRange, _ bytes: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> Bool {
        for run in known.spilled {
            guard let found = try file.wholeBytes(run) else { return false }
            copy(found, at: run, to: bytes, of: range)
        }
        return true
    }

    /// Handles bytes without a checksum, when everything else matches. They are trusted in a file that was written
    /// before checksums existed; otherwise they are bad.
    private func judge(
        _ known: Known, _ file: SparseFile, _ range: ByteRange, _ bytes: UnsafeMutableRawBufferPointer
    ) throws(CacheError) -> CheckedBytes {
        let isUnsummed = try unlessDamaged(false) { () throws(CacheError) in
            // Encrypted files always had checksums.
            guard file.cipher == nil else { return false }
            return try file.name.map { (name) throws(CacheError) in try store.catalog.isUnsummed(name.serial) } ?? false
        }
        guard isUnsummed else { return .bad(known.gaps) }
        for gap in known.gaps {
            guard let found = try file.wholeBytes(gap) else { return .bad(known.gaps) }
            copy(found, at: gap, to: bytes, of: range)
        }
        guard try copySpilled(known, file, range, bytes) else { return .bad(known.spilled) }
        return .right(known.pieces.map(\.range) + known.gaps)
    }

    /// Copies the part of the found bytes that belongs to the requested range.
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
