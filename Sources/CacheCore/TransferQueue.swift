/// The order in which transfers leave the queue: by class, then as they came, within limits in all and per origin.
///
/// A value without a clock or a thread; whoever owns it tells it the time and starts what it admits. An origin at its limit
/// holds up nobody else. Prefetch may fill no more than three quarters of a limit, so that a live read finds a free place.
package struct TransferQueue: Sendable {
    package typealias Ticket = UInt64
    package typealias Instant = ContinuousClock.Instant

    /// A transfer that waits, or runs.
    package struct Entry: Hashable, Sendable {
        package var ticket: Ticket
        package var origin: String
        /// Transfers of its origin at once.
        package var originLimit: Int
        package var priority: TransferPriority
        /// It does not leave the queue before this.
        package var notBefore: Instant?

        package init(
            ticket: Ticket, origin: String, originLimit: Int, priority: TransferPriority, notBefore: Instant? = nil
        ) {
            self.ticket = ticket
            self.origin = origin
            self.originLimit = max(1, originLimit)
            self.priority = priority
            self.notBefore = notBefore
        }
    }

    private struct Load {
        var all = 0
        var prefetch = 0
    }

    /// Transfers at once, of all origins.
    package let limit: Int
    private var waiting: [TransferPriority: [Entry]] = [:]
    private var active: [Ticket: Entry] = [:]
    private var total = Load()
    private var loads: [String: Load] = [:]

    package init(limit: Int) { self.limit = max(1, limit) }

    /// Transfers admitted and not finished.
    package var activeCount: Int { active.count }

    package var queuedCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    /// Transfers that wait, by origin; origins without any are left out.
    package var queuedByOrigin: [String: Int] {
        waiting.values.joined().reduce(into: [:]) { $0[$1.origin, default: 0] += 1 }
    }

    /// Transfers that run, by origin.
    package var activeByOrigin: [String: Int] { loads.mapValues(\.all) }

    /// Transfers of `origin` that run.
    package func activeCount(of origin: String) -> Int { loads[origin]?.all ?? 0 }

    package mutating func add(_ entry: Entry) { waiting[entry.priority, default: []].append(entry) }

    /// Moves a waiting transfer behind those of a more urgent class; a running one stops counting as prefetch.
    package mutating func promote(_ ticket: Ticket, to priority: TransferPriority) {
        if let entry = active[ticket] {
            guard priority < entry.priority else { return }
            count(entry, by: -1)
            active[ticket]?.priority = priority
            if let promoted = active[ticket] { count(promoted, by: 1) }
            return
        }
        guard let place = place(of: ticket), priority < place.priority else { return }
        guard var entry = waiting[place.priority]?.remove(at: place.index) else { return }
        entry.priority = priority
        add(entry)
    }

    /// Takes a waiting transfer out; false where it does not wait.
    package mutating func remove(_ ticket: Ticket) -> Bool {
        guard let place = place(of: ticket) else { return false }
        waiting[place.priority]?.remove(at: place.index)
        return true
    }

    /// Takes out every transfer that waits.
    package mutating func removeAll() -> [Ticket] {
        defer { waiting = [:] }
        return TransferPriority.allCases.flatMap { waiting[$0] ?? [] }.map(\.ticket)
    }

    /// The transfers that may start now, in order; they count as active until `finished`.
    package mutating func admit(at now: Instant) -> [Ticket] {
        var admitted: [Ticket] = []
        for priority in TransferPriority.allCases {
            guard total.all < limit else { break }
            guard let entries = waiting[priority], !entries.isEmpty else { continue }
            var left: [Entry] = []
            for entry in entries {
                guard isDue(entry, at: now), hasPlace(entry) else {
                    left.append(entry)
                    continue
                }
                active[entry.ticket] = entry
                count(entry, by: 1)
                admitted.append(entry.ticket)
            }
            waiting[priority] = left
        }
        return admitted
    }

    /// Gives a running transfer's place back.
    package mutating func finished(_ ticket: Ticket) {
        guard let entry = active.removeValue(forKey: ticket) else { return }
        count(entry, by: -1)
    }

    /// When the next transfer that waits for a time comes due; nil where none does.
    package func nextDue(after now: Instant) -> Instant? {
        waiting.values.joined().compactMap(\.notBefore).filter { $0 > now }.min()
    }

    private func isDue(_ entry: Entry, at now: Instant) -> Bool { entry.notBefore.map { $0 <= now } ?? true }

    private func hasPlace(_ entry: Entry) -> Bool {
        let load = loads[entry.origin] ?? Load()
        guard total.all < limit, load.all < entry.originLimit else { return false }
        guard entry.priority == .prefetch else { return true }
        return total.prefetch < Self.prefetchShare(of: limit)
            && load.prefetch < Self.prefetchShare(of: entry.originLimit)
    }

    private static func prefetchShare(of limit: Int) -> Int { limit == 1 ? 1 : limit - max(1, limit / 4) }

    private mutating func count(_ entry: Entry, by change: Int) {
        var load = loads[entry.origin] ?? Load()
        load.all += change
        total.all += change
        if entry.priority == .prefetch {
            load.prefetch += change
            total.prefetch += change
        }
        loads[entry.origin] = load.all == 0 ? nil : load
    }

    private func place(of ticket: Ticket) -> (priority: TransferPriority, index: Int)? {
        for priority in TransferPriority.allCases {
            if let index = waiting[priority]?.firstIndex(where: { $0.ticket == ticket }) { return (priority, index) }
        }
        return nil
    }
}
