import CacheCore
import CacheStore
import Synchronization

/// Writes the bytes of a transfer sequentially into a sparse file.
final class FileSink: ByteSink {
    private let file: SparseFile
    /// The offset of the next write.
    private let offset: Atomic<Int64>
    /// Receives the first bytes of the asset.
    private let headObserver: (@Sendable (UnsafeRawBufferPointer) -> Void)?

    init(
        file: SparseFile, offset: Int64, headObserver: (@Sendable (UnsafeRawBufferPointer) -> Void)? = nil
    ) {
        self.file = file
        self.offset = Atomic(offset)
        self.headObserver = headObserver
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        let position = offset.load(ordering: .relaxed)
        if position == 0 { headObserver?(bytes) }
        try file.write(bytes, at: position)
        offset.add(Int64(bytes.count), ordering: .relaxed)  // relaxed: one transfer writes on one thread
    }
}
