package import CacheCore
import Synchronization

/// One generation's bytes on disk, each at its own offset; what was never written takes no space.
///
/// Its descriptor is closed with the last reference. Which bytes are there is the catalog's knowledge, not the file's.
package final class SparseFile: Sendable {
    /// Nil for a transient file, which no catalog row can name.
    package let name: FileName?
    /// Nil for a transient file.
    package let path: String?
    /// For `sendfile`; valid as long as this object lives.
    package let descriptor: Descriptor
    private let disk: any Disk
    private let closed: @Sendable () -> Void
    private let state = Mutex(State())

    private struct State {
        /// Runs that are to become holes when the commit that gives them up is durable.
        var doomed = ByteRangeSet()
        /// Why the disk could not sync the file; from then on nothing is written to it.
        var syncFailure: CacheError?
    }

    init(
        name: FileName?, path: String?, descriptor: Descriptor, disk: any Disk,
        closed: @escaping @Sendable () -> Void = {}
    ) {
        self.name = name
        self.path = path
        self.descriptor = descriptor
        self.disk = disk
        self.closed = closed
    }

    deinit {
        disk.close(descriptor)
        closed()
    }

    /// Writes all of `bytes`, or throws; blocks. Bytes written where a punch is pending are spared by it.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        let failure = state.withLock { state in
            if !state.doomed.isEmpty { state.doomed.remove(range) }
            return state.syncFailure
        }
        if let failure { throw failure }
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            let count = try disk.write(descriptor, rest, at: offset + Int64(written))
            guard count > 0 else {
                throw CacheError(.storageFull, "Writing \(path ?? "a transient file") made no progress.")
            }
            written += count
        }
    }

    /// Reads until `bytes` is full or the file ends, and answers how many bytes there were; blocks.
    package func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        var filled = 0
        while filled < bytes.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[filled...])
            let count = try disk.read(descriptor, into: rest, at: offset + Int64(filled))
            if count == 0 { break }
            filled += count
        }
        return filled
    }

    /// Reads what is in the page cache from `offset` on, perhaps less than asked for; nil where that means waiting.
    package func readNow(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        disk.readNow(descriptor, into: bytes, at: offset)
    }

    /// Returns when everything written before is on the device; blocks.
    ///
    /// One failure is final: the kernel may have dropped the bytes and report the next attempt as a success.
    package func sync() throws(CacheError) {
        if let failure = state.withLock({ $0.syncFailure }) { throw failure }
        do throws(CacheError) {
            try disk.sync(descriptor)
        } catch {
            state.withLock { $0.syncFailure = error }
            throw error
        }
    }

    /// The offset behind the last byte ever written.
    package func size() throws(CacheError) -> Int64 { try disk.status(descriptor).size }

    /// What the file takes on the device: blocks, not its apparent size.
    package func diskBytes() throws(CacheError) -> Int64 { try disk.status(descriptor).diskBytes }

    /// Marks runs for `punchDoomed`; from now on a write takes its bytes off the mark.
    func doom(_ ranges: some Sequence<ByteRange>) {
        state.withLock { for range in ranges { $0.doomed.insert(range) } }
    }

    /// Makes holes of what is marked and was not written since; blocks. Only after the catalog has given the runs up.
    func punchDoomed() throws(CacheError) {
        while try punchFirstDoomed() {}
    }

    /// Answers whether there was something to punch.
    ///
    /// The system call is made inside the lock, so that it cannot overtake a write to the same bytes: a write first
    /// takes its bytes off the mark, then touches the file.
    private func punchFirstDoomed() throws(CacheError) -> Bool {
        let outcome: Result<Bool, CacheError> = state.withLock { state in
            guard let first = state.doomed.runs.first else { return .success(false) }
            // Off the mark even where punching fails: the bytes are unclaimed, and only their space is lost.
            state.doomed.remove(first)
            do throws(CacheError) {
                try disk.punch(descriptor, first)
                return .success(true)
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }
}
