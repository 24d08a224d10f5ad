package import CacheCore
import CacheStore
import Logging

/// The stored schedules: those of this node in the catalog, or those of a fleet in etcd.
protocol ScheduleStore: Sendable {
    /// The interval at which changes of other processes are read; nil: there are none.
    var readInterval: Duration? { get }
    /// All schedules; `known`: those that were read before. Throws `.fleetUnavailable`.
    func read(_ known: [String: StoredSchedule]) async throws(CacheError) -> [String: StoredSchedule]
    /// Returns the new revision. Throws `.preconditionFailed` if the precondition does not hold.
    func save(_ schedule: JobSchedule, if precondition: Precondition) async throws(CacheError) -> Int64
    /// Throws `.preconditionFailed` if the precondition does not hold.
    func delete(_ name: String, if precondition: Precondition) async throws(CacheError)
    func save(_ run: ScheduledRun, of schedule: String) async throws(CacheError)
}

/// A schedule with what is known at present.
package struct ScheduleSnapshot: Sendable {
    package var stored: StoredSchedule
    /// The next instant; nil: there is none.
    package var nextRunAt: Timestamp?
    /// The reason why the enabled schedule starts no jobs at present; nil: it does.
    package var suspension: String?
}

/// Schedules, which start prefetch jobs at recurring instants. In a fleet any node starts a job: the idempotency key of
/// schedule and instant lets the fleet make it once.
package final class JobSchedules: Sendable {
    /// What the API knows of the documents and the tokens of schedules.
    package struct Rights: Sendable {
        /// The token with its present limits; nil: it may not make jobs any more. Nil stays nil.
        package var present: @Sendable (TokenOwner) -> TokenOwner?
        /// Reads a `CreateJobRequest` document.
        package var request: @Sendable (String) throws(CacheError) -> CreateJobRequest

        package init(
            present: @escaping @Sendable (TokenOwner) -> TokenOwner?,
            request: @escaping @Sendable (String) throws(CacheError) -> CreateJobRequest
        ) {
            (self.present, self.request) = (present, request)
        }
    }

    struct State: Sendable {
        var schedules: [String: StoredSchedule] = [:]
        /// The uptime of the last reading; nil: none.
        var readAt: Duration?
        /// Nil: the API does not run yet, so that no schedule runs.
        var rights: Rights?
        /// The uptime before which a failed run is not repeated.
        var pauses: [String: Duration] = [:]
        /// Runs since the start of the service.
        var figures = ScheduleFigures()
    }

    /// The largest number of schedules, and the largest size of a document and of all together in bytes.
    private static let most = 500
    package static let mostBytes = 512 << 10
    private static let mostBytesOfAll = 32 << 20
    private static let interval = Duration.seconds(1)
    /// The time until a failed run is repeated.
    private static let pause = Duration.seconds(10)

    let jobs: PrefetchJobs
    /// Instants are those of the system's clock.
    private let clock: any WallClock
    let uptime: @Sendable () -> Duration
    let logger: Logger
    private let store: any ScheduleStore
    /// One reading or change of the schedules at a time.
    private let turn = AsyncMutex()
    /// Guards the state.
    private let state = OrderedMutex(.leaf, State())

    init(_ jobs: PrefetchJobs, fleet: FleetMember?, of context: EngineContext) {
        self.jobs = jobs
        store =
            fleet.map { FleetSchedules(desired: $0.desired, logger: context.logger) }
            ?? CatalogSchedules(catalog: context.store.catalog, logger: context.logger)
        (clock, uptime, logger) = (jobs.prefetch.civilClock, context.uptime, context.logger)
    }

    /// Lets schedules run from now on.
    package func begin(with rights: Rights) { state.withLock { $0.rights = rights } }

    var figures: ScheduleFigures {
        state.withLock { state in
            var figures = state.figures
            figures.count = state.schedules.count
            return figures
        }
    }

    // MARK: Reading

    /// All schedules in the order of their names.
    package func all() async throws(CacheError) -> [ScheduleSnapshot] {
        try await read()
        let now = clock.now()
        let (schedules, rights) = state.withLock { ($0.schedules.values, $0.rights) }
        return schedules.sorted { $0.schedule.name < $1.schedule.name }.map { snapshot($0, rights, at: now) }
    }

    /// Throws `.notFound`.
    package func schedule(_ name: String) async throws(CacheError) -> ScheduleSnapshot {
        try await read()
        let (found, rights) = state.withLock { ($0.schedules[name], $0.rights) }
        guard let found else { throw Self.unknown(name) }
        return snapshot(found, rights, at: clock.now())
    }

    private static func unknown(_ name: String) -> CacheError {
        CacheError(.notFound, "There is no schedule \(name.prefix(64)).")
    }

    private func read() async throws(CacheError) {
        try await turn.pass { () async throws(CacheError) in try await readInTurn() }
    }

    private func readInTurn() async throws(CacheError) {
        let known = state.withLock(\.schedules)
        let schedules = try await store.read(known)
        let zones = Set(schedules.values.compactMap(\.schedule.repeat.time?.zone))
        // The rules of new zones are read from files.
        try await jobs.resolver.context.diskThreads.run { [zones = zones, table = jobs.prefetch.zones] in
            for zone in zones { _ = table.rules(of: zone) }
        }
        let now = uptime()
        state.withLock { state in
            (state.schedules, state.readAt) = (schedules, now)
            state.pauses = state.pauses.filter { schedules[$0.key] != nil }
        }
    }

    /// The rules of the zone of a schedule; nil: the tz database lacks it.
    private func rules(of schedule: JobSchedule) -> ZoneRules? {
        guard let zone = schedule.repeat.time?.zone else { return .utc }
        return jobs.prefetch.zones.rules(of: zone)
    }

    private func snapshot(_ stored: StoredSchedule, _ rights: Rights?, at now: Timestamp) -> ScheduleSnapshot {
        let schedule = stored.schedule
        var snapshot = ScheduleSnapshot(stored: stored)
        snapshot.suspension = suspension(of: schedule, rights)
        if snapshot.suspension == nil, let rules = rules(of: schedule) {
            snapshot.nextRunAt = schedule.next(at: now, after: stored.run?.settledAt, rules)
        }
        return snapshot
    }

    private func suspension(of schedule: JobSchedule, _ rights: Rights?) -> String? {
        guard schedule.isEnabled else { return nil }
        if rules(of: schedule) == nil, let zone = schedule.repeat.time?.zone {
            return LocalTime.unknownZone(zone, "at").message
        }
        guard let owner = schedule.owner, let rights, rights.present(owner) == nil else { return nil }
        return
            "The token \(owner.id), which wrote the schedule, may not make jobs any more: write it with another token."
    }

    // MARK: Changes

    /// Creates or replaces a schedule; it is durable when this returns.
    ///
    /// Throws `.preconditionFailed`, `.invalidField` for an unknown zone or an invalid job, `.conflict` if there are too many
    /// schedules, and `.fleetUnavailable`.
    package func save(
        _ schedule: JobSchedule, if condition: (StoredSchedule?) throws(CacheError) -> Precondition
    ) async throws(CacheError) -> (schedule: ScheduleSnapshot, isNew: Bool) {
        try await checkZone(of: schedule)
        let isNew = try await turn.pass { () async throws(CacheError) in
            try await readInTurn()
            let present = state.withLock { $0.schedules[schedule.name] }
            let precondition = try condition(present)
            try checkRoom(for: schedule)
            let schedule = present.map { schedule.replacing($0.schedule) } ?? schedule
            let revision = try await store.save(schedule, if: precondition)
            state.withLock { state in
                state.schedules[schedule.name] = StoredSchedule(
                    schedule: schedule, run: present?.run, revision: revision)
                state.pauses[schedule.name] = nil
            }
            return present == nil
        }
        return (try await self.schedule(schedule.name), isNew)
    }

    /// Throws `.notFound`, `.preconditionFailed`, and `.fleetUnavailable`.
    package func delete(
        _ name: String, if condition: (StoredSchedule) throws(CacheError) -> Precondition
    ) async throws(CacheError) {
        try await turn.pass { () async throws(CacheError) in
            try await readInTurn()
            guard let present = state.withLock({ $0.schedules[name] }) else { throw Self.unknown(name) }
            try await store.delete(name, if: try condition(present))
            state.withLock { $0.schedules[name] = nil }
        }
    }

    private func checkZone(of schedule: JobSchedule) async throws(CacheError) {
        guard let zone = schedule.repeat.time?.zone else { return }
        let isKnown = try await jobs.resolver.context.diskThreads.run { [table = jobs.prefetch.zones] in
            table.rules(of: zone) != nil
        }
        guard isKnown else { throw LocalTime.unknownZone(zone, "at") }
    }

    private func checkRoom(for schedule: JobSchedule) throws(CacheError) {
        let others = state.withLock { $0.schedules.values.filter { $0.schedule.name != schedule.name } }
        guard others.count < Self.most else {
            throw CacheError(.conflict, "There are \(others.count) schedules, the largest number: delete one first.")
        }
        let bytes = others.reduce(schedule.job.utf8.count) { $0 + $1.schedule.job.utf8.count }
        guard schedule.job.utf8.count <= Self.mostBytes, bytes <= Self.mostBytesOfAll else {
            throw CacheError(
                .payloadTooLarge,
                "The job of a schedule has at most \(Self.mostBytes) bytes, all together \(Self.mostBytesOfAll): use lists in place of items."
            )
        }
    }

    // MARK: Runs

    /// Starts the jobs that are due, until cancellation.
    func run(clock: any Clock<Duration>) async {
        repeat {
            do throws(CacheError) {
                try await startDue()
            } catch {
                // In a fleet, etcd may be away; the node reports that itself.
                guard error.code != .cancelled else { return }
                logger.debug("schedules cannot be read", metadata: ["error": "\(error)"])
            }
        } while (try? await clock.sleep(for: Self.interval)) != nil
    }

    private func startDue() async throws(CacheError) {
        let (rights, readAt) = state.withLock { ($0.rights, $0.readAt) }
        guard let rights else { return }
        let (now, instant) = (clock.now(), uptime())
        if readAt.map({ last in store.readInterval.map { instant - last >= $0 } ?? false }) ?? true { try await read() }
        let (schedules, pauses) = state.withLock { ($0.schedules.values, $0.pauses) }
        let due = schedules.filter { stored in
            guard pauses[stored.schedule.name] ?? .zero <= instant, let rules = rules(of: stored.schedule) else {
                return false
            }
            return stored.schedule.due(at: now, after: stored.run?.settledAt, rules) != nil
        }.map(\.schedule.name)
        guard !due.isEmpty else { return }
        // Another node of a fleet may have made the run, or changed the schedule.
        try await read()
        for name in due.sorted() {
            guard let stored = state.withLock({ $0.schedules[name] }), let rules = rules(of: stored.schedule),
                let dueAt = stored.schedule.due(at: now, after: stored.run?.settledAt, rules)
            else { continue }
            try await start(stored, for: dueAt, rights)
        }
    }

    /// Starts the job of one instant, and records the run.
    private func start(_ stored: StoredSchedule, for dueAt: Timestamp, _ rights: Rights) async throws(CacheError) {
        guard suspension(of: stored.schedule, rights) == nil else { return }
        let name = stored.schedule.name
        var run = ScheduledRun(
            dueAt: dueAt, at: clock.now(), result: .started, jobID: stored.run?.jobID, settledAt: dueAt)
        do throws(CacheError) {
            let order = try order(of: stored.schedule, at: run.at, rights)
            if let last = run.jobID, !order.supersedes, try await isUnfinished(last) {
                run.result = .skipped
            } else {
                let key = "schedule \(name) \(dueAt.seconds)"
                run.jobID = try await jobs.submit(order, idempotencyKey: key).record.id
            }
        } catch {
            if error.code == .cancelled || error.code == .shuttingDown { throw error }
            (run.result, run.error) = (.failed, RecordedError(error))
            if Self.canPass(error.code) { run.settledAt = stored.run?.settledAt }
        }
        // In turn: a reading in between would write back the schedule without this run.
        try await turn.pass { [run] () async throws(CacheError) in
            note(run, of: name, after: stored.run)
            try await store.save(run, of: name)
        }
    }

    private func note(_ run: ScheduledRun, of name: String, after last: ScheduledRun?) {
        let isRepeated = last?.dueAt == run.dueAt && last?.result == run.result
        let until = uptime() + Self.pause
        state.withLock { state in
            state.schedules[name]?.run = run
            state.pauses[name] = run.settledAt == run.dueAt ? nil : until
            if !isRepeated { state.figures.runs[run.result, default: 0] += 1 }
        }
        guard !isRepeated else { return }
        var metadata: Logger.Metadata = ["schedule": "\(name)", "dueAt": "\(run.dueAt)"]
        if let job = run.jobID { metadata["job"] = "\(job)" }
        if let error = run.error { metadata["error"] = "\(error.code): \(error.message)" }
        switch run.result {
        case .started: logger.info("a schedule has started a job", metadata: metadata)
        case .skipped:
            logger.warning("a run of a schedule is skipped: its last job is unfinished", metadata: metadata)
        case .failed: logger.error("a schedule could not start a job", metadata: metadata)
        }
    }

    /// The request of a run, with the present limits of the token.
    private func order(
        of schedule: JobSchedule, at now: Timestamp, _ rights: Rights
    ) throws(CacheError) -> CreateJobRequest {
        var order = try rights.request(schedule.job)
        order.label = order.label ?? schedule.name
        order.deadlineAt = schedule.deadline.map { now + $0 }
        order.owner = schedule.owner.flatMap(rights.present)
        // Another node of a fleet can have made the run with an earlier form of the schedule.
        order.fingerprint = "schedule"
        return order
    }

    private func isUnfinished(_ job: String) async throws(CacheError) -> Bool {
        do throws(CacheError) {
            return try await !jobs.job(job).record.state.isFinished
        } catch {
            guard error.code == .notFound else { throw error }
            return false
        }
    }

    /// Whether the error of a run can pass without a change of the schedule.
    private static func canPass(_ code: CacheError.Code) -> Bool {
        switch code {
        case .overloaded, .fleetUnavailable, .storageFull, .storageCorrupt, .internal: true
        default: false
        }
    }
}

/// The number of schedules, and their runs since the start of the service.
package struct ScheduleFigures: Hashable, Sendable {
    package var count = 0
    package var runs: [ScheduledRun.Result: Int64] = [:]

    package init() {}
}

/// The schedules of a node without a fleet.
struct CatalogSchedules: ScheduleStore {
    let catalog: Catalog
    let logger: Logger
    var readInterval: Duration? { nil }

    func read(_ known: [String: StoredSchedule]) async throws(CacheError) -> [String: StoredSchedule] {
        guard known.isEmpty else { return known }
        let found = try await catalog.schedules()
        for name in found.damaged {
            logger.error("a schedule cannot be read; write it again", metadata: ["schedule": "\(name)"])
        }
        return Dictionary(uniqueKeysWithValues: found.schedules.map { ($0.schedule.name, $0) })
    }

    func save(_ schedule: JobSchedule, if precondition: Precondition) async throws(CacheError) -> Int64 {
        try await catalog.save(schedule, if: precondition)
    }

    func delete(_ name: String, if precondition: Precondition) async throws(CacheError) {
        try await catalog.deleteSchedule(name, if: precondition)
    }

    func save(_ run: ScheduledRun, of schedule: String) async throws(CacheError) {
        try await catalog.save(run, of: schedule)
    }
}
