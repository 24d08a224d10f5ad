/// An order of small numbers, the places of a table, each in it at most once; every step is O(1).
package struct PlaceOrder: Sendable {
    /// A place's neighbours; a place that is not in the order is its own.
    private struct Link {
        var next: Int
        var previous: Int
    }

    /// Where a link leads nowhere.
    private static let end = -1

    private var links: [Link] = []
    private var head = Self.end
    private var tail = Self.end
    package private(set) var count = 0

    package init() {}

    package var first: Int? { head == Self.end ? nil : head }

    /// The place behind one that is in the order.
    package func next(after place: Int) -> Int? {
        let next = links[place].next
        return next == Self.end ? nil : next
    }

    package func contains(_ place: Int) -> Bool { place < links.count && links[place].next != place }

    /// Puts a place at the end, wherever it was before.
    package mutating func append(_ place: Int) {
        remove(place)
        while links.count <= place { links.append(Link(next: links.count, previous: links.count)) }
        links[place] = Link(next: Self.end, previous: tail)
        if tail == Self.end { head = place } else { links[tail].next = place }
        tail = place
        count += 1
    }

    /// Without effect on a place that is not in the order.
    package mutating func remove(_ place: Int) {
        guard contains(place) else { return }
        let link = links[place]
        if link.previous == Self.end { head = link.next } else { links[link.previous].next = link.next }
        if link.next == Self.end { tail = link.previous } else { links[link.next].previous = link.previous }
        links[place] = Link(next: place, previous: place)
        count -= 1
    }

    package mutating func popFirst() -> Int? {
        guard let first else { return nil }
        remove(first)
        return first
    }
}
