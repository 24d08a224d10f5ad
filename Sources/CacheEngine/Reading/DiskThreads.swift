import CacheCore
import CacheStore
import NIOCore
import NIOPosix

/// Threads for reads that must wait for the disk, so that nothing else has to.
struct DiskThreads: Sendable {
    private let pool: NIOThreadPool
    private let chunks = ChunkShelf()

    init(threads: Int) {
        pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
    }

    func shutdown() async {
        // The pool answers with an error only where it was never started.
        try? await pool.shutdownGracefully()
    }

    /// The bytes of `range`, all of which are in the file: from the page cache at once, else from these threads.
    func read(_ range: ByteRange, of file: SparseFile) async throws(CacheError) -> ByteBuffer {
        if let buffer = readNow(range, of: file) { return buffer }
        return try await run { try readWaiting(range, of: file) }
    }

    /// As `read`, from these threads in any case, for those who cannot wait.
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

    /// A buffer without bytes, with room for `count`.
    func memory(_ count: Int) -> ByteBuffer { chunks.take(count) }

    /// What was read has left.
    func takeBack(_ buffer: ByteBuffer) { chunks.giveBack(buffer) }

    /// Does work that waits for the disk, and passes its `CacheError` on. Throws `.shuttingDown` where the threads have
    /// gone.
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

    /// Does work that waits for the disk, and is told whether there is one still.
    func submit(_ work: @escaping @Sendable (_ isOpen: Bool) -> Void) {
        pool.submit { state in
            switch state {
            case .active: work(true)
            case .cancelled: work(false)
            }
        }
    }

    /// The bytes of `range`, if all of them are in the page cache.
    func readNow(_ range: ByteRange, of file: SparseFile) -> ByteBuffer? {
        var buffer = chunks.take(Int(range.length))
        var isWhole = false
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Int(range.length)) { space in
            let wanted = UnsafeMutableRawBufferPointer(rebasing: space[..<Int(range.length)])
            let count = file.readNow(into: wanted, at: range.lowerBound) ?? 0
            isWhole = count == wanted.count
            return count
        }
        return isWhole ? buffer : nil
    }

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
            throw CacheError(.storageCorrupt, "A file of the store ends before bytes that the catalog claims.")
        }
        return buffer
    }
}
