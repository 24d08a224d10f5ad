package import CacheCore
import Synchronization

extension SparseFile {
    /// What was written in `ranges` and is not committed yet has these sums, as far as they are known.
    package func writtenSums(in ranges: ByteRangeSet) -> BlockSums {
        withState { state in
            var sums = BlockSums()
            for run in ranges.runs {
                for piece in state.written.pieces(touching: run) { sums.insert(piece, joining: false) }
            }
            return sums
        }
    }

    /// The catalog has these sums now.
    func committed(_ sums: BlockSums) {
        withState { state in
            for piece in sums.pieces {
                let same = state.written.pieces(touching: piece.range)
                if same.count == 1, same.first == piece { state.written.remove(touching: piece.range) }
            }
        }
    }

    /// What the bytes of a run, of one block at most, sum up to; nil where the file ends before, or they cannot be read. Blocks.
    package func sum(of range: ByteRange) throws(CacheError) -> UInt32? {
        try wholeBytes(range).map { Checksum.of($0) }
    }

    /// The bytes of a run; nil where the file ends before, or they cannot be read, also when it is tried again. Blocks.
    package func wholeBytes(_ range: ByteRange) throws(CacheError) -> [UInt8]? {
        if let bytes = try bytesAtOnce(range) { return bytes }
        return try bytesAtOnce(range)
    }

    private func bytesAtOnce(_ range: ByteRange) throws(CacheError) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: Int(range.length))
        do throws(CacheError) {
            return try read(into: &bytes, at: range.lowerBound) == bytes.count ? bytes : nil
        } catch  where error.code == .storageCorrupt {
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
