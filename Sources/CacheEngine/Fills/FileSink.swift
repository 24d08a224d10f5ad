import CacheCore
import CacheStore
import Synchronization

/// Writes the bytes of a transfer sequentially into a sparse file.
final class FileSink: ByteSink {
    private let file: SparseFile
    /// The offset of the next write.
    private let offset: Atomic<Int64>

    init(file: SparseFile, offset: Int64) {
        self.file = file
        self.offset = Atomic(offset)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        try file.write(bytes, at: offset.load(ordering: .relaxed))
        offset.add(Int64(bytes.count), ordering: .relaxed)  // relaxed: one transfer writes on one thread
    }
}
