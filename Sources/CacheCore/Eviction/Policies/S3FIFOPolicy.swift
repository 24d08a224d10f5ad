/// S3-FIFO, measured in bytes. New segments enter a small queue. Only segments that are read there again, or return
/// soon after their eviction, enter the main queue (Yang et al., "FIFO Queues Are All You Need for Cache Eviction",
/// SOSP 2023).
///
/// The small queue has a tenth of the capacity. The ghost queue, the history of segments evicted from the small queue,
/// covers nine tenths. Every operation is O(1); choosing a victim is O(1) amortized.
package struct S3FIFOPolicy: EvictionPolicy {
    /// The parameters in which published variants differ.
    package struct Rules: Hashable, Sendable {
        /// The reads with which a segment moves from the small to the main queue, 1 to 3.
        package var promotionReads: Int
        /// Whether new segments enter the main queue when the small one is full, until the first eviction.
        package var startsWarm: Bool

        package init(promotionReads: Int = 2, startsWarm: Bool = true) {
            self.promotionReads = promotionReads
            self.startsWarm = startsWarm
        }
    }

    /// The lists of `order`.
    private enum Line {
        static let small = 0
        static let main = 1
    }

    /// The bits of a mark: reads, up to 3, and whether the segment is in the main queue.
    private enum Mark {
        static let main: UInt16 = 4
        static let reads: UInt16 = 3
    }

    private let rules: Rules
    package private(set) var table = SegmentTable()
    /// Both queues, oldest first.
    private var order = IndexList(lines: 2)
    /// The segments that were evicted from the small queue lately.
    private var ghosts: GhostQueue
    /// Bytes of all segments in the small queue.
    private var smallBytes: Int64 = 0
    /// Ends the warm start, see `Rules.startsWarm`.
    private var hasEvicted = false
    package var capacityBytes: Int64 { didSet { ghosts.capacityBytes = Self.ghostBytes(capacityBytes) } }

    package init(capacityBytes: Int64, rules: Rules = Rules()) {
        self.capacityBytes = capacityBytes
        self.rules = rules
        ghosts = GhostQueue(capacityBytes: Self.ghostBytes(capacityBytes))
    }

    private static func ghostBytes(_ capacityBytes: Int64) -> Int64 { Int64(max(0, Double(capacityBytes)) * 0.9) }

    package var memoryBytes: Int { table.memoryBytes + order.memoryBytes + ghosts.memoryBytes }

    /// The target size of the small queue.
    private var smallTarget: Int64 { max(0, capacityBytes) / 10 }

    /// Keeps the segment in the ghost queue while space is freed for it.
    package mutating func expect(_ segment: SegmentID) { ghosts.renew(segment) }

    package mutating func admit(_ segment: SegmentID, bytes: Int64) {
        guard table.slot(of: segment) == nil else { return resize(segment, bytes: bytes) }
        let isBack = ghosts.remove(segment)
        let isWarmingUp = rules.startsWarm && !hasEvicted && smallBytes >= smallTarget
        let slot = table.insert(segment, bytes: bytes)
        if isBack || isWarmingUp {
            table[mark: slot] = Mark.main
            order.append(slot, to: Line.main)
        } else {
            smallBytes &+= table.bytes(at: slot)
            order.append(slot, to: Line.small)
        }
    }

    package mutating func resize(_ segment: SegmentID, bytes: Int64) {
        guard let slot = table.slot(of: segment) else { return }
        let before = table.bytes(at: slot)
        table.resize(at: slot, to: bytes)
        if !isMain(slot) { smallBytes &+= table.bytes(at: slot) - before }
    }

    @discardableResult
    package mutating func touch(_ segment: SegmentID) -> Bool {
        guard let slot = table.slot(of: segment) else { return false }
        if table[mark: slot] & Mark.reads < Mark.reads { table[mark: slot] += 1 }
        return true
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let slot = table.slot(of: segment) else { return }
        if !isMain(slot) { smallBytes &-= table.bytes(at: slot) }
        order.remove(slot)
        table.remove(at: slot)
    }

    package mutating func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (SegmentID, Int) -> Bool, moving: (Int) -> Void
    ) -> [Victim] {
        var round = Round(small: order.first(of: Line.small), main: order.first(of: Line.main), missing: bytes)
        let mainTarget = max(0, capacityBytes) - smallTarget
        while round.missing > 0, round.victims.count < limit {
            hasEvicted = true
            let mainBytes = usedBytes &- smallBytes &- round.mainBytes
            if let slot = round.main, round.small == nil || (mainBytes > mainTarget && !round.isInSmall) {
                if lookAtMain(slot, &round, isSpared: sparing(table.segment(at: slot), slot)) {
                    moving(slot)
                }
            } else if let slot = round.small {
                if lookAtSmall(slot, &round, isSpared: sparing(table.segment(at: slot), slot)) {
                    moving(slot)
                }
            } else {
                break
            }
        }
        return round.victims
    }

    /// The state of one choice of victims.
    private struct Round {
        /// The next segment to visit in each queue; nil: the end. Earlier ones were chosen, skipped or moved.
        var small: Int?
        var main: Int?
        /// Whether the small queue is being scanned. A scan ends when it has chosen a victim.
        var isInSmall = false
        var missing: Int64
        var victims: [Victim] = []
        /// The bytes of victims in the main queue; they are still counted in `usedBytes`.
        var mainBytes: Int64 = 0

        mutating func choose(_ victim: Victim) {
            victims.append(victim)
            missing -= victim.bytes
            isInSmall = false
        }
    }

    /// Visits a segment of the main queue. One with reads loses a read and moves to the end of the queue. Returns
    /// whether the segment moved.
    private mutating func lookAtMain(_ slot: Int, _ round: inout Round, isSpared: Bool) -> Bool {
        round.main = order.next(after: slot)
        guard !isSpared else { return false }
        guard table[mark: slot] & Mark.reads > 0 else {
            let victim = table.victim(at: slot)
            round.choose(victim)
            round.mainBytes &+= victim.bytes
            return false
        }
        table[mark: slot] -= 1
        order.append(slot, to: Line.main)
        round.main = round.main ?? slot
        return true
    }

    /// Visits a segment of the small queue. One with enough reads moves to the main queue; another becomes a victim and
    /// enters the ghost queue. Returns whether the segment moved.
    private mutating func lookAtSmall(_ slot: Int, _ round: inout Round, isSpared: Bool) -> Bool {
        round.small = order.next(after: slot)
        round.isInSmall = true
        guard !isSpared else { return false }
        let victim = table.victim(at: slot)
        guard table[mark: slot] & Mark.reads >= rules.promotionReads else {
            round.choose(victim)
            ghosts.insert(victim.segment, bytes: victim.bytes)
            return false
        }
        table[mark: slot] = Mark.main
        smallBytes &-= victim.bytes
        order.append(slot, to: Line.main)
        round.main = round.main ?? slot
        return true
    }

    private func isMain(_ slot: Int) -> Bool { table[mark: slot] & Mark.main != 0 }

    package var slots: [Int] { order.slots(of: Line.small) + order.slots(of: Line.main) }

    package func entry(at slot: Int) -> PolicyEntry {
        PolicyEntry(isProven: isMain(slot), reads: table[mark: slot] & Mark.reads)
    }

    package mutating func restore(_ segment: SegmentID, bytes: Int64, entry: PolicyEntry) {
        guard table.slot(of: segment) == nil else { return resize(segment, bytes: bytes) }
        let slot = table.insert(segment, bytes: bytes)
        table[mark: slot] = min(entry.reads, Mark.reads) | (entry.isProven ? Mark.main : 0)
        if !entry.isProven { smallBytes &+= table.bytes(at: slot) }
        order.append(slot, to: entry.isProven ? Line.main : Line.small)
    }
}
