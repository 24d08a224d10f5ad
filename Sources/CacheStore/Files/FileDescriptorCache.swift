import CacheCore
import Synchronization

/// LRU-approximating cache of file descriptors (CLOCK, Corbató 1968). A hit only sets the entry's reference bit, so it
/// takes no shared lock.
///
/// 1. A borrower is counted until it returns the descriptor. Therefore no descriptor is closed during a system call,
///    and no number that the kernel has reused is accessed.
/// 2. No lock is held during a disk call. Two threads that find the same file closed may both open it: the second
///    descriptor is closed again, and both use the first.
/// 3. A file keeps its descriptor open when its name is removed (`Store.unlink`).
/// 4. If all descriptors are in use, the limit is exceeded, because waiting could deadlock. Excess descriptors are
///    closed when they are returned.
final class FileDescriptorCache: Sendable {
    /// The entry of one file.
    final class Entry: Sendable {
        /// The state machine of this entry's descriptor.
        fileprivate let slot: OrderedMutex<CachedDescriptor>

        fileprivate init(_ slot: CachedDescriptor) { self.slot = OrderedMutex(.descriptor, slot) }
    }

    /// The entries with an open descriptor. Lock order: an entry's lock before this one.
    struct ClockRing {
        /// The entries, in the order of the hand.
        fileprivate var entries: [Entry] = []
        /// Index of each entry in `entries`.
        private var numbers: [ObjectIdentifier: Int] = [:]
        /// Index of the entry that the hand inspected last.
        private var hand = 0
    }

    /// Maximum number of open descriptors, unless more are in use.
    let limit: Int
    /// Whether the file system reports pages that sockets still refer to (`Disk.tellsReferences`).
    let tellsReferences: Bool
    /// Memory budget for bytes that the disk refuses.
    let spill: SpillAllowance
    private let disk: any Disk
    /// Guards the ring. No system call is made under this lock.
    let circle = OrderedMutex(.descriptorRing, ClockRing())
    /// Number of descriptors that are open or being opened.
    private let open = Atomic(0)
    /// Number of files with a descriptor that is lent for longer than one call.
    private let lent = Atomic(0)

    init(limit: Int, disk: any Disk, tellsReferences: Bool, spill: SpillAllowance = SpillAllowance()) {
        self.limit = limit
        self.spill = spill
        self.tellsReferences = tellsReferences
        self.disk = disk
    }

    /// Number of descriptors that are open or being opened.
    var openCount: Int { open.load(ordering: .relaxed) }

    /// Opens a file that has no entry yet; pass the result to `add` or `drop`. If the process has no free descriptor,
    /// idle ones are closed and the call is repeated once.
    func open(_ body: () throws(CacheError) -> Descriptor) throws(CacheError) -> Descriptor {
        makeRoom()
        open.add(1, ordering: .relaxed)
        do throws(CacheError) {
            do throws(CacheError) {
                return try body()
            } catch  where error.code == .overloaded {
                closeIdle()
                return try body()
            }
        } catch {
            open.subtract(1, ordering: .relaxed)
            throw error
        }
    }

    /// Adds an entry for a descriptor of `open`. `isKept`: the descriptor stays open until `unkeep`.
    func add(_ descriptor: Descriptor, isKept: Bool) -> Entry {
        let entry = Entry(CachedDescriptor(descriptor, keepers: isKept ? 1 : 0))
        circle.withLock { $0.add(entry) }
        return entry
    }

    /// Closes a descriptor of `open` that was not added.
    func drop(_ descriptor: Descriptor) { close(descriptor) }

    /// Removes an entry and closes its descriptor.
    func remove(_ entry: Entry) {
        closeDescriptor(of: entry) { $0.take() }
    }

    /// Borrows the file's descriptor until `giveBack`; reopens a closed file by its path. Blocks. Throws `overloaded`
    /// if the process has no free descriptor.
    func borrow(_ entry: Entry, path: String?) throws(CacheError) -> Descriptor {
        if let descriptor = borrowOpen(entry) { return descriptor }
        guard let path else { throw CacheError(.internal, "A file without a name was closed and cannot be reopened.") }
        let opened = try open { () throws(CacheError) in try disk.open(path, .readWrite) }
        let (lent, surplus) = entry.slot.withLock { slot in
            let (lent, surplus) = slot.borrow(opened: opened)
            if surplus == nil { circle.withLock { $0.add(entry) } }
            return (lent, surplus)
        }
        close(surplus)
        return lent
    }

    /// As `borrow`, without blocking: nil if the file is closed.
    func borrowOpen(_ entry: Entry) -> Descriptor? { entry.slot.withLock { $0.borrow() } }

    /// Ends a `borrow`; `wrote` counts one unsynced write.
    func giveBack(_ entry: Entry, wrote: Bool) { change(entry) { $0.giveBack(wrote: wrote) } }

    /// As `borrowOpen`, for longer than one call, until `endLoan`. Also nil if half of the limit is lent in this way:
    /// the other half is reserved for short calls.
    func lend(_ entry: Entry) -> Descriptor? {
        entry.slot.withLock { slot in
            if slot.loans == 0, lent.add(1, ordering: .relaxed).newValue > max(1, limit / 2) || slot.descriptor == nil {
                lent.subtract(1, ordering: .relaxed)
                return nil
            }
            return slot.lend()
        }
    }

    /// Ends a `lend`.
    func endLoan(_ entry: Entry) {
        change(entry) { slot in
            slot.endLoan()
            if slot.loans == 0 { lent.subtract(1, ordering: .relaxed) }
        }
    }

    /// Keeps the descriptor open from now on. The caller must have borrowed it.
    func keep(_ entry: Entry) { entry.slot.withLock { $0.keep() } }

    /// Ends a `keep`.
    func unkeep(_ entry: Entry) { change(entry) { $0.unkeep() } }

    /// Number of writes that a sync starting now covers; nil if everything is synced.
    func unsyncedWrites(_ entry: Entry) -> Int? { entry.slot.withLock { $0.unsyncedWrites } }

    /// Records a completed sync; it covered this many writes. They no longer keep the descriptor open.
    func synced(_ entry: Entry, writes: Int) { change(entry) { $0.synced(writes: writes) } }

    /// Changes an entry. Closes its descriptor if it becomes idle while the limit is exceeded.
    private func change(_ entry: Entry, _ body: (inout CachedDescriptor) -> Void) {
        closeDescriptor(of: entry) { slot in
            body(&slot)
            return openCount > limit ? slot.takeIfIdle() : nil
        }
    }

    /// Closes the descriptor that `body` takes out of the entry.
    private func closeDescriptor(of entry: Entry, _ body: (inout CachedDescriptor) -> Descriptor?) {
        let taken = entry.slot.withLock { slot in
            let taken = body(&slot)
            if taken != nil { circle.withLock { $0.remove(entry) } }
            return taken
        }
        close(taken)
    }

    /// Closes a descriptor and counts it. Call it without holding a lock.
    private func close(_ descriptor: Descriptor?) {
        guard let descriptor else { return }
        open.subtract(1, ordering: .relaxed)
        disk.close(descriptor)
    }

    /// Moves the CLOCK hand and closes descriptors until one more fits, for at most two rounds and `mostSteps` entries.
    /// The next call continues from there.
    private func makeRoom() {
        guard openCount >= limit else { return }
        var steps = min(2 * circle.withLock { $0.entries.count }, Self.mostSteps)
        while openCount >= limit, steps > 0, let entry = circle.withLock({ $0.next() }) {
            closeDescriptor(of: entry) { $0.pass() }
            steps -= 1
        }
    }

    /// Maximum number of entries that one search inspects, so that opening a file stays cheap if many are in use.
    private static let mostSteps = 256

    /// Closes every descriptor that may be closed.
    private func closeIdle() {
        for entry in circle.withLock({ $0.entries }) { closeDescriptor(of: entry) { $0.takeIfIdle() } }
    }
}

extension FileDescriptorCache.ClockRing {
    fileprivate mutating func add(_ entry: FileDescriptorCache.Entry) {
        numbers[ObjectIdentifier(entry)] = entries.count
        entries.append(entry)
    }

    /// Removes an entry in constant time: the last one takes its index.
    fileprivate mutating func remove(_ entry: FileDescriptorCache.Entry) {
        guard let number = numbers.removeValue(forKey: ObjectIdentifier(entry)), let last = entries.popLast(),
            last !== entry
        else { return }
        entries[number] = last
        numbers[ObjectIdentifier(last)] = number
    }

    /// Advances the hand; nil if there is no entry.
    fileprivate mutating func next() -> FileDescriptorCache.Entry? {
        guard !entries.isEmpty else { return nil }
        hand = (hand + 1) % entries.count
        return entries[hand]
    }
}
