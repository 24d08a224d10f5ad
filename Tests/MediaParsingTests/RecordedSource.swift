import CacheCore
@testable import MediaParsing
import Synchronization

/// A source over bytes in memory that records the reads and fetches.
final class RecordedSource: Sendable {
    let bytes: [UInt8]
    /// The stated length of the file; bytes behind those in memory are zeros.
    let length: Int64
    private let recorded = Mutex<[ByteRange]>([])
    private let recordedFetches = Mutex<[ByteRange]>([])

    init(_ bytes: [UInt8], length: Int64? = nil) {
        self.bytes = bytes
        self.length = length ?? Int64(bytes.count)
    }

    var reads: [ByteRange] { recorded.withLock { $0 } }

    var fetches: [ByteRange] { recordedFetches.withLock { $0 } }

    /// Whether a read or a fetch was outside of the file.
    var isReadOutside: Bool { !(reads + fetches).allSatisfy { $0.lowerBound >= 0 && $0.upperBound <= length } }

    var source: MediaSource {
        let read = { @Sendable (range: ByteRange) throws(MediaError) -> [UInt8] in
            self.recorded.withLock { $0.append(range) }
            guard range.lowerBound >= 0, range.upperBound <= self.length else {
                throw .unreadable(CacheError(.internal, "The read \(range) exceeds the file."))
            }
            let known = range.clamped(to: 0..<Int64(self.bytes.count))
            let bytes =
                known.lowerBound == range.lowerBound ? self.bytes[Int(known.lowerBound)..<Int(known.upperBound)] : []
            return Array(bytes) + [UInt8](repeating: 0, count: Int(range.length) - bytes.count)
        }
        return MediaSource(
            length: length, read: read, fetch: { range in self.recordedFetches.withLock { $0.append(range) } })
    }
}
