/// The parts of the queue: classes, ranks, states of a transfer, and per-origin queues.
extension TransferQueue {
    /// The number of transfers that wait for a permit, prefetch excluded.
    package var queuedForReaders: Int {
        queues.values.reduce(0) { sum, queue in
            sum + queue.classes[PriorityClass.live.rawValue].count
                + queue.classes[PriorityClass.readAhead.rawValue].count
        }
    }

    /// The class of a waiting transfer. Each origin has one queue for each class.
    enum PriorityClass: Int, CaseIterable {
        case live, aged, readAhead, prefetch

        var isPrefetch: Bool { self == .aged || self == .prefetch }
    }

    /// The order within a class: resumed transfers first, then the earliest deadline.
    struct Rank: Comparable {
        let isNew: Bool
        let deadline: Instant
        let ticket: Ticket

        static func < (left: Self, right: Self) -> Bool {
            if left.isNew != right.isNew { return right.isNew }
            return (left.deadline, left.ticket) < (right.deadline, right.ticket)
        }
    }

    /// The state of a transfer in the queue.
    enum Place {
        /// It waits for its `notBefore` time.
        case delayed
        /// It waits for a permit.
        case waiting(PriorityClass)
        case active
        case paused

        /// True: it waits for a permit; false: it has one; nil: neither.
        var isWaiting: Bool? {
            switch self {
            case .waiting: true
            case .active: false
            case .delayed, .paused: nil
            }
        }
    }

    /// A transfer in the queue, with its present class, deadline and state.
    struct Member {
        let entry: Entry
        var priority: TransferPriority
        var deadline: Instant
        /// The earliest instant when it could have had a permit.
        var ready: Instant
        /// Whether it has not had a permit yet.
        var isNew = true
        var place = Place.delayed

        var rank: Rank { Rank(isNew: isNew, deadline: deadline, ticket: entry.ticket) }
    }

    /// The permits in use, of one origin or of all.
    struct Load {
        var all = 0
        /// Those of prefetch.
        var prefetch = 0

        /// Whether a transfer of the class may get a permit.
        ///
        /// - Parameter kept: the number of permits that are reserved and closed to prefetch.
        func hasPlace(in line: PriorityClass, limit: Int, kept: Int) -> Bool {
            guard all + (line == .prefetch ? max(kept, Self.spare(of: limit)) : 0) < limit else { return false }
            return !line.isPrefetch || prefetch < Self.prefetchShare(of: limit)
        }

        /// Whether fewer than an eighth of the permits are free after a live transfer got one.
        func isTight(limit: Int) -> Bool { all + Self.spare(of: limit) > limit }

        /// The number of permits that prefetch leaves free, so that the next live transfer need not wait until a
        /// prefetch transfer has yielded.
        private static func spare(of limit: Int) -> Int { limit / 8 }

        /// The largest number of permits for prefetch: three quarters of the limit.
        private static func prefetchShare(of limit: Int) -> Int { limit == 1 ? 1 : limit - max(1, limit / 4) }
    }

    /// The transfers of one origin: permits in use and waiting transfers by class.
    struct OriginQueue {
        /// The number of permits of the origin.
        var limit: Int
        var load = Load()
        /// Waiting transfers, delayed ones included.
        var waiting = 0
        /// Prefetch transfers with a permit that were not asked to yield it, in the order in which they got it.
        var yielding: [Ticket] = []
        var classes = Array(repeating: IndexedHeap<[Ticket: Int], Rank>(), count: PriorityClass.allCases.count)
    }
}
