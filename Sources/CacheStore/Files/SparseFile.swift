package import CacheCore
import Synchronization

/// One generation's bytes on disk, each at its own offset; what was never written takes no space.
///
/// It has a descriptor while it is used, and at the shelf's pleasure in between. Which bytes are there is the catalog's
/// knowledge, not the file's. Where the process has no descriptor left, what needs one throws `.overloaded`.
package final class SparseFile: Sendable {
    /// Nil for a transient file, which no catalog row can name.
    package let name: FileName?
    /// Nil for a transient file.
    package let path: String?
    let disk: any Disk
    let shelf: DescriptorShelf
    let place: DescriptorShelf.Place
    private let closed: @Sendable () -> Void
    private let isGone = Atomic(false)
    /// Whether there is no disk behind it.
    let isInMemory: Bool
    /// What the disk had no room for, and at a glance whether that is anything; nobody waits for the disk behind this lock.
    let memory = Mutex(SpilledBytes())
    let holdsSpilled = Atomic(false)
    private let state = Mutex(State())
    /// Runs that whoever has the lock next marks as doomed: the lock is held while holes are made, and who dooms does not wait.
    private let marks = Mutex<[ByteRange]>([])
    /// The bytes that are lent; nobody waits for a lock behind this one.
    let loans = Mutex<[ObjectIdentifier: ByteRange]>([:])

    struct State {
        /// Runs that are to become holes when the commit that gives them up is durable.
        var doomed = ByteRangeSet()
        /// Those whose commit is durable, and which had to be left as they were for the time being.
        var held = ByteRangeSet()
        /// Blocks whose pages sockets may still refer to.
        var lent = ByteRangeSet()
        /// Whether anything was, since it was opened.
        var isWritten = false
        /// The sums of what was written and is not committed, as it was written.
        var written = BlockSums()
        /// Why the disk could not sync the file; from then on nothing is written to it.
        var syncFailure: CacheError?
    }

    /// - Parameters:
    ///   - descriptor: one that `shelf` has opened.
    ///   - isKept: whether it stays open until `unkeep`; that of a file without a path does in any case.
    ///   - isInMemory: whether all its bytes are spilled, and `descriptor` leads nowhere.
    init(
        name: FileName?, path: String?, descriptor: Descriptor, isKept: Bool = false, isInMemory: Bool = false,
        disk: any Disk, shelf: DescriptorShelf, closed: @escaping @Sendable () -> Void = {}
    ) {
        self.name = name
        self.path = path
        self.isInMemory = isInMemory
        self.disk = disk
        self.shelf = shelf
        self.closed = closed
        place = shelf.add(descriptor, isKept: isKept || path == nil)
    }

    deinit {
        shelf.spill.giveBack(memory.withLock { $0.byteCount })
        shelf.remove(place)
        closed()
    }

    /// Writes all of `bytes`, or throws; blocks. Bytes written where a punch is pending are spared by it. Where the disk has no
    /// room, or is to be spared, they are kept in memory for their readers, if there is some.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        if let failure = withState({ $0.syncFailure }) { throw failure }
        if isInMemory || name != nil && shelf.spill.isPreferred {
            if spill(bytes, at: offset) { return }
            if isInMemory { throw CacheError(.storageFull, "No memory is left for what the disk cannot take.") }
        }
        withState { state in
            if !state.doomed.isEmpty { state.doomed.remove(range) }
            if !state.held.isEmpty { state.held.remove(range) }
            state.written.remove(touching: range)
            state.isWritten = true
        }
        let pieces = name == nil ? [] : Checksum.pieces(of: bytes, at: offset)
        do throws(CacheError) {
            try writeAll(bytes, at: offset)
        } catch  where error.code == .storageFull {
            if !error.isOfSize { shelf.spill.refusals.add(1, ordering: .relaxed) }
            guard spill(bytes, at: offset) else { throw error }
            return
        }
        unspill([range])
        withState { state in
            // What nobody has claimed for so long was never reported; its sums can be made again.
            if state.written.pieces.count > Self.mostPieces { state.written = BlockSums() }
            for piece in pieces { state.written.insert(piece, joining: false) }
        }
    }

    private static let mostPieces = 8192

    private func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
        try withDescriptor { descriptor, wrote throws(CacheError) in
            var written = 0
            while written < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                let count = try disk.write(descriptor, rest, at: offset + Int64(written))
                guard count > 0 else {
                    throw CacheError(.storageFull, "Writing a file made no progress.")
                }
                written += count
            }
            wrote = true  // of half a write nobody ever claims a byte
        }
    }

    /// Reads until `bytes` is full or the file ends, and answers how many bytes there were; blocks.
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

    private func readStored(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) throws(CacheError) -> Int {
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

    /// Reads what is in the page cache from `offset` on, perhaps less than asked for; nil where that means waiting, also
    /// for the file to be opened.
    package func readNow(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int? {
        guard !isSpilled, let descriptor = shelf.borrowOpen(place) else { return nil }
        defer { shelf.giveBack(place, wrote: false) }
        return disk.readNow(descriptor, into: bytes, at: offset)
    }

    /// Returns when everything written before is on the device; blocks.
    ///
    /// One failure is final: the kernel may have dropped the bytes and report the next attempt as a success.
    package func sync() throws(CacheError) {
        if let failure = withState({ $0.syncFailure }) { throw failure }
        guard let writes = shelf.unsyncedWrites(place) else { return }
        try withDescriptor { descriptor throws(CacheError) in
            do throws(CacheError) {
                try disk.sync(descriptor)
            } catch {
                withState { $0.syncFailure = error }
                throw error
            }
        }
        shelf.synced(place, writes: writes)
    }

    /// Whether its name was found to lead to nothing, or to something else, when it was to be opened again.
    package var hasVanished: Bool { isGone.load(ordering: .relaxed) }

    /// The offset behind the last byte ever written.
    package func size() throws(CacheError) -> Int64 { try status().size }

    /// What the file takes on the device: blocks, not its apparent size.
    package func diskBytes() throws(CacheError) -> Int64 { try status().diskBytes }

    func status() throws(CacheError) -> FileStatus {
        try withDescriptor { descriptor throws(CacheError) in try disk.status(descriptor) }
    }

    /// From now on the descriptor stays open: the file's name is about to go. Blocks.
    func keep() throws(CacheError) {
        try withDescriptor { _ in shelf.keep(place) }
    }

    /// The file's name has proved to stay.
    func unkeep() { shelf.unkeep(place) }

    /// Marks runs for `punchDoomed(in:)`; from now on a write takes its bytes off the mark.
    func doom(_ ranges: some Sequence<ByteRange>) {
        marks.withLock { $0 += ranges }
        unspill(ranges)
    }

    /// Whoever makes holes just now is waited for.
    func withState<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
        state.withLock { state in
            mark(in: &state)
            return body(&state)
        }
    }

    /// As above; nil where that means waiting.
    func withStateIfAvailable<Value: Sendable>(_ body: (inout State) -> Value) -> Value? {
        state.withLockIfAvailable { state in
            mark(in: &state)
            return body(&state)
        }
    }

    private func mark(in state: inout State) {
        let new = marks.withLock { marks in
            defer { marks = [] }
            return marks
        }
        for range in new {
            state.doomed.insert(range)
            state.written.remove(touching: range)
        }
    }

    /// Borrows the descriptor for as long as `body` takes.
    func withDescriptor<Value>(
        _ body: (Descriptor) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        try withDescriptor { descriptor, _ throws(CacheError) in try body(descriptor) }
    }

    /// As above, for a body that says whether it `wrote`: what is written keeps the descriptor open until it is synced.
    private func withDescriptor<Value>(
        _ body: (Descriptor, _ wrote: inout Bool) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        let descriptor = try borrow()
        var wrote = false
        defer { shelf.giveBack(place, wrote: wrote) }
        return try body(descriptor, &wrote)
    }

    private func borrow() throws(CacheError) -> Descriptor {
        do throws(CacheError) {
            return try shelf.borrow(place, path: path)
        } catch  where error.isOfNoFile {
            isGone.store(true, ordering: .relaxed)
            throw CacheError(.storageCorrupt, "A file of the store is gone.", cause: error)
        }
    }
}
