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
    private var places: [ID: Int] = [:]

    package init() {}

    package var isEmpty: Bool { members.isEmpty }

    package var count: Int { members.count }

    /// The member with the least rank; nil if the heap is empty.
    package var first: Member? { members.first }

    /// The rank of the member; nil if it is not in the heap.
    package func rank(of id: ID) -> Rank? { places[id].map { members[$0].rank } }

    /// Inserts `id` with `rank`, or changes its rank.
    package mutating func set(_ id: ID, to rank: Rank) {
        let member = Member(id: id, rank: rank)
        if let place = places[id] {
            members[place] = member
            settle(place)
        } else {
            members.append(member)
            places[id] = members.count - 1
            settle(members.count - 1)
        }
    }

    /// Removes `id` and returns its rank; nil if it was not in the heap.
    @discardableResult
    package mutating func remove(_ id: ID) -> Rank? {
        guard let place = places.removeValue(forKey: id) else { return nil }
        let rank = members[place].rank
        let last = members.removeLast()
        if place < members.count {
            members[place] = last
            places[last.id] = place
            settle(place)
        }
        return rank
    }

    /// Removes and returns the member with the least rank; nil if the heap is empty.
    package mutating func popFirst() -> Member? {
        guard let first = members.first else { return nil }
        remove(first.id)
        return first
    }

    /// Moves the member at `place` up or down until the heap order holds.
    private mutating func settle(_ place: Int) {
        var place = place
        while place > 0, members[place].rank < members[(place - 1) / 2].rank {
            swap(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
        while let child = lesserChild(of: place), members[child].rank < members[place].rank {
            swap(place, child)
            place = child
        }
    }

    /// The index of the lesser child; nil if there is no child.
    private func lesserChild(of place: Int) -> Int? {
        let left = 2 * place + 1
        guard left < members.count else { return nil }
        let right = left + 1
        return right < members.count && members[right].rank < members[left].rank ? right : left
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        members.swapAt(one, other)
        places[members[one].id] = one
        places[members[other].id] = other
    }
}
