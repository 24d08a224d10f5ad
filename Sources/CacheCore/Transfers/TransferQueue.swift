/// The order in which transfers leave the queue: by class, within it the earliest deadline first, within limits in all
/// and per origin.
///
/// A value without a clock or a thread; whoever owns it tells it the time and starts what it admits. An origin at its limit
/// holds up nobody else. Prefetch may fill no more than three quarters of a limit, so that a live read finds a free place;
/// prefetch that has waited for `agingLimit` goes among the live reads, so that it gets its turn beside any number of them.
/// The place of a live transfer that has ended is kept from prefetch for a moment: readers who ask for one run after the other
/// would find it taken each time (anticipatory scheduling: Iyer and Druschel, SOSP 2001). No step walks over what waits.
package struct TransferQueue: Sendable {
    package typealias Ticket = UInt64
    package typealias Instant = ContinuousClock.Instant

    /// How long prefetch waits before it is treated as live, with the moment it gets so as its deadline.
    package static let agingLimit = Duration.seconds(30)

    /// How long the place of a live transfer is kept for the next one, while prefetch waits.
    package static let keepingLimit = Duration.milliseconds(25)

    /// A transfer that comes to the queue.
    package struct Entry: Hashable, Sendable {
        package var ticket: Ticket
        package var origin: String
        /// Transfers of its origin at once; the last one queued says what holds for the origin.
        package var originLimit: Int
        package var priority: TransferPriority
        package var queued: Instant
        /// How long after `queued` it is needed.
        package var patience: Duration
        /// It does not leave the queue before this.
        package var notBefore: Instant?

        package init(
            ticket: Ticket, origin: String, originLimit: Int, priority: TransferPriority, queued: Instant,
            patience: Duration = .zero, notBefore: Instant? = nil
        ) {
            self.ticket = ticket
            self.origin = origin
            self.originLimit = max(1, originLimit)
            self.priority = priority
            self.queued = queued
            self.patience = patience
            self.notBefore = notBefore
        }
    }

    /// Transfers at once, of all origins.
    package let limit: Int
    private var members: [Ticket: Member] = [:]
    private(set) var lanes: [String: Lane] = [:]
    private var total = Load()
    /// For each line the origins that have a place for it, by the first that waits there.
    private var contenders = Array(repeating: IndexedHeap<String, Rank>(), count: Line.allCases.count)
    private var delayed = IndexedHeap<Ticket, Instant>()
    private var aging = IndexedHeap<Ticket, Instant>()
    private var kept = KeptPlaces()

    package init(limit: Int) { self.limit = max(1, limit) }

    /// Transfers that have a place.
    package var activeCount: Int { total.all }

    /// Transfers that wait for a place or for their time, those that go on after a pause among them.
    package private(set) var queuedCount = 0

    /// Transfers that are paused, and have no place.
    package private(set) var pausedCount = 0

    /// Transfers that wait, by origin; origins without any are left out.
    package var queuedByOrigin: [String: Int] { lanes.mapValues(\.waiting).filter { $0.value > 0 } }

    /// Transfers that have a place, by origin; origins without any are left out.
    package var activeByOrigin: [String: Int] { lanes.mapValues(\.load.all).filter { $0.value > 0 } }

    /// Transfers of `origin` that have a place.
    package func activeCount(of origin: String) -> Int { lanes[origin]?.load.all ?? 0 }

    /// Whether a transfer has a place.
    package func isActive(_ ticket: Ticket) -> Bool {
        if case .active = members[ticket]?.place { true } else { false }
    }

    package mutating func add(_ entry: Entry) {
        let member = Member(
            entry: entry, priority: entry.priority, deadline: entry.queued + entry.patience,
            ready: max(entry.queued, entry.notBefore ?? entry.queued))
        lanes[entry.origin, default: Lane(limit: entry.originLimit)].limit = entry.originLimit
        members[entry.ticket] = member
        countWaiting(member, by: 1)
        if let notBefore = entry.notBefore { delayed.set(entry.ticket, to: notBefore) } else { lineUp(member) }
    }

    /// Moves a waiting transfer to a more urgent class, where it is needed at once; a running one stops counting as
    /// prefetch.
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

    /// Takes out a transfer that never had a place; false where it does not wait, or goes on after a pause.
    package mutating func remove(_ ticket: Ticket) -> Bool {
        guard let member = members[ticket], member.isNew else { return false }
        switch member.place {
        case .active, .paused: return false
        case .delayed, .waiting: leave(member)
        }
        return true
    }

    /// Takes out every transfer that waits and never had a place.
    package mutating func removeAll() -> [Ticket] { members.keys.sorted().filter { remove($0) } }

    /// The transfers that may start, or go on, now, in order; they have their place until `paused` or `finished`.
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

    /// The running prefetch that should yield its place to a live transfer that waits, or to the next one where this has
    /// left few, the one that began last; nil where there is none of the kind. Each is named once for each place it has had.
    package mutating func yielding(to ticket: Ticket) -> Ticket? {
        guard let member = members[ticket], member.priority == .live, let isWaiting = member.place.isWaiting,
            let lane = lanes[member.entry.origin]
        else { return nil }
        func isFull(_ load: Load, _ limit: Int) -> Bool { isWaiting ? load.all >= limit : load.isTight(limit: limit) }
        var origin: String? = member.entry.origin
        if !isFull(lane.load, lane.limit) {
            guard isFull(total, limit) else { return nil }
            origin = lanes.max { ($0.value.yielding.count, $0.key) < ($1.value.yielding.count, $1.key) }?.key
        }
        return origin.flatMap { lanes[$0]?.yielding.popLast() }
    }

    /// A transfer gives its place back, or stops waiting for one, until it `resumes`.
    package mutating func paused(_ ticket: Ticket) {
        guard let member = members[ticket], !member.isNew else { return }
        giveUpPlace(member)
        members[ticket]?.place = .paused
        pausedCount += 1
    }

    /// A paused transfer waits for a place again, before those of its class that have not begun.
    package mutating func resumes(_ ticket: Ticket, at now: Instant) {
        guard var member = members[ticket], case .paused = member.place else { return }
        pausedCount -= 1
        member.deadline = now + member.entry.patience
        member.ready = now
        members[ticket] = member
        countWaiting(member, by: 1)
        lineUp(member)
    }

    /// A transfer has ended, wherever it stood.
    package mutating func finished(_ ticket: Ticket, at now: Instant) {
        mature(at: now)
        guard let member = members[ticket] else { return }
        let leavesPlace = isActive(ticket) && member.priority != .prefetch
        leave(member)
        guard leavesPlace, aging.first != nil else { return }
        kept.keep(of: member.entry.origin, until: now + Self.keepingLimit)
        contend(member.entry.origin)
    }

    /// When the next transfer that waits for its time, or for a place that is kept, is to be looked at; nil where none does.
    package var nextDue: Instant? {
        [delayed.first?.rank, aging.first.flatMap { _ in kept.nextFree }].compactMap(\.self).min()
    }
}

extension TransferQueue {
    /// The transfer that is to have the next place; nil where none may.
    private var next: Ticket? {
        let heads = Line.allCases.map { line in
            total.hasPlace(in: line, limit: limit, kept: kept.count) ? contenders[line.rawValue].first?.rank : nil
        }
        let live = [heads[Line.live.rawValue], heads[Line.aged.rawValue]].compactMap(\.self).min()
        return (live ?? heads[Line.readAhead.rawValue] ?? heads[Line.prefetch.rawValue])?.ticket
    }

    /// Lines up what has come due, lets go of places kept long enough, and moves prefetch that has waited long enough.
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

    private mutating func lineUp(_ member: Member) {
        switch member.priority {
        case .live: put(member, in: .live)
        case .readAhead: put(member, in: .readAhead)
        case .prefetch:
            aging.set(member.entry.ticket, to: member.ready + Self.agingLimit)
            put(member, in: .prefetch)
        }
    }

    private mutating func put(_ member: Member, in line: Line) {
        var member = member
        member.place = .waiting(line)
        members[member.entry.ticket] = member
        lanes[member.entry.origin, default: Lane(limit: member.entry.originLimit)]
            .lines[line.rawValue].set(member.entry.ticket, to: member.rank)
        contend(member.entry.origin)
    }

    private mutating func leaveLine(_ member: Member) {
        guard case .waiting(let line) = member.place else { return }
        aging.remove(member.entry.ticket)
        lanes[member.entry.origin]?.lines[line.rawValue].remove(member.entry.ticket)
        contend(member.entry.origin)
    }

    private mutating func leave(_ member: Member) {
        giveUpPlace(member)
        members[member.entry.ticket] = nil
    }

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

    private mutating func countWaiting(_ member: Member, by change: Int) {
        queuedCount += change
        lanes[member.entry.origin, default: Lane(limit: member.entry.originLimit)].waiting += change
        forgetIfIdle(member.entry.origin)
    }

    private mutating func count(_ member: Member, by change: Int) {
        let prefetch = member.priority == .prefetch ? change : 0
        total.all += change
        total.prefetch += prefetch
        lanes[member.entry.origin, default: Lane(limit: member.entry.originLimit)].load.all += change
        lanes[member.entry.origin]?.load.prefetch += prefetch
        if prefetch > 0 { lanes[member.entry.origin]?.yielding.append(member.entry.ticket) }
        if prefetch < 0 { lanes[member.entry.origin]?.yielding.removeAll { $0 == member.entry.ticket } }
        contend(member.entry.origin)
    }

    /// Notes which lines of an origin may have a place, after anything of it has changed.
    private mutating func contend(_ origin: String) {
        guard let lane = lanes[origin] else { return }
        for line in Line.allCases {
            if lane.load.hasPlace(in: line, limit: lane.limit, kept: kept.count(of: origin)),
                let head = lane.lines[line.rawValue].first
            {
                contenders[line.rawValue].set(origin, to: head.rank)
            } else {
                contenders[line.rawValue].remove(origin)
            }
        }
        forgetIfIdle(origin)
    }

    private mutating func forgetIfIdle(_ origin: String) {
        if let lane = lanes[origin], lane.waiting == 0, lane.load.all == 0 { lanes[origin] = nil }
    }
}
