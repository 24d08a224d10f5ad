extension TransferQueue {
    /// Transfers that wait for a place, those of prefetch left out.
    package var queuedForReaders: Int {
        lanes.values.reduce(0) { sum, lane in
            sum + lane.lines[Line.live.rawValue].count + lane.lines[Line.readAhead.rawValue].count
        }
    }

    /// Which line of its origin a transfer waits in.
    enum Line: Int, CaseIterable {
        case live, aged, readAhead, prefetch

        var isPrefetch: Bool { self == .aged || self == .prefetch }
    }

    /// The order within a line; what has begun already goes before what has not.
    struct Rank: Comparable {
        let isNew: Bool
        let deadline: Instant
        let ticket: Ticket

        static func < (left: Self, right: Self) -> Bool {
            if left.isNew != right.isNew { return right.isNew }
            return (left.deadline, left.ticket) < (right.deadline, right.ticket)
        }
    }

    enum Place {
        /// Waits for its time.
        case delayed
        case waiting(Line)
        case active
        case paused

        /// Whether it waits for a place, or has one; nil where neither is so.
        var isWaiting: Bool? {
            switch self {
            case .waiting: true
            case .active: false
            case .delayed, .paused: nil
            }
        }
    }

    struct Member {
        let entry: Entry
        var priority: TransferPriority
        var deadline: Instant
        /// Since when it could have had a place.
        var ready: Instant
        var isNew = true
        var place = Place.delayed

        var rank: Rank { Rank(isNew: isNew, deadline: deadline, ticket: entry.ticket) }
    }

    struct Load {
        var all = 0
        var prefetch = 0

        /// - Parameter kept: how many free places are no prefetch's yet.
        func hasPlace(in line: Line, limit: Int, kept: Int) -> Bool {
            guard all + (line == .prefetch ? max(kept, Self.spare(of: limit)) : 0) < limit else { return false }
            return !line.isPrefetch || prefetch < Self.prefetchShare(of: limit)
        }

        /// Whether a live transfer that has a place has left too few free ones to the next.
        func isTight(limit: Int) -> Bool { all + Self.spare(of: limit) > limit }

        /// How many places prefetch leaves free, so that the next live transfer need not wait until one of it has yielded.
        private static func spare(of limit: Int) -> Int { limit / 8 }

        private static func prefetchShare(of limit: Int) -> Int { limit == 1 ? 1 : limit - max(1, limit / 4) }
    }

    /// What one origin has running and waiting.
    struct Lane {
        var limit: Int
        var load = Load()
        /// Those that wait for their time among them.
        var waiting = 0
        /// Prefetch that has a place and was not asked to yield it, as it got it.
        var yielding: [Ticket] = []
        var lines = Array(repeating: IndexedHeap<Ticket, Rank>(), count: Line.allCases.count)
    }
}
