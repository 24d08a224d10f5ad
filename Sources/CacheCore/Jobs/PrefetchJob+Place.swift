extension PrefetchJob {
    /// The order of jobs; the least is first.
    struct Place: Comparable {
        var priority: JobPriority
        /// Jobs with an earlier deadline are first, those without one last.
        var deadline: Timestamp?
        /// The number of the job's latest run. Jobs of equal priority and deadline take turns by it.
        var turn: UInt64
        /// The number of the job in the order of arrival.
        let arrival: UInt64

        static func < (left: Place, right: Place) -> Bool {
            if left.isEqual(to: right) { return (left.turn, left.arrival) < (right.turn, right.arrival) }
            return (left.priority.rank, left.deadline?.milliseconds ?? .max)
                < (right.priority.rank, right.deadline?.milliseconds ?? .max)
        }

        /// Whether two jobs take turns.
        func isEqual(to other: Place) -> Bool { priority == other.priority && deadline == other.deadline }
    }
}

extension JobPriority {
    /// The order of priorities; the least is first.
    fileprivate var rank: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }
}
