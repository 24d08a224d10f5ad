import CacheCore
import CacheStore
import Logging
import Synchronization

/// The only owner of the order of prefetch: puts what happens into the schedule, and carries out what it answers.
final class PrefetchQueue: Sendable {
    typealias Run = PrefetchSchedule.Run
    typealias Moment = PrefetchSchedule.Moment

    /// A run to be begun, and the stream whose end stops it.
    struct Start: Sendable {
        let run: Run
        let stop: AsyncStream<Never>
    }

    fileprivate struct State {
        var schedule: PrefetchSchedule
        var stops: [Run: AsyncStream<Never>.Continuation] = [:]
        var paces: [String: PrefetchPace] = [:]
        var bells: [String: [UInt64: AsyncStream<Void>.Continuation]] = [:]
        var lastToken: UInt64 = 0
    }

    /// What is left to do outside the lock.
    fileprivate enum Step: Sendable {
        case start(Start)
        case stop(AsyncStream<Never>.Continuation)
        case ring(AsyncStream<Void>.Continuation)

        var isStart: Bool { if case .start = self { true } else { false } }
    }

    let catalog: Catalog
    let claims: PrefetchClaims
    let clock: any Clock<Duration>
    let wallClock: any WallClock
    let logger: Logger
    let uptime: @Sendable () -> Duration
    /// Runs to be begun; `run` takes them.
    let starts: AsyncStream<Start>
    private let begin: AsyncStream<Start>.Continuation
    /// Yields when there may be queued items of unknown size.
    let measuring: AsyncStream<Void>
    private let measure: AsyncStream<Void>.Continuation
    let rooms = Mutex<[String: PrefetchRoom]>([:])
    private let state: Mutex<State>
    private let saving = PrefetchTurn()

    init(
        catalog: Catalog, claims: PrefetchClaims, concurrency: Int, clock: any Clock<Duration>,
        wallClock: any WallClock, logger: Logger
    ) {
        self.catalog = catalog
        self.claims = claims
        self.clock = clock
        self.wallClock = wallClock
        self.logger = logger
        uptime = clock.stopwatch()
        (starts, begin) = AsyncStream.makeStream()
        (measuring, measure) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(2))
        state = Mutex(State(schedule: PrefetchSchedule(concurrency: concurrency)))
    }

    var moment: Moment { Moment(wall: wallClock.now(), uptime: uptime()) }

    // MARK: The schedule

    func look<Value: Sendable>(_ body: (borrowing PrefetchSchedule) -> Value) -> Value {
        state.withLock { body($0.schedule) }
    }

    /// The next queued item of unknown size; each one is answered once.
    func takeUnmeasured() -> (job: String, item: JobItemRecord)? { state.withLock { $0.schedule.takeUnmeasured() } }

    /// Changes the schedule, and carries out what it answers; answers whether that was anything.
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
            case .ring(let bell): bell.yield()
            }
        }
        if steps.contains(where: \.isStart) { measure.yield() }
        return hasChanged
    }

    /// Takes a job in as it was; false where it is there already.
    func add(_ record: JobRecord) -> Bool {
        defer { measure.yield() }
        return change { $0.add(record, at: $1) ?? [] }
    }

    /// Takes a job in that begins, and has ended the named ones in the catalog.
    private func add(_ record: JobRecord, superseding superseded: [String]) -> Bool {
        defer { measure.yield() }
        return change { $0.add(record, superseding: record.supersedes ? superseded : nil, at: $1) ?? [] }
    }

    /// Takes a new job on; it is durable when this returns. Where it supersedes, the unfinished jobs of its queue end in
    /// the same step.
    func submit(_ record: JobRecord, idempotency: IdempotencyKey?) async throws(CacheError) -> JobInsertion {
        // In turn with `save`, `takeUp` and other submissions, for between the catalog's step and the schedule's
        // 1. a save would write over the catalog's end of a job what the schedule still takes for its state,
        // 2. a take-up would schedule a job as it was read before it ended,
        // 3. a later job of the queue would not find this one in the schedule, and both would run.
        try await saving.pass { () async throws(CacheError) in
            let insertion = try await catalog.insertJob(record, idempotency: idempotency)
            if case .inserted(let superseded) = insertion { _ = add(record, superseding: superseded) }
            return insertion
        }
    }

    /// Takes a finished job on again, as `again` makes it of what it was; likewise. Nil from it leaves the job as it is.
    ///
    /// Throws `.conflict` where the job is not finished, `.notFound` where it is not known.
    func resubmit(_ id: String, as again: @Sendable (JobRecord) -> JobRecord?) async throws(CacheError) {
        try await save()
        try await saving.pass { () async throws(CacheError) in
            guard let finished = try await catalog.job(id) else { throw Self.unknown(id) }
            guard finished.state.isFinished, look({ !$0.contains(id) }) else {
                throw CacheError(.conflict, "The job is not finished.")
            }
            guard let record = again(finished) else { return }
            let superseded = try await catalog.requeueJob(record, at: wallClock.now())
            _ = add(record, superseding: superseded)
        }
    }

    /// Takes in the unfinished jobs that the catalog has.
    func takeUp() async throws(CacheError) {
        try await saving.pass { () async throws(CacheError) in
            for job in try await catalog.unfinishedJobs() { _ = add(job) }
        }
    }

    /// The run is over.
    func ended(_ run: Run, _ outcome: PrefetchSchedule.Outcome) {
        change { $0.ended(run, outcome, at: $1) }
        state.withLock { $0.stops[run] = nil }
        closeRooms()
    }

    /// The pace that all items of a job keep; nil where it has no limit.
    func pace(of job: String) -> PrefetchPace? {
        let (clock, uptime, now) = (clock, uptime, moment)
        return state.withLock { state in
            if let pace = state.paces[job] { return pace }
            guard let limit = state.schedule.standing(of: job, at: now)?.record.maxBytesPerSecond else { return nil }
            let pace = PrefetchPace(bytesPerSecond: limit, clock: clock, uptime: uptime)
            state.paces[job] = pace
            return pace
        }
    }

    /// The job as it is now: from the schedule while it is not finished, else from the catalog. Throws `.notFound`.
    func job(_ id: String) async throws(CacheError) -> JobSnapshot {
        if let present = scheduled(id) { return present }
        guard let summary = try await catalog.jobSummary(id) else { throw Self.unknown(id) }
        return JobSnapshot(summary)
    }

    func scheduled(_ id: String) -> JobSnapshot? {
        let now = moment
        return look { $0.standing(of: id, at: now) }.map { JobSnapshot($0) }
    }

    static func unknown(_ id: String) -> CacheError { CacheError(.notFound, "There is no job \(id).") }

    // MARK: Writing down

    /// Writes down all that has changed up to now; afterwards it is durable, and finished jobs are the catalog's alone.
    ///
    /// One at a time: an older state of a job must not be written over a newer one.
    func save() async throws(CacheError) {
        try await saving.pass { () async throws(CacheError) in
            var changes = state.withLock { $0.schedule.takeChanges() }[...]
            do throws(CacheError) {
                while let change = changes.first {
                    // Items first: a job that says it is finished has no unfinished items, whenever the power goes.
                    if !change.items.isEmpty { try await catalog.updateItems(change.items, ofJob: change.job.id) }
                    try await catalog.updateJob(change.job)
                    changes.removeFirst()
                }
            } catch {
                let unsaved = Array(changes)
                state.withLock { $0.schedule.restore(unsaved) }
                throw error
            }
            state.withLock { state in
                state.schedule.forgetFinished()
                for job in state.paces.keys where !state.schedule.contains(job) { state.paces[job] = nil }
            }
            closeRooms()
        }
    }

    // MARK: Watching

    /// A bell that rings when there is something new to tell of the job, and the token to give it back with.
    func watch(_ job: String) -> (bell: AsyncStream<Void>, token: UInt64) {
        let (bell, ring) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = state.withLock { state in
            state.lastToken += 1
            state.bells[job, default: [:]][state.lastToken] = ring
            return state.lastToken
        }
        return (bell, token)
    }

    func unwatch(_ job: String, _ token: UInt64) {
        state.withLock { state in
            state.bells[job]?[token] = nil
            if state.bells[job]?.isEmpty == true { state.bells[job] = nil }
        }
    }
}

extension PrefetchQueue.State {
    fileprivate mutating func steps(for action: PrefetchSchedule.Action) -> [PrefetchQueue.Step] {
        switch action {
        case .start(let run):
            let (stream, stop) = AsyncStream<Never>.makeStream()
            stops[run] = stop
            return [.start(PrefetchQueue.Start(run: run, stop: stream))]
        case .stop(let run): return stops[run].map { [.stop($0)] } ?? []
        case .changed(let job): return bells[job]?.values.map { .ring($0) } ?? []
        }
    }
}
