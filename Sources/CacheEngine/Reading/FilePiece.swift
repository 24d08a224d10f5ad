package import CacheCore
import CacheStore

/// A run of an open file that the kernel can send (`sendfile`). The file stays open as long as the piece lives.
package struct FilePiece: Sendable {
    package let range: ByteRange
    private let pin: SendfilePin

    /// The minimum size in bytes: below it, copying the bytes costs less than a separate system call.
    package static let leastBytes: Int64 = 48 << 10
    /// The maximum size in bytes of a piece of a read. The ledger protects as many bytes ahead of a reader from
    /// eviction.
    package static let mostBytes: Int64 = 2 << 20
    /// The maximum size in bytes of any piece.
    static let mostWarmBytes: Int64 = 8 << 20
    /// The maximum size in bytes while later bytes of the run are still to be fetched. Small pieces report the
    /// reader's position often, and the position controls the read-ahead.
    static let mostFilledBytes: Int64 = 128 << 10

    /// The maximum size of a leased piece that is completely on disk: two segments, within `mostBytes` and
    /// `mostWarmBytes`. Large pieces need fewer wake-ups along the send path. The limit by segments prevents a
    /// small store from being leased as a whole.
    static func mostWarmBytes(on grid: SegmentGrid) -> Int64 {
        min(mostWarmBytes, max(mostBytes, 2 * grid.segmentBytes))
    }

    init(range: ByteRange, pin: SendfilePin) {
        self.range = range
        self.pin = pin
    }

    /// The file descriptor; valid as long as the piece lives.
    package var descriptor: Int32 { pin.descriptor.number }
}
