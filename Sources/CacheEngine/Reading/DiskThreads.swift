import CacheCore
import CacheStore
import NIOCore
import NIOPosix

/// Thread pool for blocking disk operations, so that neither event loops nor the cooperative pool block.
struct DiskThreads: Sendable {
    private let pool: NIOThreadPool
    private let chunks = ByteBufferPool()

    init(threads: Int) {
        pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
    }

    /// Finishes the running work and stops the threads. Later work gets `.shuttingDown`.
    func shutdown() async {
        // The pool throws only if it was never started.
        try? await pool.shutdownGracefully()
    }

    /// The bytes of `range`, all of which must be in the file: from the page cache if possible, else read on a disk
    /// thread.
    ///
    /// Throws `.storageCorrupt` if the file is shorter, and `.shuttingDown` after shutdown.
    func read(_ range: ByteRange, of file: SparseFile) async throws(CacheError) -> ByteBuffer {
        if let buffer = readFromPageCache(range, of: file) { return buffer }
        return try await run { try readWaiting(range, of: file) }
    }

    /// The callback form of `read`. It always uses a disk thread, and calls `then` there.
    func read(
        _ range: ByteRange, of file: SparseFile, then: @escaping @Sendable (Result<ByteBuffer, CacheError>) -> Void
    ) {
        submit { isOpen in
            guard isOpen else {
                return then(.failure(CacheError(.shuttingDown, "The service is shutting down.")))
            }
            do throws(CacheError) {
                then(.success(try readWaiting(range, of: file)))
            } catch {
                then(.failure(error))
            }
        }
    }

    /// An empty buffer with a capacity of at least `count` bytes, from the buffer pool.
    func memory(_ count: Int) -> ByteBuffer { chunks.take(count) }

    /// Returns a buffer to the pool after its bytes were sent.
    func giveBack(_ buffer: ByteBuffer) { chunks.giveBack(buffer) }

    /// Runs blocking work on a disk thread and rethrows its `CacheError`. Throws `.shuttingDown` after shutdown.
    func run<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(CacheError) -> Value {
        do {
            return try await pool.runIfActive(work)
        } catch let error as CacheError {
            throw error
        } catch {
            throw CacheError(.shuttingDown, "The service is shutting down.", cause: error)
        }
    }

    /// Runs blocking work on a disk thread. `isOpen` is false after shutdown; the work then only reports its failure.
    func submit(_ work: @escaping @Sendable (_ isOpen: Bool) -> Void) {
        pool.submit { state in
            switch state {
            case .active: work(true)
            case .cancelled: work(false)
            }
        }
    }

    /// The bytes of `range` if all of them are in the page cache; nil otherwise. Does not block.
    func readFromPageCache(_ range: ByteRange, of file: SparseFile) -> ByteBuffer? {
        var buffer = chunks.take(Int(range.length))
        var isWhole = false
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Int(range.length)) { space in
            let wanted = UnsafeMutableRawBufferPointer(rebasing: space[..<Int(range.length)])
            let count = file.readFromPageCache(into: wanted, at: range.lowerBound) ?? 0
            isWhole = count == wanted.count
            return count
        }
        return isWhole ? buffer : nil
    }

    /// Reads `range` with a blocking system call.
    private func readWaiting(_ range: ByteRange, of file: SparseFile) throws(CacheError) -> ByteBuffer {
        var buffer = chunks.take(Int(range.length))
        var failure: CacheError?
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Int(range.length)) { space in
            let wanted = UnsafeMutableRawBufferPointer(rebasing: space[..<Int(range.length)])
            do throws(CacheError) {
                return try file.read(into: wanted, at: range.lowerBound)
            } catch {
                failure = error
                return 0
            }
        }
        if let failure { throw failure }
        guard buffer.readableBytes == Int(range.length) else {
            throw CacheError(.storageCorrupt, "A store file is shorter than its catalog row states.")
        }
        return buffer
    }
}
