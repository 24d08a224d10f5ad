import CacheCore

/// Which files have a descriptor, and which of those go first: the shelf's decisions, without a system call.
///
/// A descriptor may be closed while nobody borrows it, its file can be found again by its name, and all that was written
/// is synced: the kernel tells of a write that failed behind the program's back only to descriptors that were open then.
struct DescriptorTable: Sendable {
    /// A file's place in the table.
    struct Place: Hashable, Sendable {
        fileprivate let number: Int
    }

    private struct Slot {
        var descriptor: Descriptor?
        var borrowers = 0
        /// How many of them hold it for longer than a call.
        var loans = 0
        /// How many have a reason to keep the descriptor, such as a name that is gone.
        var keepers = 0
        /// Writes that are done, and how many of them are known to be on the device.
        var writes = 0
        var syncedWrites = 0
    }

    /// As many descriptors are open at most, if enough of them may be closed.
    let limit: Int
    private var slots: [Slot] = []
    private var free: [Int] = []
    /// Those that may be closed, least recently used first.
    private var idle = PlaceOrder()
    /// Descriptors that are open, or just being opened.
    private(set) var openCount = 0
    /// Descriptors that are lent for longer than a call.
    private var lentCount = 0

    init(limit: Int) { self.limit = limit }

    // MARK: Opening

    /// Counts a descriptor that is about to be opened; answers those to be closed for it.
    mutating func makeRoom() -> [Descriptor] {
        openCount += 1
        return takeSurplus()
    }

    /// The descriptor was not opened.
    mutating func missed() { openCount -= 1 }

    /// Everything that may be closed.
    mutating func takeIdle() -> [Descriptor] {
        var descriptors: [Descriptor] = []
        while let number = idle.popFirst() { descriptors += takeDescriptor(of: number) }
        return descriptors
    }

    /// A new file, whose descriptor has been counted by `makeRoom`, with as many keepers.
    mutating func add(_ descriptor: Descriptor, keepers: Int) -> Place {
        let slot = Slot(descriptor: descriptor, keepers: keepers)
        let number = free.popLast() ?? slots.count
        if number == slots.count { slots.append(slot) } else { slots[number] = slot }
        settle(number)
        return Place(number: number)
    }

    /// The file is used no more; answers what is to be closed.
    mutating func remove(_ place: Place) -> Descriptor? {
        idle.remove(place.number)
        free.append(place.number)
        return takeDescriptor(of: place.number).first
    }

    // MARK: Use

    /// Lends the descriptor out; nil where the file has none.
    mutating func borrow(_ place: Place) -> Descriptor? {
        guard let descriptor = slots[place.number].descriptor else { return nil }
        slots[place.number].borrowers += 1
        idle.remove(place.number)
        return descriptor
    }

    /// Lends a descriptor out that has just been opened for the file; answers also what is to be closed, where somebody
    /// else was faster.
    mutating func borrow(_ place: Place, opened: Descriptor) -> (lent: Descriptor, surplus: Descriptor?) {
        if let descriptor = borrow(place) {
            openCount -= 1
            return (descriptor, opened)
        }
        slots[place.number].descriptor = opened
        slots[place.number].borrowers += 1
        return (opened, nil)
    }

    /// The borrower is done, having written or not; answers what is to be closed where more than the limit are open.
    mutating func giveBack(_ place: Place, wrote: Bool) -> [Descriptor] {
        slots[place.number].borrowers -= 1
        if wrote { slots[place.number].writes += 1 }
        settle(place.number)
        return takeSurplus()
    }

    /// Lends the descriptor out for longer than a call; nil where the file has none, or half of the limit is lent so:
    /// the others are for those who need one for a moment.
    mutating func lend(_ place: Place) -> Descriptor? {
        let isLent = slots[place.number].loans > 0
        guard isLent || lentCount < max(1, limit / 2), let descriptor = borrow(place) else { return nil }
        if !isLent { lentCount += 1 }
        slots[place.number].loans += 1
        return descriptor
    }

    /// What was lent out is given back; answers likewise.
    mutating func takeBack(_ place: Place) -> [Descriptor] {
        slots[place.number].loans -= 1
        if slots[place.number].loans == 0 { lentCount -= 1 }
        return giveBack(place, wrote: false)
    }

    mutating func keep(_ place: Place) {
        slots[place.number].keepers += 1
        settle(place.number)
    }

    mutating func unkeep(_ place: Place) -> [Descriptor] {
        slots[place.number].keepers -= 1
        settle(place.number)
        return takeSurplus()
    }

    /// How many writes a sync that begins now covers; nil where there is nothing to sync.
    func unsyncedWrites(_ place: Place) -> Int? {
        let slot = slots[place.number]
        return slot.writes == slot.syncedWrites ? nil : slot.writes
    }

    /// So many writes are on the device.
    mutating func synced(_ place: Place, writes: Int) -> [Descriptor] {
        slots[place.number].syncedWrites = max(slots[place.number].syncedWrites, writes)
        settle(place.number)
        return takeSurplus()
    }

    /// Puts a slot among those that may be closed, or takes it out.
    private mutating func settle(_ number: Int) {
        let slot = slots[number]
        let mayBeClosed =
            slot.descriptor != nil && slot.borrowers == 0 && slot.keepers == 0 && slot.writes == slot.syncedWrites
        if mayBeClosed { idle.append(number) } else { idle.remove(number) }
    }

    private mutating func takeSurplus() -> [Descriptor] {
        var descriptors: [Descriptor] = []
        while openCount > limit, let number = idle.popFirst() { descriptors += takeDescriptor(of: number) }
        return descriptors
    }

    private mutating func takeDescriptor(of number: Int) -> [Descriptor] {
        guard let descriptor = slots[number].descriptor else { return [] }
        slots[number].descriptor = nil
        openCount -= 1
        return [descriptor]
    }
}
