/// Least recently used goes first; every step is O(1), choosing victims O(1) for each segment looked at.
package struct LRUPolicy: EvictionPolicy {
    /// A link of the list, or a free place, in which case `newer` leads to the next free one.
    private struct Node {
        var segment: SegmentID
        var bytes: Int64
        var newer: Int
        var older: Int
    }

    /// Where a link leads nowhere.
    private static let end = -1

    private var places: [SegmentID: Int] = [:]
    private var nodes: [Node] = []
    private var newest = Self.end
    private var oldest = Self.end
    private var firstFree = Self.end
    package private(set) var usedBytes: Int64 = 0

    package init() {}

    package var count: Int { places.count }

    package mutating func admit(_ segment: SegmentID, bytes: Int64, at now: Timestamp) {
        guard places[segment] == nil else { return resize(segment, bytes: bytes) }
        let node = Node(segment: segment, bytes: bytes, newer: Self.end, older: Self.end)
        let place: Int
        if firstFree == Self.end {
            place = nodes.count
            nodes.append(node)
        } else {
            place = firstFree
            firstFree = nodes[place].newer
            nodes[place] = node
        }
        places[segment] = place
        usedBytes += bytes
        linkAsNewest(place)
    }

    package mutating func resize(_ segment: SegmentID, bytes: Int64) {
        guard let place = places[segment] else { return }
        usedBytes += bytes - nodes[place].bytes
        nodes[place].bytes = bytes
    }

    package mutating func touch(_ segment: SegmentID) {
        guard let place = places[segment], place != newest else { return }
        unlink(place)
        linkAsNewest(place)
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let place = places.removeValue(forKey: segment) else { return }
        unlink(place)
        usedBytes -= nodes[place].bytes
        nodes[place].newer = firstFree
        firstFree = place
    }

    package func victims(toFree bytes: Int64, sparing: (SegmentID) -> Bool) -> [Victim] {
        var victims: [Victim] = []
        var missing = bytes
        var place = oldest
        while place != Self.end && missing > 0 {
            let node = nodes[place]
            if !sparing(node.segment) {
                victims.append(Victim(segment: node.segment, bytes: node.bytes))
                missing -= node.bytes
            }
            place = node.newer
        }
        return victims
    }

    private mutating func linkAsNewest(_ place: Int) {
        nodes[place].newer = Self.end
        nodes[place].older = newest
        if newest == Self.end { oldest = place } else { nodes[newest].newer = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (nodes[place].newer, nodes[place].older)
        if newer == Self.end { newest = older } else { nodes[newer].older = older }
        if older == Self.end { oldest = newer } else { nodes[older].newer = newer }
    }
}
