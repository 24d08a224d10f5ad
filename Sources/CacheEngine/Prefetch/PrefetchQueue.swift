import CacheCore
import CacheStore
import CacheTracing
import Logging

/// The single owner of the prefetch schedule: feeds events to the pure `PrefetchSchedule`, and performs the actions
/// that it returns.
final class PrefetchQueue: Sendable {
    typealias Run = PrefetchSchedule.Run
    typealias Moment = PrefetchSchedule.Moment

    /// Receives the outcome of a run for another node, and the item with its last progress.
    typealias GuestEnd = @Sendable (PrefetchSchedule.Outcome, JobItemRecord?) -> Void

    /// A run to start, with a stream: the end of the stream stops the run.
    struct Start: Sendable {
        let run: Run
        let stop: AsyncStream<Never>
    }

    /// The schedule, and the handles needed to perform its actions.
    fileprivate struct State {
        /// The jobs of the fleet; nil: there is none.
        weak var fleet: FleetJobs?
        /// The receivers of the outcomes of items that run here for other nodes, by the names of their jobs.
        var guests: [String: GuestEnd] = [:]
        var schedule: PrefetchSchedule
        /// The stop handle of each active run.
        var stops: [Run: AsyncStream<Never>.Continuation] = [:]
        /// The rate limiter of each limited job that has run items.
        var paces: [String: PrefetchRateLimiter] = [:]
        /// The change signals of each observed job, by token.
        var signals: [String: [UInt64: AsyncStream<Void>.Continuation]] = [:]
        var lastToken: UInt64 = 0
        /// The jobs with changes that are not published yet.
        var changed: Set<String> = []
        /// The jobs of this node's schedule with changes, until their end is published.
        var own: Set<String> = []
        /// Whether the unfinished jobs of the last process are scheduled.
        var isLoaded = false
        /// The number of jobs being added to the catalog.
        var submissions = 0
        /// The last published state of each unfinished job, and whether it was at risk.
        var published: [String: (state: JobState, isAtRisk: Bool)] = [:]
    }

    /// An action to perform after the lock is released.
    fileprivate enum Step: Sendable {
        /// Start a run.
        case start(Start)
        /// Stop a run.
        case stop(AsyncStream<Never>.Continuation)
        /// Signal a change to an observer.
        case notify(AsyncStream<Void>.Continuation)

        var isStart: Bool { if case .start = self { true } else { false } }
    }

    let catalog: Catalog
    /// The space claims of all jobs.
    let claims: PrefetchClaims
    let clock: any Clock<Duration>
    let wallClock: any WallClock
    /// The system's clock, which can jump, for instants that clients name.
    let civilClock: any WallClock
    let logger: Logger
    private let events: EventLog
    let latencies: UpstreamLatencies
    let tracer: Tracer
    /// The time since the queue was created, for durations.
    let uptime: @Sendable () -> Duration
    /// Runs to start; consumed by `run`.
    let starts: AsyncStream<Start>
    private let begin: AsyncStream<Start>.Continuation
    /// Yields when queued items may have an unknown size; it buffers two signals.
    let measuring: AsyncStream<Void>
    private let measure: AsyncStream<Void>.Continuation
    /// Yields when changes may be unsaved; it buffers one signal.
    let unsaved: AsyncStream<Void>
    private let save: AsyncStream<Void>.Continuation
    let settings: LiveCacheSettings
    /// The items of large jobs that the catalog does not have yet.
    let spools: JobSpools
    let zones = TimeZones()
    /// Guards the space claims of each unfinished job.
    let spaceClaims = OrderedMutex<[String: JobSpaceClaims]>(.leaf, [:])
    /// Guards the state of the disk when an item began to wait for space; nil: none waits.
    let fullDisk = OrderedMutex<DiskState?>(.leaf, nil)
    /// Guards the schedule, the stop handles of runs, the rate limiters and the change signals of observers.
    private let state: OrderedMutex<State>
    /// Serializes catalog writes with the matching changes of the schedule; see `submit`.
    private let saving = AsyncMutex()

    init(
        store: Store, claims: PrefetchClaims, clock: any Clock<Duration>,
        wallClock: any WallClock, civilClock: any WallClock, events: EventLog, latencies: UpstreamLatencies,
        tracer: Tracer, settings: LiveCacheSettings, logger: Logger
    ) {
        self.settings = settings
        (catalog, spools) = (store.catalog, store.jobSpools)
        self.claims = claims
        self.clock = clock
        self.wallClock = wallClock
        self.civilClock = civilClock
        self.logger = logger
        self.events = events
        self.latencies = latencies
        self.tracer = tracer
        uptime = clock.stopwatch()
        (starts, begin) = AsyncStream.makeStream()
        (measuring, measure) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(2))
        (unsaved, save) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        state = OrderedMutex(
            .leaf, State(schedule: PrefetchSchedule(concurrency: settings.current.settings.jobConcurrency)))
    }

    /// The limits of items in force.
    var limits: PrefetchSchedule.Limits { settings.current.settings.jobLimits }

    /// The present moment on both clocks.
    var moment: Moment { Moment(wall: wallClock.now(), civil: civilClock.now(), uptime: uptime()) }

    /// Whether jobs are unfinished: their items occupy the commit queue and the catalog.
    var isBusy: Bool { state.withLock { $0.submissions > 0 || $0.schedule.hasRunnable } }

    /// The jobs of the fleet; nil: there is none.
    var fleet: FleetJobs? { state.withLock { $0.fleet } }

    /// Sets the jobs of the fleet, which refer to this queue.
    func join(_ fleet: FleetJobs) { state.withLock { $0.fleet = fleet } }

    // MARK: The schedule

    /// Reads the schedule under the lock.
    func look<Value: Sendable>(_ body: (borrowing PrefetchSchedule) -> Value) -> Value {
        state.withLock { body($0.schedule) }
    }

    /// Dequeues the next queued item of unknown size; each item is returned once.
    func takeUnmeasured() -> (job: String, item: JobItemRecord)? { state.withLock { $0.schedule.takeUnmeasured() } }

    /// Changes the schedule under the lock, and performs the resulting actions after its release. Returns whether
    /// there were any.
    @discardableResult
    func change(_ body: (inout PrefetchSchedule, Moment) -> [PrefetchSchedule.Action]) -> Bool {
        let now = moment
        let (steps, hasChanged) = state.withLock { state in
            let actions = body(&state.schedule, now)
            return (actions.flatMap { state.steps(for: $0) }, !actions.isEmpty)
        }
        for step in steps {
            switch step {
            case .start(let start): begin.yield(start)
            case .stop(let stop): stop.finish()
            case .notify(let signal): signal.yield()
            }
        }
        if steps.contains(where: \.isStart) { measure.yield() }
        return hasChanged
    }

    /// Adds a job to the schedule as it is recorded. Returns false if it is scheduled already. `isRouted`: other nodes run
    /// its items.
    @discardableResult
    func add(_ record: JobRecord, saved: Int? = nil, isRouted: Bool = false) -> Bool {
        defer { measure.yield() }
        enterZones(of: record.times)
        return change { $0.add(record, saved: saved, isRouted: isRouted, at: $1) ?? [] }
    }

    /// Adds a new or requeued job to the schedule, and ends the jobs that it has superseded in the catalog.
    private func add(_ record: JobRecord, saved: Int? = nil, superseding superseded: [String]) -> Bool {
        defer { measure.yield() }
        enterZones(of: record.times)
        return change {
            $0.add(record, saved: saved, superseding: record.supersedes ? superseded : nil, at: $1) ?? []
        }
    }

    /// Enters the rules of the zones that the times name.
    private func enterZones(of times: JobTimes) {
        guard !times.windows.isEmpty else { return }
        let rules = zones.rules(of: times.windows)
        for window in times.windows where rules[window.zone] == nil {
            logger.error("a job waits for a time zone that the tz database lacks", metadata: ["zone": "\(window.zone)"])
        }
        state.withLock { $0.schedule.enter(rules) }
    }

    /// Adds a new job; it is durable when this returns. If it supersedes, the unfinished jobs of its queue end in the
    /// same transaction. Throws `.overloaded` if all jobs would have too many unfinished items.
    ///
    /// - Parameter isSpooled: Whether the items are in the spool file of the job. Its items are saved to the catalog while it
    ///   runs.
    func submit(
        _ record: JobRecord, idempotency: IdempotencyKey?, isSpooled: Bool = false
    ) async throws(CacheError) -> JobInsertion {
        state.withLock { $0.submissions += 1 }
        defer { state.withLock { $0.submissions -= 1 } }
        // The mutex excludes saves, `loadUnfinishedJobs` and other submissions between the catalog's change and the
        // schedule's. Otherwise:
        // 1. A save could overwrite the end of a superseded job in the catalog with its outdated state.
        // 2. `loadUnfinishedJobs` could schedule a job in the state that it had before it ended.
        // 3. A later job of the queue would not find this one in the schedule, and both would run.
        return try await saving.pass { () async throws(CacheError) in
            try await load()
            do throws(CacheError) {
                try checkRoom(for: record)
            } catch {
                // A repeated request adds no items.
                guard let idempotency, let earlier = try await catalog.insertion(with: idempotency) else { throw error }
                return earlier
            }
            let stored = isSpooled ? record.withoutItems : record
            let insertion = try await catalog.insertJob(stored, idempotency: idempotency)
            if case .inserted(let superseded) = insertion {
                _ = add(record, saved: stored.items.count, superseding: superseded)
                if isSpooled { saveSoon() }
            }
            return insertion
        }
    }

    /// Requeues a finished job as `again` changes it, in the same manner as `submit`. If `again` returns nil the job
    /// stays as it is.
    ///
    /// Throws `.conflict` if the job is not finished, `.overloaded` as `submit`, and `.notFound` if it is unknown.
    func resubmit(_ id: String, as again: @Sendable (JobRecord) -> JobRecord?) async throws(CacheError) {
        try await saveChanges()
        try await saving.pass { () async throws(CacheError) in
            guard let finished = try await catalog.job(id) else { throw Self.unknown(id) }
            guard finished.state.isFinished, look({ !$0.contains(id) }) else {
                throw CacheError(.conflict, "The job is not finished.")
            }
            guard let record = again(finished) else { return }
            try await load()
            try checkRoom(for: record)
            let superseded = try await catalog.requeueJob(record, at: wallClock.now())
            _ = add(record, superseding: superseded)
        }
    }

    /// Throws `.overloaded` if all jobs would have too many unfinished items with this one.
    func checkRoom(for record: JobRecord) throws(CacheError) {
        let limits = limits
        try state.withLock { state throws(CacheError) in try state.schedule.checkRoom(for: record, within: limits) }
    }

    /// Whether the unfinished jobs of the catalog are in the schedule.
    var isLoaded: Bool { state.withLock(\.isLoaded) }

    /// Adds the unfinished jobs of the catalog to the schedule.
    func loadUnfinishedJobs() async throws(CacheError) {
        try await saving.pass { () async throws(CacheError) in try await load() }
    }

    /// Adds the unfinished jobs of the catalog once. A new job must not precede them: their items count.
    private func load() async throws(CacheError) {
        guard !state.withLock(\.isLoaded) else { return }
        try spools.removeAll(except: Set(try await catalog.spooledJobs()))
        for var job in try await catalog.unfinishedJobs() {
            let saved = job.items.count
            if let error = complete(&job) {
                try await end(job, because: error)
            } else {
                _ = add(job, saved: saved)
            }
        }
        try await saveFinishedSpools()
        state.withLock { $0.isLoaded = true }
    }

    /// Reports the outcome of a run to the schedule, and drops the claims of jobs that are finished.
    func ended(_ run: Run, _ outcome: PrefetchSchedule.Outcome) {
        let limits = limits
        change { $0.ended(run, outcome, within: limits, at: $1) }
        state.withLock { $0.stops[run] = nil }
        releaseFinishedClaims()
    }

    /// The rate limiter that all items of a job share; nil if the job has no limit.
    func pace(of job: String) -> PrefetchRateLimiter? {
        let (clock, uptime) = (clock, uptime)
        return state.withLock { state in
            guard let limit = state.schedule.terms(of: job)?.maxBytesPerSecond else {
                state.paces[job] = nil
                return nil
            }
            if let pace = state.paces[job] { return pace }
            let pace = PrefetchRateLimiter(bytesPerSecond: limit, clock: clock, uptime: uptime)
            state.paces[job] = pace
            return pace
        }
    }

    /// The present state of a job: from the schedule while it is unfinished, else from the catalog or the fleet. Throws
    /// `.notFound`, and `.fleetUnavailable` for a job that this node does not know.
    func job(_ id: String) async throws(CacheError) -> JobSnapshot {
        if let present = scheduled(id) { return present }
        if let stored = try await catalog.jobSnapshot(id) {
            if isLoaded || stored.record.state.isFinished { return stored }
            // The catalog lacks the cause and the end of a wait.
            try await loadUnfinishedJobs()
            return try await job(id)
        }
        guard let job = try await fleet?.snapshot(id) else { throw Self.unknown(id) }
        return job
    }

    /// The job's state in the schedule; nil if it is not scheduled.
    func scheduled(_ id: String) -> JobSnapshot? {
        let now = moment
        guard var job = look({ $0.progress(of: id, at: now) }) else { return nil }
        if let fleet, fleet.runs(id) { job.place = JobSnapshot.Place(node: fleet.store.node) }
        return job
    }

    /// Takes over the terms of a scheduled job, and its rate limit.
    ///
    /// - Parameter revision: The terms that these ones replace; nil: any. False is returned if the job has others, is
    ///   finished, or is not scheduled.
    @discardableResult
    func apply(_ terms: JobTerms, of job: String, over revision: Int64? = nil) -> Bool {
        enterZones(of: terms.times)
        guard change({ $0.apply(terms, of: job, over: revision, at: $1) ?? [] }) else { return false }
        if let limit = terms.maxBytesPerSecond { state.withLock({ $0.paces[job] })?.change(to: limit) }
        return true
    }

    // MARK: Items of other nodes

    /// The number of items that run or wait here for other nodes.
    private static let mostGuests = 1000

    /// Adds a job of one item that another node runs here. `ended` receives the outcome of its run, after which the job is
    /// gone. Throws `.overloaded`.
    func addGuest(
        _ record: JobRecord, ended: @escaping GuestEnd
    ) throws(CacheError) {
        let isFull = state.withLock { state in
            guard state.guests.count < Self.mostGuests else { return true }
            state.guests[record.id] = ended
            return false
        }
        guard !isFull else { throw CacheError(.overloaded, "Too many items of other nodes run here: repeat later.") }
        add(record)
    }

    /// Removes the job of another node, and stops its run.
    func removeGuest(_ id: String) {
        change { $0.remove(id, at: $1) }
        state.withLock { $0.guests[id] = nil }
        releaseFinishedClaims()
    }

    /// Reports the outcome of a run to the node that it was made for. Returns false if it is one of this node.
    func reportToNode(_ run: Run, _ outcome: PrefetchSchedule.Outcome) -> Bool {
        guard let ended = state.withLock({ $0.guests[run.job] }) else { return false }
        let item = look { $0.items(of: run.job, after: -1, atMost: 1) }?.first
        // The job is gone before its run is, so that the item is not queued again.
        change { $0.remove(run.job, at: $1) }
        ended(outcome, item)
        return true
    }

    /// Throws `.tokenScope` unless the item is inside the limits of the token that made the job. Every use of an item asks
    /// this: a playlist can name files that the token must not access.
    func check(_ item: JobItemRecord, of job: String, in cache: AssetCache) async throws(CacheError) {
        try await look { $0.owner(of: job) }?.check(item.reference) { id async throws(CacheError) in
            try await cache.resolver.key(of: id)
        }
    }

    /// The error for a change of a finished job.
    static let finished = CacheError(.conflict, "The job has ended: retry it, or create another one.")

    /// The error for a job that does not exist.
    static func unknown(_ id: String) -> CacheError { CacheError(.notFound, "There is no job \(id).") }

    // MARK: Saving

    /// The number of items in one transaction. Between two transactions of a large job, others can write.
    private static let savedAtOnce = 200

    /// Makes the next save include the present changes. Many calls cause one save.
    func saveSoon() { save.yield() }

    /// Saves all changes made before the call. They are then durable, and finished jobs leave the schedule. After `limit`
    /// no further transaction begins.
    ///
    /// Saves are serialized, so that an older state of a job never overwrites a newer one.
    func saveChanges(within limit: Duration? = nil) async throws(CacheError) {
        let begin = uptime()
        var isMore = true
        while isMore, limit.map({ uptime() - begin < $0 }) ?? true {
            isMore = try await saving.pass { () async throws(CacheError) in
                // While the schedule has them: a later process would not know that an end was not published.
                await publishChanges(ofEnds: true)
                let changes = state.withLock { $0.schedule.takeChanges(atMost: Self.savedAtOnce) }
                do throws(CacheError) {
                    // Jobs that the catalog does not have are those of the fleet and of other nodes.
                    if !changes.isEmpty { try await catalog.update(changes) }
                    fleet?.note(changes) { self.scheduled($0) }
                } catch {
                    // The changes are merged back, under the changes made meanwhile.
                    state.withLock { $0.schedule.restore(changes) }
                    throw error
                }
                removeSpools(of: changes)
                state.withLock { state in
                    state.schedule.forgetFinished()
                    for job in state.paces.keys where !state.schedule.contains(job) { state.paces[job] = nil }
                }
                releaseFinishedClaims()
                return changes.reduce(0) { $0 + max(1, $1.items.count) } >= Self.savedAtOnce
            }
        }
    }

    /// Saves the end of a cancelled job before its items: it is durable when this returns.
    func saveEnd(of job: String) async throws(CacheError) {
        guard look({ $0.endedEarly(job) }) != nil, fleet?.runs(job) != true else { return try await saveChanges() }
        try await saving.pass { () async throws(CacheError) in
            if let record = look({ $0.endedEarly(job) }) { try await catalog.updateJob(record) }
        }
        releaseFinishedClaims()
        saveSoon()
    }

    /// Saves changed terms of a job: they are durable when this returns.
    func saveTerms(of job: String) async throws(CacheError) {
        guard fleet?.runs(job) != true else { return try await saveChanges() }
        let isSaved = try await saving.pass { () async throws(CacheError) in
            // A job that has ended meanwhile is saved after its items.
            guard let record = look({ $0.record(of: job) }), !record.state.isFinished else { return false }
            return try await catalog.updateJob(record)
        }
        if isSaved { saveSoon() } else { try await saveChanges() }
    }

    // MARK: Observing

    /// Publishes the changes of jobs since the last call, one event for each job.
    ///
    /// - Parameter onlyEnds: Only those of jobs that have ended and are scheduled.
    func publishChanges(ofEnds onlyEnds: Bool = false) async {
        let ids = state.withLock { state in
            state.changed.filter { !onlyEnds || state.schedule.record(of: $0)?.state.isFinished ?? false }
        }
        for id in ids {
            state.withLock { _ = $0.changed.remove(id) }
            // A job that cannot be read has no event: the client's next request reports the error.
            guard var job = try? await job(id) else {
                state.withLock { _ = $0.own.remove(id) }
                continue
            }
            let (isAtRisk, isFinished) = (job.forecast.isAtRisk, job.record.state.isFinished)
            let (last, isOwn) = state.withLock { state in
                defer {
                    state.published[id] = isFinished ? nil : (job.record.state, isAtRisk)
                    if isFinished || !state.schedule.contains(id) { state.own.remove(id) }
                }
                return (state.published[id], state.own.contains(id))
            }
            job.isOfOtherNode = !isOwn
            if isOwn, isFinished { latencies.jobEnded(job.tally) }
            if isAtRisk, last?.isAtRisk != true { events.publish(.job(job, .atRisk)) }
            events.publish(.job(job, last?.state != job.record.state ? .state : .progress))
        }
    }

    /// Jobs that this node does not run have changed.
    func signal(_ jobs: some Sequence<String>) {
        let signals = state.withLock { state in
            jobs.flatMap { job in
                state.changed.insert(job)
                return state.signals[job].map { Array($0.values) } ?? []
            }
        }
        for signal in signals { signal.yield() }
    }

    /// A signal that fires when the job has changed, and the token to cancel it with `unwatch`.
    func watch(_ job: String) -> (signal: AsyncStream<Void>, token: UInt64) {
        let (signal, notify) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = state.withLock { state in
            state.lastToken += 1
            state.signals[job, default: [:]][state.lastToken] = notify
            return state.lastToken
        }
        return (signal, token)
    }

    /// Ends a signal of `watch`.
    func unwatch(_ job: String, _ token: UInt64) {
        state.withLock { state in
            state.signals[job]?[token] = nil
            if state.signals[job]?.isEmpty == true { state.signals[job] = nil }
        }
    }
}

extension PrefetchQueue.State {
    /// Converts an action of the schedule to steps with the handles that perform them.
    fileprivate mutating func steps(for action: PrefetchSchedule.Action) -> [PrefetchQueue.Step] {
        switch action {
        case .start(let run):
            let (stream, stop) = AsyncStream<Never>.makeStream()
            stops[run] = stop
            return [.start(PrefetchQueue.Start(run: run, stop: stream))]
        case .stop(let run): return stops[run].map { [.stop($0)] } ?? []
        case .changed(let job):
            guard guests[job] == nil else { return [] }
            changed.insert(job)
            own.insert(job)
            return signals[job]?.values.map { .notify($0) } ?? []
        }
    }
}
