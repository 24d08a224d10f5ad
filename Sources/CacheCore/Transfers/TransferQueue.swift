/// Pure admission queue of all transfers: by class, within a class by deadline, within a global limit and a limit for
/// each origin.
///
/// A value without a clock or a thread: its owner passes the time and starts the admitted transfers. Rules:
///
/// - An origin at its limit delays no other origin.
/// - Prefetch uses at most three quarters of a limit, so that a live read finds a free permit.
/// - Prefetch that has waited for `agingLimit` counts as live, so that it makes progress beside any number of live
///   reads.
/// - The permit of a finished live transfer is closed to prefetch for `keepingLimit`. Otherwise a reader that
///   requests one range after another would find it in use each time (anticipatory scheduling: Iyer and Druschel, SOSP
///   2001).
///
/// No operation except `removeAll` iterates over the waiting transfers.
package struct TransferQueue: Sendable {
    /// Identifies a transfer; assigned by the owner, in ascending order.
    package typealias Ticket = UInt64
    package typealias Instant = ContinuousClock.Instant

    /// The time after which waiting prefetch counts as live; the end of that time is its deadline.
    package static let agingLimit = Duration.seconds(30)

    /// How long the permit of a live transfer stays closed to prefetch, while prefetch waits.
    package static let keepingLimit = Duration.milliseconds(25)

    /// The parameters of a transfer that is added to the queue.
    package struct Entry: Hashable, Sendable {
        package var ticket: Ticket
        package var origin: String
        /// The number of permits of its origin; the entry added last decides.
        package var originLimit: Int
        package var priority: TransferPriority
        /// The instant of its arrival.
        package var queued: Instant
        /// The time from `queued` to its deadline.
        package var slack: Duration
        /// The earliest instant of its admission; nil: at once.
        package var notBefore: Instant?

        package init(
            ticket: Ticket, origin: String, originLimit: Int, priority: TransferPriority, queued: Instant,
            slack: Duration = .zero, notBefore: Instant? = nil
        ) {
            self.ticket = ticket
            self.origin = origin
            self.originLimit = max(1, originLimit)
            self.priority = priority
            self.queued = queued
            self.slack = slack
            self.notBefore = notBefore
        }
    }

    /// The number of permits of all origins together.
    package private(set) var limit: Int
    /// All transfers that have been added and not finished.
    private var members: [Ticket: Member] = [:]
    /// The queues by origin; origins without transfers are removed.
    private(set) var queues: [String: OriginQueue] = [:]
    /// The permits in use, of all origins.
    private var total = Load()
    /// For each class, the origins that have a free permit for it, ordered by their first waiting transfer.
    private var contenders = Array(repeating: IndexedHeap<[String: Int], Rank>(), count: PriorityClass.allCases.count)
    /// Delayed transfers by `notBefore`.
    private var delayed = IndexedHeap<[Ticket: Int], Instant>()
    /// Waiting prefetch by the instant from which it counts as live.
    private var aging = IndexedHeap<[Ticket: Int], Instant>()
    /// Permits that are closed to prefetch.
    private var kept = ReservedSlots()

    package init(limit: Int) { self.limit = max(1, limit) }

    /// Changes the number of permits. A reduction takes no permit away; call ``admit(at:)`` after an increase.
    package mutating func setLimit(_ limit: Int) { self.limit = max(1, limit) }

    /// The number of transfers with a permit.
    package var activeCount: Int { total.all }

    /// The number of waiting transfers: for a permit, for their `notBefore`, or to resume after a pause.
    package private(set) var queuedCount = 0

    /// The number of paused transfers. They have no permit.
    package private(set) var pausedCount = 0

    /// The numbers of waiting transfers by origin; origins without any are omitted.
    package var queuedByOrigin: [String: Int] { queues.mapValues(\.waiting).filter { $0.value > 0 } }

    /// The numbers of transfers with a permit by origin; origins without any are omitted.
    package var activeByOrigin: [String: Int] { queues.mapValues(\.load.all).filter { $0.value > 0 } }

    /// The number of transfers of `origin` with a permit.
    package func activeCount(of origin: String) -> Int { queues[origin]?.load.all ?? 0 }

    /// Whether the transfer has a permit.
    package func isActive(_ ticket: Ticket) -> Bool {
        if case .active = members[ticket]?.place { true } else { false }
    }

    /// Adds a transfer. It waits at least until the next `admit`.
    package mutating func add(_ entry: Entry) {
        let member = Member(
            entry: entry, priority: entry.priority, deadline: entry.queued + entry.slack,
            ready: max(entry.queued, entry.notBefore ?? entry.queued))
        queues[entry.origin, default: OriginQueue(limit: entry.originLimit)].limit = entry.originLimit
        members[entry.ticket] = member
        countWaiting(member, by: 1)
        if let notBefore = entry.notBefore { delayed.set(entry.ticket, to: notBefore) } else { lineUp(member) }
    }

    /// Moves a transfer to a more urgent class, with `now` as its latest deadline. An active prefetch transfer no
    /// longer counts as prefetch.
    package mutating func promote(_ ticket: Ticket, to priority: TransferPriority, at now: Instant) {
        mature(at: now)
        guard var member = members[ticket], priority < member.priority else { return }
        let place = member.place
        switch place {
        case .active: count(member, by: -1)
        case .waiting: leaveLine(member)
        case .delayed, .paused: break
        }
        member.priority = priority
        member.deadline = min(member.deadline, now)
        members[ticket] = member
        switch place {
        case .active: count(member, by: 1)
        case .waiting: lineUp(member)
        case .delayed, .paused: break
        }
    }

    /// Removes a transfer that has never had a permit; false if it has had one or is unknown.
    package mutating func remove(_ ticket: Ticket) -> Bool {
        guard let member = members[ticket], member.isNew else { return false }
        switch member.place {
        case .active, .paused: return false
        case .delayed, .waiting: leave(member)
        }
        return true
    }

    /// Removes every waiting transfer that has never had a permit, and returns their tickets.
    package mutating func removeAll() -> [Ticket] { members.keys.sorted().filter { remove($0) } }

    /// Gives out permits, and returns the transfers that may start or resume, in order. A transfer keeps its permit
    /// until `paused` or `finished`.
    package mutating func admit(at now: Instant) -> [Ticket] {
        mature(at: now)
        var admitted: [Ticket] = []
        while let ticket = next, var member = members[ticket] {
            leaveLine(member)
            countWaiting(member, by: -1)
            member.isNew = false
            member.place = .active
            members[ticket] = member
            if member.priority != .prefetch { kept.take(of: member.entry.origin) }
            count(member, by: 1)
            admitted.append(ticket)
        }
        return admitted
    }

    /// The active prefetch transfer that should yield its permit, because the live transfer `ticket` waits, or has left
    /// too few permits free; nil if there is none. The transfer that got its permit last is selected, once for each
    /// permit.
    package mutating func yielding(to ticket: Ticket) -> Ticket? {
        guard let member = members[ticket], member.priority == .live, let isWaiting = member.place.isWaiting,
            let queue = queues[member.entry.origin]
        else { return nil }
        func isFull(_ load: Load, _ limit: Int) -> Bool { isWaiting ? load.all >= limit : load.isTight(limit: limit) }
        var origin: String? = member.entry.origin
        if !isFull(queue.load, queue.limit) {
            guard isFull(total, limit) else { return nil }
            origin = queues.max { ($0.value.yielding.count, $0.key) < ($1.value.yielding.count, $1.key) }?.key
        }
        return origin.flatMap { queues[$0]?.yielding.popLast() }
    }

    /// Records a pause: the transfer returns its permit, or stops waiting for one, until `resumes`.
    package mutating func paused(_ ticket: Ticket) {
        guard let member = members[ticket], !member.isNew else { return }
        giveUpPlace(member)
        members[ticket]?.place = .paused
        pausedCount += 1
    }

    /// Makes a paused transfer wait for a permit again, before the transfers of its class that have not started.
    package mutating func resumes(_ ticket: Ticket, at now: Instant) {
        guard var member = members[ticket], case .paused = member.place else { return }
        pausedCount -= 1
        member.deadline = now + member.entry.slack
        member.ready = now
        members[ticket] = member
        countWaiting(member, by: 1)
        lineUp(member)
    }

    /// Removes a transfer that has ended, in any state.
    package mutating func finished(_ ticket: Ticket, at now: Instant) {
        mature(at: now)
        guard let member = members[ticket] else { return }
        let leavesPlace = isActive(ticket) && member.priority != .prefetch
        leave(member)
        guard leavesPlace, aging.first != nil else { return }
        kept.keep(of: member.entry.origin, until: now + Self.keepingLimit)
        contend(member.entry.origin)
    }

    /// The next instant when `admit` can have an effect without another change: a delayed transfer is due, waiting
    /// prefetch begins to count as live, or a reservation ends while prefetch waits. Nil if there is none.
    package var nextDue: Instant? {
        let aged = aging.first?.rank
        return [delayed.first?.rank, aged, aged.flatMap { _ in kept.nextFree }].compactMap(\.self).min()
    }
}

extension TransferQueue {
    /// The transfer that gets the next permit; nil if no transfer may have one.
    private var next: Ticket? {
        let heads = PriorityClass.allCases.map { line in
            total.hasPlace(in: line, limit: limit, kept: kept.count) ? contenders[line.rawValue].first?.rank : nil
        }
        let live = [heads[PriorityClass.live.rawValue], heads[PriorityClass.aged.rawValue]].compactMap(\.self).min()
        return (live ?? heads[PriorityClass.readAhead.rawValue] ?? heads[PriorityClass.prefetch.rawValue])?.ticket
    }

    /// Applies the time: ends reservations, makes delayed transfers wait for a permit, and moves aged prefetch.
    private mutating func mature(at now: Instant) {
        while let origin = kept.takeFree(at: now) { contend(origin) }
        while let due = delayed.first, due.rank <= now {
            delayed.remove(due.id)
            if let member = members[due.id] { lineUp(member) }
        }
        while let old = aging.first, old.rank <= now {
            aging.remove(old.id)
            guard var member = members[old.id] else { continue }
            leaveLine(member)
            member.deadline = old.rank
            put(member, in: .aged)
        }
    }

    /// Makes the transfer wait for a permit in its class; prefetch begins to age.
    private mutating func lineUp(_ member: Member) {
        switch member.priority {
        case .live: put(member, in: .live)
        case .readAhead: put(member, in: .readAhead)
        case .prefetch:
            aging.set(member.entry.ticket, to: member.ready + Self.agingLimit)
            put(member, in: .prefetch)
        }
    }

    /// Makes the transfer wait in the given class of its origin.
    private mutating func put(_ member: Member, in line: PriorityClass) {
        var member = member
        member.place = .waiting(line)
        members[member.entry.ticket] = member
        queues[member.entry.origin, default: OriginQueue(limit: member.entry.originLimit)]
            .classes[line.rawValue].set(member.entry.ticket, to: member.rank)
        contend(member.entry.origin)
    }

    /// Removes a waiting transfer from its class.
    private mutating func leaveLine(_ member: Member) {
        guard case .waiting(let line) = member.place else { return }
        aging.remove(member.entry.ticket)
        queues[member.entry.origin]?.classes[line.rawValue].remove(member.entry.ticket)
        contend(member.entry.origin)
    }

    private mutating func leave(_ member: Member) {
        giveUpPlace(member)
        members[member.entry.ticket] = nil
    }

    /// Ends the transfer's present state and corrects the counts.
    private mutating func giveUpPlace(_ member: Member) {
        switch member.place {
        case .delayed:
            delayed.remove(member.entry.ticket)
            countWaiting(member, by: -1)
        case .waiting:
            leaveLine(member)
            countWaiting(member, by: -1)
        case .active: count(member, by: -1)
        case .paused: pausedCount -= 1
        }
    }

    /// Changes the number of waiting transfers.
    private mutating func countWaiting(_ member: Member, by change: Int) {
        queuedCount += change
        queues[member.entry.origin, default: OriginQueue(limit: member.entry.originLimit)].waiting += change
        forgetIfIdle(member.entry.origin)
    }

    /// Changes the number of permits in use.
    private mutating func count(_ member: Member, by change: Int) {
        let prefetch = member.priority == .prefetch ? change : 0
        total.all += change
        total.prefetch += prefetch
        queues[member.entry.origin, default: OriginQueue(limit: member.entry.originLimit)].load.all += change
        queues[member.entry.origin]?.load.prefetch += prefetch
        if prefetch > 0 { queues[member.entry.origin]?.yielding.append(member.entry.ticket) }
        if prefetch < 0 { queues[member.entry.origin]?.yielding.removeAll { $0 == member.entry.ticket } }
        contend(member.entry.origin)
    }

    /// Updates `contenders` for an origin. Call it after any change of the origin's permits, reservations or waiting
    /// transfers.
    private mutating func contend(_ origin: String) {
        guard let queue = queues[origin] else { return }
        for line in PriorityClass.allCases {
            if queue.load.hasPlace(in: line, limit: queue.limit, kept: kept.count(of: origin)),
                let head = queue.classes[line.rawValue].first
            {
                contenders[line.rawValue].set(origin, to: head.rank)
            } else {
                contenders[line.rawValue].remove(origin)
            }
        }
        forgetIfIdle(origin)
    }

    /// Removes the queue of an origin without transfers.
    private mutating func forgetIfIdle(_ origin: String) {
        if let queue = queues[origin], queue.waiting == 0, queue.load.all == 0 { queues[origin] = nil }
    }
}
