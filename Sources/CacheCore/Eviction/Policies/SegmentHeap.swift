/// Priority queue of table slots; among equal priorities the slot that was unchanged for longest comes first. A 4-ary
/// heap that knows the position of each slot: changes are O(log n), and a slot needs 20 bytes.
struct SegmentHeap: Sendable {
    private struct Member: Comparable {
        var priority: Double
        /// The number of the change that set the position among equals.
        var sequence: UInt32
        /// The slot in the table of the policy.
        var slot: UInt32

        static func < (left: Member, right: Member) -> Bool {
            left.priority < right.priority || (left.priority == right.priority && left.sequence < right.sequence)
        }
    }

    private var members: [Member] = []
    /// The heap position of each slot; undefined for slots that are not in the heap.
    private var entries: [UInt32] = []
    private var nextSequence: UInt32

    init(nextSequence: UInt32 = 0) { self.nextSequence = nextSequence }

    /// Allocated memory in bytes.
    var memoryBytes: Int {
        members.capacity * MemoryLayout<Member>.stride + entries.capacity * MemoryLayout<UInt32>.stride
    }

    /// Adds a slot that is not in the heap.
    mutating func insert(_ slot: Int, priority: Double) {
        while entries.count <= slot { entries.appendClosely(0) }
        members.appendClosely(Member(priority: priority, sequence: sequence(), slot: UInt32(slot)))
        settle(members[members.count - 1], at: members.count - 1)
    }

    /// Changes the priority of a slot in the heap. `isUse`: the slot also becomes the last among equals.
    mutating func update(_ slot: Int, priority: Double, isUse: Bool) {
        let entry = Int(entries[slot])
        let sequence = isUse ? sequence() : members[entry].sequence
        settle(Member(priority: priority, sequence: sequence, slot: UInt32(slot)), at: entry)
    }

    /// The priority of a slot in the heap.
    func priority(of slot: Int) -> Double { members[Int(entries[slot])].priority }

    /// Removes a slot that is in the heap.
    mutating func remove(_ slot: Int) {
        let entry = Int(entries[slot])
        let last = members.removeLast()
        if entry < members.count { settle(last, at: entry) }
    }

    /// Visits the slots in order, least priority first, until `body` returns false. O(k log k) for k visited slots.
    func walk(_ body: (_ slot: Int, _ priority: Double) -> Bool) {
        guard let first = members.first, body(Int(first.slot), first.priority) else { return }
        var frontier = IndexedHeap<Int, Member>()
        var entry = 0
        while true {
            for child in children(of: entry) { frontier.set(child, to: members[child]) }
            guard let next = frontier.popFirst(), body(Int(next.rank.slot), next.rank.priority) else { return }
            entry = next.id
        }
    }

    /// The positions of the children, as far as they exist.
    private func children(of entry: Int) -> Range<Int> {
        let first = 4 * entry + 1
        return first < members.count ? first..<min(first + 4, members.count) : 0..<0
    }

    /// Stores a member at the free position `entry`, or moves it up or down to restore the order of the heap.
    private mutating func settle(_ member: Member, at entry: Int) {
        var entry = entry
        while entry > 0, member < members[(entry - 1) / 4] {
            put(members[(entry - 1) / 4], at: entry)
            entry = (entry - 1) / 4
        }
        while true {
            let children = children(of: entry)
            guard var least = children.first else { break }
            for child in children.dropFirst() where members[child] < members[least] { least = child }
            guard members[least] < member else { break }
            put(members[least], at: entry)
            entry = least
        }
        put(member, at: entry)
    }

    /// Stores a member and its position.
    private mutating func put(_ member: Member, at entry: Int) {
        members[entry] = member
        entries[Int(member.slot)] = UInt32(entry)
    }

    /// The number of the next change.
    private mutating func sequence() -> UInt32 {
        if nextSequence == .max { renumber() }
        defer { nextSequence += 1 }
        return nextSequence
    }

    /// Numbers the members from 0 in the same order, when the sequence reaches its limit.
    private mutating func renumber() {
        let order = members.indices.sorted { members[$0].sequence < members[$1].sequence }
        for (sequence, entry) in order.enumerated() { members[entry].sequence = UInt32(sequence) }
        nextSequence = UInt32(members.count)
    }
}
