extension TransferQueue {
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
            guard all + (line == .prefetch ? kept : 0) < limit else { return false }
            return !line.isPrefetch || prefetch < Self.prefetchShare(of: limit)
        }

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
