/// A binary heap with an index of its members. The least member is available in constant time; any member can be moved
/// or removed in logarithmic time.
package struct IndexedHeap<ID: Hashable & Sendable, Rank: Comparable & Sendable>: Sendable {
    /// A member and its rank.
    package struct Member: Sendable {
        package let id: ID
        package let rank: Rank
    }

    /// The members in heap order: no member is less than its parent at `(index - 1) / 2`.
    private var members: [Member] = []
    /// The index of each member in `members`.
    private var slots: [ID: Int] = [:]

    package init() {}

    package var isEmpty: Bool { members.isEmpty }

    package var count: Int { members.count }

    /// The member with the least rank; nil if the heap is empty.
    package var first: Member? { members.first }

    /// The rank of the member; nil if it is not in the heap.
    package func rank(of id: ID) -> Rank? { slots[id].map { members[$0].rank } }

    /// Inserts `id` with `rank`, or changes its rank.
    package mutating func set(_ id: ID, to rank: Rank) {
        let member = Member(id: id, rank: rank)
        if let slot = slots[id] {
            members[slot] = member
            settle(slot)
        } else {
            members.append(member)
            slots[id] = members.count - 1
            settle(members.count - 1)
        }
    }

    /// Removes `id` and returns its rank; nil if it was not in the heap.
    @discardableResult
    package mutating func remove(_ id: ID) -> Rank? {
        guard let slot = slots.removeValue(forKey: id) else { return nil }
        let rank = members[slot].rank
        let last = members.removeLast()
        if slot < members.count {
            members[slot] = last
            slots[last.id] = slot
            settle(slot)
        }
        return rank
    }

    /// Removes and returns the member with the least rank; nil if the heap is empty.
    package mutating func popFirst() -> Member? {
        guard let first = members.first else { return nil }
        remove(first.id)
        return first
    }

    /// Moves the member at `slot` up or down until the heap order holds.
    private mutating func settle(_ slot: Int) {
        var slot = slot
        while slot > 0, members[slot].rank < members[(slot - 1) / 2].rank {
            swap(slot, (slot - 1) / 2)
            slot = (slot - 1) / 2
        }
        while let child = lesserChild(of: slot), members[child].rank < members[slot].rank {
            swap(slot, child)
            slot = child
        }
    }

    /// The index of the lesser child; nil if there is no child.
    private func lesserChild(of slot: Int) -> Int? {
        let left = 2 * slot + 1
        guard left < members.count else { return nil }
        let right = left + 1
        return right < members.count && members[right].rank < members[left].rank ? right : left
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        members.swapAt(one, other)
        slots[members[one].id] = one
        slots[members[other].id] = other
    }
}
