/// Places of a table in the order of a priority, the longest unchanged first among equals: a heap with four children a
/// node that knows where each place stands. Changes are O(log n), 20 bytes a place.
struct PlaceHeap: Sendable {
    private struct Member: Comparable {
        var priority: Double
        /// Counts the changes.
        var sequence: UInt32
        var place: UInt32

        static func < (left: Member, right: Member) -> Bool {
            left.priority < right.priority || (left.priority == right.priority && left.sequence < right.sequence)
        }
    }

    private var members: [Member] = []
    /// Where in the heap each place stands; nothing is meant by it for one that is not in.
    private var standings: [UInt32] = []
    private var nextSequence: UInt32

    init(nextSequence: UInt32 = 0) { self.nextSequence = nextSequence }

    /// What it holds of the machine's memory.
    var memoryBytes: Int {
        members.capacity * MemoryLayout<Member>.stride + standings.capacity * MemoryLayout<UInt32>.stride
    }

    /// Adds a place that is not in.
    mutating func insert(_ place: Int, priority: Double) {
        while standings.count <= place { standings.appendClosely(0) }
        members.appendClosely(Member(priority: priority, sequence: sequence(), place: UInt32(place)))
        settle(members[members.count - 1], at: members.count - 1)
    }

    /// Changes the priority of a place that is in; `isUse`: and counts as a change among equals.
    mutating func update(_ place: Int, priority: Double, isUse: Bool) {
        let standing = Int(standings[place])
        let sequence = isUse ? sequence() : members[standing].sequence
        settle(Member(priority: priority, sequence: sequence, place: UInt32(place)), at: standing)
    }

    /// Of a place that is in.
    func priority(of place: Int) -> Double { members[Int(standings[place])].priority }

    /// Takes out a place that is in.
    mutating func remove(_ place: Int) {
        let standing = Int(standings[place])
        let last = members.removeLast()
        if standing < members.count { settle(last, at: standing) }
    }

    /// Shows the places in order, least first, until `body` is false.
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

    private func children(of standing: Int) -> Range<Int> {
        let first = 4 * standing + 1
        return first < members.count ? first..<min(first + 4, members.count) : 0..<0
    }

    /// Puts a member where `standing` is free, or above or below, where it belongs.
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

    private mutating func put(_ member: Member, at standing: Int) {
        members[standing] = member
        standings[Int(member.place)] = UInt32(standing)
    }

    private mutating func sequence() -> UInt32 {
        if nextSequence == .max { renumber() }
        defer { nextSequence += 1 }
        return nextSequence
    }

    /// Counts anew from 0, in the same order.
    private mutating func renumber() {
        let order = members.indices.sorted { members[$0].sequence < members[$1].sequence }
        for (sequence, standing) in order.enumerated() { members[standing].sequence = UInt32(sequence) }
        nextSequence = UInt32(members.count)
    }
}
