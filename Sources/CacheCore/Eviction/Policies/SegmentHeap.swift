/// Priority queue of table places; among equal priorities the place that was unchanged for longest comes first. A 4-ary
/// heap that knows the position of each place: changes are O(log n), and a place needs 20 bytes.
struct SegmentHeap: Sendable {
    private struct Member: Comparable {
        var priority: Double
        /// The number of the change that set the position among equals.
        var sequence: UInt32
        /// The place in the table of the policy.
        var place: UInt32

        static func < (left: Member, right: Member) -> Bool {
            left.priority < right.priority || (left.priority == right.priority && left.sequence < right.sequence)
        }
    }

    private var members: [Member] = []
    /// The heap position of each place; undefined for places that are not in the heap.
    private var standings: [UInt32] = []
    private var nextSequence: UInt32

    init(nextSequence: UInt32 = 0) { self.nextSequence = nextSequence }

    /// Allocated memory in bytes.
    var memoryBytes: Int {
        members.capacity * MemoryLayout<Member>.stride + standings.capacity * MemoryLayout<UInt32>.stride
    }

    /// Adds a place that is not in the heap.
    mutating func insert(_ place: Int, priority: Double) {
        while standings.count <= place { standings.appendClosely(0) }
        members.appendClosely(Member(priority: priority, sequence: sequence(), place: UInt32(place)))
        settle(members[members.count - 1], at: members.count - 1)
    }

    /// Changes the priority of a place in the heap. `isUse`: the place also becomes the last among equals.
    mutating func update(_ place: Int, priority: Double, isUse: Bool) {
        let standing = Int(standings[place])
        let sequence = isUse ? sequence() : members[standing].sequence
        settle(Member(priority: priority, sequence: sequence, place: UInt32(place)), at: standing)
    }

    /// The priority of a place in the heap.
    func priority(of place: Int) -> Double { members[Int(standings[place])].priority }

    /// Removes a place that is in the heap.
    mutating func remove(_ place: Int) {
        let standing = Int(standings[place])
        let last = members.removeLast()
        if standing < members.count { settle(last, at: standing) }
    }

    /// Visits the places in order, least priority first, until `body` returns false. O(k log k) for k visited places.
    func walk(_ body: (_ place: Int, _ priority: Double) -> Bool) {
        guard let first = members.first, body(Int(first.place), first.priority) else { return }
        var frontier = IndexedHeap<Int, Member>()
        var standing = 0
        while true {
            for child in children(of: standing) { frontier.set(child, to: members[child]) }
            guard let next = frontier.popFirst(), body(Int(next.rank.place), next.rank.priority) else { return }
            standing = next.id
        }
    }

    /// The positions of the children, as far as they exist.
    private func children(of standing: Int) -> Range<Int> {
        let first = 4 * standing + 1
        return first < members.count ? first..<min(first + 4, members.count) : 0..<0
    }

    /// Stores a member at the free position `standing`, or moves it up or down to restore the order of the heap.
    private mutating func settle(_ member: Member, at standing: Int) {
        var standing = standing
        while standing > 0, member < members[(standing - 1) / 4] {
            put(members[(standing - 1) / 4], at: standing)
            standing = (standing - 1) / 4
        }
        while true {
            let children = children(of: standing)
            guard var least = children.first else { break }
            for child in children.dropFirst() where members[child] < members[least] { least = child }
            guard members[least] < member else { break }
            put(members[least], at: standing)
            standing = least
        }
        put(member, at: standing)
    }

    /// Stores a member and its position.
    private mutating func put(_ member: Member, at standing: Int) {
        members[standing] = member
        standings[Int(member.place)] = UInt32(standing)
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
        for (sequence, standing) in order.enumerated() { members[standing].sequence = UInt32(sequence) }
        nextSequence = UInt32(members.count)
    }
}
