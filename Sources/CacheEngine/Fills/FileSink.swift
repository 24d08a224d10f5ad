import CacheCore
import CacheStore
import Synchronization

/// Puts a transfer's bytes into a sparse file, one after the other from an offset on.
final class FileSink: ByteSink {
    private let file: SparseFile
    private let offset: Atomic<Int64>

    init(file: SparseFile, offset: Int64) {
        self.file = file
        self.offset = Atomic(offset)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        try file.write(bytes, at: offset.load(ordering: .relaxed))
        offset.add(Int64(bytes.count), ordering: .relaxed)  // one transfer writes on one thread
    }
}
