package import CacheCore
import CacheStore

/// Bytes of a file that is open; as long as this lives it stays open.
package struct FilePiece: Sendable {
    package let range: ByteRange
    private let loan: FileLoan

    /// Below this a copy is cheaper than a call of its own for the file's bytes.
    package static let leastBytes: Int64 = 48 << 10
    /// So much ahead of a reader is not evicted.
    package static let mostBytes: Int64 = 2 << 20
    /// No piece is larger.
    package static let mostWarmBytes: Int64 = 8 << 20
    /// As many are left in the file at once where some are still to be fetched: how far the reader is says when.
    static let mostFilledBytes: Int64 = 128 << 10

    /// What is all on disk is sent in pieces of that size, each of which wakes everybody on its way: two segments, so that in
    /// a small store not all of it is lent.
    static func mostWarmBytes(on grid: SegmentGrid) -> Int64 {
        min(mostWarmBytes, max(mostBytes, 2 * grid.segmentBytes))
    }

    init(range: ByteRange, loan: FileLoan) {
        self.range = range
        self.loan = loan
    }

    package var descriptor: Int32 { loan.descriptor.number }
}
