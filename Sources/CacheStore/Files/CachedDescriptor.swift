import CacheCore

/// Pure state machine for one file's descriptor in a `FileDescriptorCache`; makes no system calls.
///
/// The descriptor may be closed only if three conditions hold. Nobody borrows it. The file can be reopened by its name.
/// All writes are synced: the kernel reports a failed write-back only to descriptors that were open at that time.
struct CachedDescriptor: Sendable {
    /// Nil while the file is closed.
    private(set) var descriptor: Descriptor?
    /// Number of current borrowers, long ones included.
    private var borrowers = 0
    /// Number of borrowers that hold the descriptor for longer than one call.
    private(set) var loans = 0
    /// Number of reasons to keep the descriptor open, such as a removed name.
    private var keepers = 0
    /// Number of completed writes, and of those known to be on the device.
    private var writes = 0
    private var syncedWrites = 0
    /// Reference bit of the CLOCK algorithm: set by every use after the first.
    private var wasUsed = false

    init(_ descriptor: Descriptor, keepers: Int) {
        self.descriptor = descriptor
        self.keepers = keepers
    }

    /// Whether closing is possible now; see the three conditions above.
    private var mayBeClosed: Bool { descriptor != nil && borrowers == 0 && keepers == 0 && writes == syncedWrites }

    /// Borrows the descriptor; nil if the file is closed.
    mutating func borrow() -> Descriptor? {
        guard let descriptor else { return nil }
        borrowers += 1
        wasUsed = true
        return descriptor
    }

    /// Borrows a descriptor that was just opened for the file. `surplus`: a descriptor to close, if another thread
    /// opened the file first.
    mutating func borrow(opened: Descriptor) -> (lent: Descriptor, surplus: Descriptor?) {
        if let descriptor = borrow() { return (descriptor, opened) }
        descriptor = opened
        borrowers += 1
        wasUsed = false
        return (opened, nil)
    }

    /// Returns the descriptor; `wrote` counts one unsynced write.
    mutating func giveBack(wrote: Bool) {
        borrowers -= 1
        if wrote { writes += 1 }
    }

    /// As `borrow`, for longer than one call. Nil if the file is closed.
    mutating func lend() -> Descriptor? {
        guard let descriptor = borrow() else { return nil }
        loans += 1
        return descriptor
    }

    /// Ends a `lend`.
    mutating func endLoan() {
        loans -= 1
        giveBack(wrote: false)
    }

    /// Adds a reason to keep the descriptor open.
    mutating func keep() { keepers += 1 }

    /// Removes a reason to keep the descriptor open.
    mutating func unkeep() { keepers -= 1 }

    /// Number of writes that a sync starting now covers; nil if everything is synced.
    var unsyncedWrites: Int? { writes == syncedWrites ? nil : writes }

    /// Records that this many writes are on the device.
    mutating func synced(writes: Int) { syncedWrites = max(syncedWrites, writes) }

    /// The CLOCK hand passes. Returns the descriptor to close, or nil. A set reference bit is cleared and protects the
    /// descriptor once.
    mutating func pass() -> Descriptor? {
        // The bit of a descriptor that cannot be closed now is not cleared.
        guard wasUsed, mayBeClosed else { return takeIfIdle() }
        wasUsed = false
        return nil
    }

    /// Removes and returns the descriptor if it may be closed.
    mutating func takeIfIdle() -> Descriptor? { mayBeClosed ? take() : nil }

    /// Removes and returns the descriptor unconditionally.
    mutating func take() -> Descriptor? {
        defer { descriptor = nil }
        return descriptor
    }
}
