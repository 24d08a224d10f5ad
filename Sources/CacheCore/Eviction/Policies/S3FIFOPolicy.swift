/// S3-FIFO, counted in bytes: what is new goes through a small queue, and only what is read there again, or comes back
/// soon after it went, gets into the main one (Yang et al., "FIFO Queues Are All You Need for Cache Eviction", SOSP 2023).
///
/// The small queue has a tenth of the capacity, the memory of what went from it nine tenths. Every step is O(1), choosing a
/// victim O(1) in the mean over many.
package struct S3FIFOPolicy: EvictionPolicy {
    /// What the published variants differ in.
    package struct Rules: Hashable, Sendable {
        /// The reads that a segment of the small queue needs to get into the main one, 1 to 3.
        package var promotionReads: Int
        /// Whether new segments go to the main queue once the small one is full, until the first eviction.
        package var startsWarm: Bool

        package init(promotionReads: Int = 2, startsWarm: Bool = true) {
            self.promotionReads = promotionReads
            self.startsWarm = startsWarm
        }
    }

    private enum Line {
        static let small = 0
        static let main = 1
    }

    /// A mark counts the reads, up to three, and says whether the segment is in the main queue.
    private enum Mark {
        static let main: UInt16 = 4
        static let reads: UInt16 = 3
    }

    private let rules: Rules
    package private(set) var table = SegmentTable()
    /// Both queues, oldest first.
    private var order = PlaceOrder(lines: 2)
    private var ghosts: GhostQueue
    private var smallBytes: Int64 = 0
    private var hasEvicted = false
    package var capacityBytes: Int64 { didSet { ghosts.capacityBytes = Self.ghostBytes(capacityBytes) } }

    package init(capacityBytes: Int64, rules: Rules = Rules()) {
        self.capacityBytes = capacityBytes
        self.rules = rules
        ghosts = GhostQueue(capacityBytes: Self.ghostBytes(capacityBytes))
    }

    private static func ghostBytes(_ capacityBytes: Int64) -> Int64 { Int64(max(0, Double(capacityBytes)) * 0.9) }

    package var memoryBytes: Int { table.memoryBytes + order.memoryBytes + ghosts.memoryBytes }

    private var smallTarget: Int64 { max(0, capacityBytes) / 10 }

    package mutating func expect(_ segment: SegmentID) { ghosts.renew(segment) }

    package mutating func admit(_ segment: SegmentID, bytes: Int64) {
        guard table.place(of: segment) == nil else { return resize(segment, bytes: bytes) }
        let isBack = ghosts.remove(segment)
        let isWarmingUp = rules.startsWarm && !hasEvicted && smallBytes >= smallTarget
        let place = table.insert(segment, bytes: bytes)
        if isBack || isWarmingUp {
            table[mark: place] = Mark.main
            order.append(place, to: Line.main)
        } else {
            smallBytes &+= table.bytes(at: place)
            order.append(place, to: Line.small)
        }
    }

    package mutating func resize(_ segment: SegmentID, bytes: Int64) {
        guard let place = table.place(of: segment) else { return }
        let before = table.bytes(at: place)
        table.resize(at: place, to: bytes)
        if !isMain(place) { smallBytes &+= table.bytes(at: place) - before }
    }

    @discardableResult
    package mutating func touch(_ segment: SegmentID) -> Bool {
        guard let place = table.place(of: segment) else { return false }
        if table[mark: place] & Mark.reads < Mark.reads { table[mark: place] += 1 }
        return true
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let place = table.place(of: segment) else { return }
        if !isMain(place) { smallBytes &-= table.bytes(at: place) }
        order.remove(place)
        table.remove(at: place)
    }

    package mutating func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (SegmentID, Int) -> Bool, moving: (Int) -> Void
    ) -> [Victim] {
        var round = Round(small: order.first(of: Line.small), main: order.first(of: Line.main), missing: bytes)
        let mainTarget = max(0, capacityBytes) - smallTarget
        while round.missing > 0, round.victims.count < limit {
            hasEvicted = true
            let mainBytes = usedBytes &- smallBytes &- round.mainBytes
            if let place = round.main, round.small == nil || (mainBytes > mainTarget && !round.isInSmall) {
                if lookAtMain(place, &round, isSpared: sparing(table.segment(at: place), place)) {
                    moving(place)
                }
            } else if let place = round.small {
                if lookAtSmall(place, &round, isSpared: sparing(table.segment(at: place), place)) {
                    moving(place)
                }
            } else {
                break
            }
        }
        return round.victims
    }

    /// Where one choice of victims stands.
    private struct Round {
        /// Whom it looks at next in either queue; those before are chosen or spared.
        var small: Int?
        var main: Int?
        /// Whether it goes through the small queue, which it does until one is chosen there.
        var isInSmall = false
        var missing: Int64
        var victims: [Victim] = []
        /// Those of the victims that are in the main queue.
        var mainBytes: Int64 = 0

        mutating func choose(_ victim: Victim) {
            victims.append(victim)
            missing -= victim.bytes
            isInSmall = false
        }
    }

    /// Answers whether it stays and has moved.
    private mutating func lookAtMain(_ place: Int, _ round: inout Round, isSpared: Bool) -> Bool {
        round.main = order.next(after: place)
        guard !isSpared else { return false }
        guard table[mark: place] & Mark.reads > 0 else {
            let victim = table.victim(at: place)
            round.choose(victim)
            round.mainBytes &+= victim.bytes
            return false
        }
        table[mark: place] -= 1
        order.append(place, to: Line.main)
        round.main = round.main ?? place
        return true
    }

    /// Answers likewise.
    private mutating func lookAtSmall(_ place: Int, _ round: inout Round, isSpared: Bool) -> Bool {
        round.small = order.next(after: place)
        round.isInSmall = true
        guard !isSpared else { return false }
        let victim = table.victim(at: place)
        guard table[mark: place] & Mark.reads >= rules.promotionReads else {
            round.choose(victim)
            ghosts.insert(victim.segment, bytes: victim.bytes)
            return false
        }
        table[mark: place] = Mark.main
        smallBytes &-= victim.bytes
        order.append(place, to: Line.main)
        round.main = round.main ?? place
        return true
    }

    private func isMain(_ place: Int) -> Bool { table[mark: place] & Mark.main != 0 }

    package var places: [Int] { order.places(of: Line.small) + order.places(of: Line.main) }

    package func standing(at place: Int) -> Standing {
        Standing(isProven: isMain(place), reads: table[mark: place] & Mark.reads)
    }

    package mutating func restore(_ segment: SegmentID, bytes: Int64, standing: Standing) {
        guard table.place(of: segment) == nil else { return resize(segment, bytes: bytes) }
        let place = table.insert(segment, bytes: bytes)
        table[mark: place] = min(standing.reads, Mark.reads) | (standing.isProven ? Mark.main : 0)
        if !standing.isProven { smallBytes &+= table.bytes(at: place) }
        order.append(place, to: standing.isProven ? Line.main : Line.small)
    }
}
