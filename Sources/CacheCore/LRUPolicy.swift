/// Least recently used goes first; every step is O(1), choosing victims O(1) for each segment looked at.
package struct LRUPolicy: EvictionPolicy {
    private struct Node {
        var segment: SegmentID
        var bytes: Int64
    }

    private var places: [SegmentID: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    /// Oldest first.
    private var order = PlaceOrder()
    package private(set) var usedBytes: Int64 = 0

    package init() {}

    package var count: Int { places.count }

    package mutating func admit(_ segment: SegmentID, bytes: Int64, at now: Timestamp) {
        guard places[segment] == nil else { return resize(segment, bytes: bytes) }
        let node = Node(segment: segment, bytes: bytes)
        let place = free.popLast() ?? nodes.count
        if place == nodes.count { nodes.append(node) } else { nodes[place] = node }
        places[segment] = place
        usedBytes += bytes
        order.append(place)
    }

    package mutating func resize(_ segment: SegmentID, bytes: Int64) {
        guard let place = places[segment] else { return }
        usedBytes += bytes - nodes[place].bytes
        nodes[place].bytes = bytes
    }

    package mutating func touch(_ segment: SegmentID) {
        if let place = places[segment] { order.append(place) }
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let place = places.removeValue(forKey: segment) else { return }
        order.remove(place)
        usedBytes -= nodes[place].bytes
        free.append(place)
    }

    package func victims(toFree bytes: Int64, sparing: (SegmentID) -> Bool) -> [Victim] {
        var victims: [Victim] = []
        var missing = bytes
        var next = order.first
        while let place = next, missing > 0 {
            let node = nodes[place]
            if !sparing(node.segment) {
                victims.append(Victim(segment: node.segment, bytes: node.bytes))
                missing -= node.bytes
            }
            next = order.next(after: place)
        }
        return victims
    }
}
