package import CacheCore
import Synchronization

/// Sparse file with the bytes of one generation, each at its own offset. Unwritten ranges occupy no disk space.
///
/// The descriptor is open during use; between uses the descriptor cache decides. The catalog, not the file, records
/// which ranges are valid. Methods that need a descriptor throw `overloaded` if the process has none left.
package final class SparseFile: Sendable {
    /// Nil for a transient file, which no catalog row can reference.
    package let name: FileName?
    /// Nil for a transient file.
    package let path: String?
    let disk: any Disk
    let descriptors: FileDescriptorCache
    /// This file's entry in the descriptor cache.
    let entry: FileDescriptorCache.Entry
    /// Encrypts the bytes on disk; nil: they are stored as they are. Bytes in memory are never encrypted.
    let cipher: FileCipher?
    /// Called by deinit.
    private let closed: @Sendable () -> Void
    private let isGone = Atomic(false)
    /// Whether all bytes are in memory, because the disk could not create the file.
    let isInMemory: Bool
    /// Bytes that the disk refused, guarded by this lock; no thread waits for the disk while holding it. `holdsSpilled`
    /// tells without the lock whether there are any.
    let memory = OrderedMutex(.spilledBytes, SpilledBytes())
    let holdsSpilled = Atomic(false)
    /// Guards `State`. Punches run under this lock, so waiting for it may block.
    private let state = OrderedMutex(.fileState, State())
    /// Ranges that the next holder of the state lock adds to `markedForPunch`. The state lock is held during punches,
    /// and `markForPunch` must not wait for it.
    private let marks = OrderedMutex<[ByteRange]>(.leaf, [])
    /// Pinned ranges by `SendfilePin`. This lock is the innermost one.
    let loans = OrderedMutex<[ObjectIdentifier: ByteRange]>(.leaf, [:])

    /// Guarded by `state`.
    struct State {
        /// Ranges to punch after the commit that removes them from the row.
        var markedForPunch = ByteRangeSet()
        /// Ranges with a deferred punch; their commit is durable.
        var held = ByteRangeSet()
        /// Blocks with pages that sockets may still refer to.
        var lent = ByteRangeSet()
        /// Whether the file was written since it was opened.
        var isWritten = false
        /// Checksums of written, uncommitted bytes, computed during the write.
        var written = BlockChecksums()
        /// The first sync failure. After it the file accepts no more writes.
        var syncFailure: CacheError?
    }

    /// - Parameters:
    ///   - descriptor: a descriptor that `descriptors` has opened.
    ///   - isKept: whether it stays open until `unkeep`. The descriptor of a file without a path always does.
    ///   - isInMemory: whether all bytes are spilled. Then `descriptor` refers to no file on disk.
    init(
        name: FileName?, path: String?, descriptor: Descriptor, isKept: Bool = false, isInMemory: Bool = false,
        cipher: FileCipher? = nil, disk: any Disk, descriptors: FileDescriptorCache,
        closed: @escaping @Sendable () -> Void = {}
    ) {
        self.name = name
        self.path = path
        self.isInMemory = isInMemory
        self.cipher = cipher
        self.disk = disk
        self.descriptors = descriptors
        self.closed = closed
        entry = descriptors.add(descriptor, isKept: isKept || path == nil)
    }

    deinit {
        descriptors.spill.giveBack(memory.withLock { $0.byteCount })
        descriptors.remove(entry)
        closed()
    }

    /// Writes all of `bytes`, or throws. Blocks. A pending punch does not affect the bytes written here. If the disk is
    /// full or must be spared, the bytes are kept in memory for their readers, within the budget. Throws `storageFull`
    /// if the budget is exhausted too.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        if let failure = withState({ $0.syncFailure }) { throw failure }
        if isInMemory || name != nil && descriptors.spill.isPreferred {
            if spill(bytes, at: offset) { return }
            if isInMemory { throw CacheError(.storageFull, "The disk and the memory for spilled bytes are full.") }
        }
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        withState { state in
            // A punch must not erase the new bytes, nor those that an encrypted file keeps: therefore before the cipher
            // looks for them.
            if !state.markedForPunch.isEmpty { state.markedForPunch.remove(range) }
            if !state.held.isEmpty { state.held.remove(range) }
            state.isWritten = true
        }
        guard let cipher else {
            _ = try store(bytes, as: bytes, at: offset)
            return
        }
        let present = try cipher.write(bytes, at: offset) { (plain, sealed, offset) throws(CacheError) in
            try store(plain, as: sealed, at: offset)
        }
        // The checksums of the new bytes also judge those that were in the file before.
        for range in name == nil ? [] : present {
            let part = Int(range.lowerBound - offset)..<Int(range.upperBound - offset)
            note(
                Checksum.pieces(
                    of: UnsafeRawBufferPointer(rebasing: bytes[part]), at: range.lowerBound, sum: sum(_:at:)))
        }
    }

    /// Writes `stored`, the encrypted form of `bytes` or the same, to the disk. Returns false if `bytes` were spilled
    /// instead.
    private func store(
        _ bytes: UnsafeRawBufferPointer, as stored: UnsafeRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Bool {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        withState { _ = $0.written.remove(touching: range) }
        let pieces = name == nil ? [] : Checksum.pieces(of: bytes, at: offset, sum: sum(_:at:))
        do throws(CacheError) {
            try writeAll(stored, at: offset)
        } catch  where error.code == .storageFull {
            if !error.isOfSize { descriptors.spill.refusals.add(1, ordering: .relaxed) }
            guard spill(bytes, at: offset) else { throw error }
            return false
        }
        unspill([range])
        note(pieces)
        return true
    }

    /// Keeps the checksums of written bytes until their commit.
    private func note(_ pieces: [BlockChecksums.Piece]) {
        withState { state in
            // More uncommitted pieces than this were never reported to the commit queue. Their checksums can be
            // computed again.
            if state.written.pieces.count > mostPieces.load(ordering: .relaxed) { state.written = BlockChecksums() }
            for piece in pieces { state.written.insert(piece, joining: false) }
        }
    }

    /// Maximum number of uncommitted checksums.
    private let mostPieces = Atomic(8192)

    /// Keeps the checksums of all these ranges until their commit, 40 bytes for each block.
    package func keepSums(of ranges: ByteRangeSet) {
        let blocks = ranges.runs.reduce(0) { $0 + Int($1.length / BlockChecksums.blockBytes) + 2 }
        mostPieces.store(max(8192, blocks), ordering: .relaxed)
    }

    /// Writes to the disk until everything is written.
    private func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        try withDescriptor { descriptor, wrote throws(CacheError) in
            var written = 0
            while written < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                let count = try disk.write(descriptor, rest, at: offset + Int64(written))
                guard count > 0 else {
                    throw CacheError(.storageFull, "Writing a file made no progress: the disk wrote 0 bytes.")
                }
                written += count
            }
            wrote = true  // bytes of an incomplete write are never claimed
        }
    }

    /// Reads until `bytes` is full or the file ends; returns the number of bytes. Blocks.
    package func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        let here = isSpilled ? memory.withLock { $0.copy(into: bytes, at: offset) } : ByteRangeSet()
        for gap in here.gaps(in: range) {
            let part = Int(gap.lowerBound - offset)..<Int(gap.upperBound - offset)
            let count = try readStored(into: UnsafeMutableRawBufferPointer(rebasing: bytes[part]), at: gap.lowerBound)
            if count < part.count { return part.lowerBound + count }
        }
        return bytes.count
    }

    /// Reads bytes from the disk.
    private func readStored(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        guard let cipher else { return try readAll(into: bytes, at: offset) }
        return try cipher.read(into: bytes, at: offset) { () throws(CacheError) in try readAll(into: bytes, at: offset)
        }
    }

    /// Reads from the disk as they are stored.
    private func readAll(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
        try withDescriptor { descriptor throws(CacheError) in
            var filled = 0
            while filled < bytes.count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[filled...])
                let count = try disk.read(descriptor, into: rest, at: offset + Int64(filled))
                if count == 0 { break }
                filled += count
            }
            return filled
        }
    }

    /// Reads bytes at `offset` that are in the page cache, possibly fewer than requested. Nil if the call would block,
    /// even to open the file.
    package func readFromPageCache(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        guard !isSpilled, let descriptor = descriptors.borrowOpen(entry) else { return nil }
        defer { descriptors.giveBack(entry, wrote: false) }
        guard let cipher else { return disk.readFromPageCache(descriptor, into: bytes, at: offset) }
        // Bytes that cannot be decrypted are left to the call that may block; it reports the error.
        return try? cipher.read(into: bytes, at: offset) {
            disk.readFromPageCache(descriptor, into: bytes, at: offset) ?? 0
        }
    }

    /// Returns when everything written before is on the device. Blocks.
    ///
    /// A failure is final: the kernel may have dropped the bytes and would report the next attempt as a success.
    package func sync() throws(CacheError) {
        if let failure = withState({ $0.syncFailure }) { throw failure }
        guard let writes = descriptors.unsyncedWrites(entry) else { return }
        try withDescriptor { descriptor throws(CacheError) in
            do throws(CacheError) {
                try disk.sync(descriptor)
            } catch {
                withState { $0.syncFailure = error }
                throw error
            }
        }
        descriptors.synced(entry, writes: writes)
    }

    /// Starts to write the bytes that `sync` will wait for.
    func startSync() {
        guard descriptors.unsyncedWrites(entry) != nil else { return }
        // An error, for example of reopening the file, is reported by `sync`.
        try? withDescriptor { descriptor throws(CacheError) in disk.startSync(descriptor) }
    }

    /// Whether the bytes on disk are encrypted.
    package var isEncrypted: Bool { cipher != nil }

    /// The parts of a range of an encrypted file that were released or punched after they were written: a concurrent
    /// write may have passed over them. They must not be claimed without being written again.
    package func released(in range: ByteRange) -> [ByteRange] { cipher?.unsure(in: range) ?? [] }

    /// The path, if the bytes are stored as they are.
    package var plainPath: String? { cipher == nil ? path : nil }

    /// The error of each read and write while the master key of an encrypted file is missing; nil otherwise.
    package var lock: CacheError? { cipher?.lock }

    /// Whether reopening the file failed because its name was gone or led to something else.
    package var hasVanished: Bool { isGone.load(ordering: .relaxed) }

    /// Apparent size: the offset after the last byte ever written.
    package func size() throws(CacheError) -> Int64 { try status().size }

    /// Disk usage in bytes: allocated blocks, not the apparent size.
    package func diskBytes() throws(CacheError) -> Int64 { try status().diskBytes }

    func status() throws(CacheError) -> FileStatus {
        try withDescriptor { descriptor throws(CacheError) in try disk.status(descriptor) }
    }

    /// Keeps the descriptor open from now on, because the file's name is about to be removed. Blocks.
    func keep() throws(CacheError) {
        try withDescriptor { _ in descriptors.keep(entry) }
    }

    /// Ends `keep`: the file's name still exists.
    func unkeep() { descriptors.unkeep(entry) }

    /// Marks ranges for `punchMarked(in:)`. A later write removes its range from the marks. Does not block.
    func markForPunch(_ ranges: some Sequence<ByteRange>) {
        cipher?.leave(ranges)
        marks.withLock { $0 += ranges }
        unspill(ranges)
    }

    /// Accesses the state. Waits for a punch in progress; it may block.
    func withState<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            mark(in: &state)
            return body(&state)
        }
    }

    /// As above, without waiting; nil if the lock is held.
    func withStateIfAvailable<Value: Sendable>(_ body: (inout State) -> Value) -> Value? {
        state.withLockIfAvailable { state in
            mark(in: &state)
            return body(&state)
        }
    }

    /// Moves the ranges of `marks` into the state, and drops their checksums.
    private func mark(in state: inout State) {
        let new = marks.withLock { marks in
            defer { marks = [] }
            return marks
        }
        for range in new {
            state.markedForPunch.insert(range)
            state.written.remove(touching: range)
        }
    }

    /// Borrows the descriptor while `body` runs.
    func withDescriptor<Value>(
        _ body: (Descriptor) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        try withDescriptor { descriptor, _ throws(CacheError) in try body(descriptor) }
    }

    /// As above; `body` sets `wrote` if it wrote. An unsynced write keeps the descriptor open.
    private func withDescriptor<Value>(
        _ body: (Descriptor, _ wrote: inout Bool) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        let descriptor = try borrow()
        var wrote = false
        defer { descriptors.giveBack(entry, wrote: wrote) }
        return try body(descriptor, &wrote)
    }

    /// Borrows the descriptor. Maps a missing file to `storageCorrupt` and records it in `isGone`.
    private func borrow() throws(CacheError) -> Descriptor {
        do throws(CacheError) {
            return try descriptors.borrow(entry, path: path)
        } catch  where error.isOfNoFile {
            isGone.store(true, ordering: .relaxed)
            throw CacheError(.storageCorrupt, "A file of the store is missing.", cause: error)
        }
    }
}
