import CacheCore

/// What one file has of the shelf: the shelf's decisions about it, without a system call.
///
/// The descriptor may be closed while nobody borrows it, the file can be found again by its name, and all that was
/// written is synced: the kernel tells of a write that failed behind the program's back only to descriptors that were
/// open then.
struct DescriptorSlot: Sendable {
    private(set) var descriptor: Descriptor?
    private var borrowers = 0
    /// How many of them hold it for longer than a call.
    private(set) var loans = 0
    /// How many have a reason to keep the descriptor, such as a name that is gone.
    private var keepers = 0
    /// Writes that are done, and how many of them are known to be on the device.
    private var writes = 0
    private var syncedWrites = 0
    /// Whether it was used again since the hand passed; what is used once goes before that.
    private var wasUsed = false

    init(_ descriptor: Descriptor, keepers: Int) {
        self.descriptor = descriptor
        self.keepers = keepers
    }

    private var mayBeClosed: Bool { descriptor != nil && borrowers == 0 && keepers == 0 && writes == syncedWrites }

    /// Lends the descriptor out; nil where the file has none.
    mutating func borrow() -> Descriptor? {
        guard let descriptor else { return nil }
        borrowers += 1
        wasUsed = true
        return descriptor
    }

    /// Lends a descriptor out that has just been opened for the file; answers also the one that is to be closed, where
    /// somebody else was faster.
    mutating func borrow(opened: Descriptor) -> (lent: Descriptor, surplus: Descriptor?) {
        if let descriptor = borrow() { return (descriptor, opened) }
        descriptor = opened
        borrowers += 1
        wasUsed = false
        return (opened, nil)
    }

    /// The borrower is done, having written or not.
    mutating func giveBack(wrote: Bool) {
        borrowers -= 1
        if wrote { writes += 1 }
    }

    /// As `borrow`, for longer than a call.
    mutating func lend() -> Descriptor? {
        guard let descriptor = borrow() else { return nil }
        loans += 1
        return descriptor
    }

    mutating func takeBack() {
        loans -= 1
        giveBack(wrote: false)
    }

    mutating func keep() { keepers += 1 }

    mutating func unkeep() { keepers -= 1 }

    /// How many writes a sync that begins now covers; nil where there is nothing to sync.
    var unsyncedWrites: Int? { writes == syncedWrites ? nil : writes }

    /// So many writes are on the device.
    mutating func synced(writes: Int) { syncedWrites = max(syncedWrites, writes) }

    /// The hand passes: answers the descriptor where it is to be closed, which one that was used has another round for.
    mutating func pass() -> Descriptor? {
        guard wasUsed, mayBeClosed else { return takeIfIdle() }
        wasUsed = false
        return nil
    }

    /// The descriptor, where it may be closed.
    mutating func takeIfIdle() -> Descriptor? { mayBeClosed ? take() : nil }

    mutating func take() -> Descriptor? {
        defer { descriptor = nil }
        return descriptor
    }
}
