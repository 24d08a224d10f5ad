/// A 4-ary heap with an index of its members. The least member is available in constant time; any member can be moved
/// or removed in logarithmic time.
///
/// The index is a dictionary for arbitrary identifiers, and a `SlotIndex` for small numbers.
package struct IndexedHeap<Index: HeapIndex & Sendable, Rank: Comparable & Sendable>: Sendable
where Index.ID: Sendable {
    /// A member and its rank.
    package struct Member: Sendable {
        package let rank: Rank
        package let id: Index.ID
    }

    /// The members in heap order: no member is less than its parent at `(position - 1) / 4`.
    private(set) var members: [Member] = []
    /// The position of each member in `members`.
    private(set) var index = Index()

    package init() {}

    package var isEmpty: Bool { members.isEmpty }

    package var count: Int { members.count }

    /// The member with the least rank; nil if the heap is empty.
    package var first: Member? { members.first }

    /// The rank of the member; nil if it is not in the heap.
    package func rank(of id: Index.ID) -> Rank? { index[id].map { members[$0].rank } }

    /// Inserts `id` with `rank`, or changes its rank.
    package mutating func set(_ id: Index.ID, to rank: Rank) {
        let member = Member(rank: rank, id: id)
        if let position = index[id] { return sift(member, at: position) }
        members.appendClosely(member)
        sift(member, at: members.count - 1)
    }

    /// Removes `id` and returns its rank; nil if it was not in the heap.
    @discardableResult
    package mutating func remove(_ id: Index.ID) -> Rank? {
        guard let position = index[id] else { return nil }
        let rank = members[position].rank
        index[id] = nil
        let last = members.removeLast()
        if position < members.count { sift(last, at: position) }
        return rank
    }

    /// Removes and returns the member with the least rank; nil if the heap is empty.
    package mutating func popFirst() -> Member? {
        guard let first = members.first else { return nil }
        remove(first.id)
        return first
    }

    /// Visits the members in order, least rank first, until `body` returns false. O(k log k) for k visited members.
    package func walk(_ body: (Member) -> Bool) {
        guard let first = members.first, body(first) else { return }
        var frontier = IndexedHeap<[Int: Int], Rank>()
        var position = 0
        while true {
            for child in children(of: position) { frontier.set(child, to: members[child].rank) }
            guard let next = frontier.popFirst(), body(members[next.id]) else { return }
            position = next.id
        }
    }

    /// The positions of the children, as far as they exist.
    private func children(of position: Int) -> Range<Int> {
        let first = 4 * position + 1
        return first < members.count ? first..<min(first + 4, members.count) : 0..<0
    }

    /// Stores a member at the free `position`, or moves it up or down to restore the order of the heap.
    private mutating func sift(_ member: Member, at position: Int) {
        var position = position
        while position > 0, member.rank < members[(position - 1) / 4].rank {
            put(members[(position - 1) / 4], at: position)
            position = (position - 1) / 4
        }
        while true {
            let children = children(of: position)
            guard var least = children.first else { break }
            for child in children.dropFirst() where members[child].rank < members[least].rank { least = child }
            guard members[least].rank < member.rank else { break }
            put(members[least], at: position)
            position = least
        }
        put(member, at: position)
    }

    private mutating func put(_ member: Member, at position: Int) {
        members[position] = member
        index[member.id] = position
    }
}

/// The positions of the members of a heap.
package protocol HeapIndex {
    associatedtype ID

    /// An empty index.
    init()
    /// The position of a member; nil for others.
    subscript(_ id: ID) -> Int? { get set }
}

extension Dictionary: HeapIndex where Value == Int {}

/// The positions of small numbers, such as the slots of a table: an array with 4 bytes for each number.
struct SlotIndex: HeapIndex, Sendable {
    /// The position of each slot; the maximum for slots that are not in the heap.
    private(set) var positions: [UInt32] = []

    subscript(_ slot: UInt32) -> Int? {
        get {
            guard slot < positions.count, positions[Int(slot)] != .max else { return nil }
            return Int(positions[Int(slot)])
        }
        set {
            while positions.count <= slot { positions.appendClosely(.max) }
            positions[Int(slot)] = newValue.map(UInt32.init) ?? .max
        }
    }
}

extension IndexedHeap where Index == SlotIndex {
    /// Allocated memory in bytes.
    var memoryBytes: Int {
        members.capacity * MemoryLayout<Member>.stride + index.positions.capacity * MemoryLayout<UInt32>.stride
    }
}
