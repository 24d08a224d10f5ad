/// Lines of small numbers, the places of a table, each in one line at most; every step is O(1), eight bytes a place.
package struct PlaceOrder: Sendable {
    /// The neighbours in a ring that each line closes with an end of its own; a place in no line is its own neighbour.
    private struct Link {
        var next: UInt32
        var previous: UInt32
    }

    /// The ends of the lines, then the places.
    private var links: [Link]
    private let lines: Int
    package private(set) var count = 0

    package init(lines: Int = 1) {
        self.lines = lines
        links = (0..<UInt32(lines)).map { Link(next: $0, previous: $0) }
    }

    /// What it holds of the machine's memory.
    package var memoryBytes: Int { links.capacity * MemoryLayout<Link>.stride }

    package var first: Int? { first(of: 0) }

    package func first(of line: Int) -> Int? { place(links[line].next) }

    /// The place behind one that is in a line.
    package func next(after place: Int) -> Int? { self.place(links[place + lines].next) }

    /// All places of a line, from its beginning.
    package func places(of line: Int = 0) -> [Int] {
        var places: [Int] = []
        var next = first(of: line)
        while let place = next {
            places.append(place)
            next = self.next(after: place)
        }
        return places
    }

    package func contains(_ place: Int) -> Bool {
        place + lines < links.count && links[place + lines].next != place + lines
    }

    /// Puts a place at the end of a line, wherever it was before.
    package mutating func append(_ place: Int, to line: Int = 0) {
        remove(place)
        let own = UInt32(place + lines)
        while links.count <= own { links.appendClosely(Link(next: UInt32(links.count), previous: UInt32(links.count))) }
        let last = links[line].previous
        links[Int(own)] = Link(next: UInt32(line), previous: last)
        links[Int(last)].next = own
        links[line].previous = own
        count += 1
    }

    /// Without effect on a place that is in no line.
    package mutating func remove(_ place: Int) {
        guard contains(place) else { return }
        let own = place + lines
        let link = links[own]
        links[Int(link.previous)].next = link.next
        links[Int(link.next)].previous = link.previous
        links[own] = Link(next: UInt32(own), previous: UInt32(own))
        count -= 1
    }

    package mutating func popFirst() -> Int? {
        guard let first else { return nil }
        remove(first)
        return first
    }

    private func place(_ link: UInt32) -> Int? { link < lines ? nil : Int(link) - lines }
}

extension Array {
    /// Appends, and grows by a thirtieth where there is no room, so that what is kept for millions wastes little.
    mutating func appendClosely(_ element: Element) {
        if count == capacity { reserveCapacity(count + Swift.max(16, count / 30)) }
        append(element)
    }
}
