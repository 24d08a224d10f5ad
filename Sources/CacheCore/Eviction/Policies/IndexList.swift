/// Doubly linked lists of small integers (the slots of a table) in one array. A slot is in one list at most; every
/// operation is O(1) and needs 8 bytes for each slot.
package struct IndexList: Sendable {
    /// The neighbours of a slot. Each list is a ring through a sentinel of its own; a slot in no list links to
    /// itself.
    private struct Link {
        var next: UInt32
        var previous: UInt32
    }

    /// The sentinels of the lists, then the slots.
    private var links: [Link]
    /// The number of lists.
    private let lines: Int
    /// The number of slots in all lists.
    package private(set) var count = 0

    package init(lines: Int = 1) {
        self.lines = lines
        links = (0..<UInt32(lines)).map { Link(next: $0, previous: $0) }
    }

    /// Allocated memory in bytes.
    package var memoryBytes: Int { links.capacity * MemoryLayout<Link>.stride }

    /// The first slot of the first list.
    package var first: Int? { first(of: 0) }

    /// The first slot of a list; nil if the list is empty.
    package func first(of line: Int) -> Int? { slot(links[line].next) }

    /// The successor of a slot in its list; nil at the end.
    package func next(after slot: Int) -> Int? { self.slot(links[slot + lines].next) }

    /// All slots of a list in order.
    package func slots(of line: Int = 0) -> [Int] {
        var slots: [Int] = []
        var next = first(of: line)
        while let slot = next {
            slots.append(slot)
            next = self.next(after: slot)
        }
        return slots
    }

    /// Whether the slot is in any list.
    package func contains(_ slot: Int) -> Bool {
        slot + lines < links.count && links[slot + lines].next != slot + lines
    }

    /// Appends a slot to a list, after removing it from its former list.
    package mutating func append(_ slot: Int, to line: Int = 0) {
        remove(slot)
        let own = UInt32(slot + lines)
        while links.count <= own { links.appendClosely(Link(next: UInt32(links.count), previous: UInt32(links.count))) }
        let last = links[line].previous
        links[Int(own)] = Link(next: UInt32(line), previous: last)
        links[Int(last)].next = own
        links[line].previous = own
        count += 1
    }

    /// Removes a slot from its list. It has no effect on a slot in no list.
    package mutating func remove(_ slot: Int) {
        guard contains(slot) else { return }
        let own = slot + lines
        let link = links[own]
        links[Int(link.previous)].next = link.next
        links[Int(link.next)].previous = link.previous
        links[own] = Link(next: UInt32(own), previous: UInt32(own))
        count -= 1
    }

    /// Removes and returns the first slot of the first list.
    package mutating func popFirst() -> Int? {
        guard let first else { return nil }
        remove(first)
        return first
    }

    /// The slot of a link; nil for a sentinel.
    private func slot(_ link: UInt32) -> Int? { link < lines ? nil : Int(link) - lines }
}

extension Array {
    /// Appends an element. Growth is limited to a thirtieth (at least 16 elements), so that large tables waste little
    /// memory.
    mutating func appendClosely(_ element: Element) {
        if count == capacity { reserveCapacity(count + Swift.max(16, count / 30)) }
        append(element)
    }
}
