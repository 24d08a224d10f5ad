package import CacheCore

/// Checksums of the file's bytes.
extension SparseFile {
    /// Returns the known checksums of bytes in `ranges` that were written but not committed.
    func writtenSums(in ranges: ByteRangeSet) -> BlockChecksums {
        withState { state in
            var sums = BlockChecksums()
            for run in ranges.runs {
                for piece in state.written.pieces(touching: run) { sums.insert(piece, joining: false) }
            }
            return sums
        }
    }

    /// Drops checksums that the catalog now contains, unless the bytes were written again meanwhile.
    func committed(_ sums: BlockChecksums) {
        withState { state in
            for piece in sums.pieces {
                // A piece that was written again meanwhile is still uncommitted.
                let same = state.written.pieces(touching: piece.range)
                if same.count == 1, same.first == piece { state.written.remove(touching: piece.range) }
            }
        }
    }

    /// Computes the checksum of a range, at most one block. Nil if the file ends before its end, or if the bytes cannot
    /// be read or decrypted. Blocks.
    package func sum(of range: ByteRange) throws(CacheError) -> BlockSum? {
        try wholeBytes(range).map { sum(of: $0, at: range.lowerBound) }
    }

    /// The checksum of bytes at `offset`: CRC-32C, and for encrypted files a keyed one.
    func sum(of bytes: [UInt8], at offset: Int64) -> BlockSum { bytes.withUnsafeBytes { sum($0, at: offset) } }

    func sum(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> BlockSum {
        cipher?.sum(of: bytes, at: offset) ?? .crc32C(Checksum.of(bytes))
    }

    /// Reads a range completely. Nil if the file ends before its end, or if reading fails twice. Blocks.
    func wholeBytes(_ range: ByteRange) throws(CacheError) -> [UInt8]? {
        if let bytes = try bytesAtOnce(range) { return bytes }
        return try bytesAtOnce(range)
    }

    /// One attempt to read a range; nil if the device or the file system reports an error.
    private func bytesAtOnce(_ range: ByteRange) throws(CacheError) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: Int(range.length))
        do throws(CacheError) {
            return try read(into: &bytes, at: range.lowerBound) == bytes.count ? bytes : nil
        } catch  where error.code == .storageCorrupt || error.code == .encryptionKeyMissing {
            return nil
        }
    }

    private func read(into bytes: inout [UInt8], at offset: Int64) throws(CacheError) -> Int {
        let outcome: Result<Int, CacheError> = bytes.withUnsafeMutableBytes { buffer in
            do throws(CacheError) {
                return .success(try read(into: buffer, at: offset))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }
}
