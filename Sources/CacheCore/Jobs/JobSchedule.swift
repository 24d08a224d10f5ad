/// A job that is started at recurring instants.
package struct JobSchedule: Hashable, Sendable {
    package var name: String
    package var `repeat`: JobRepeat
    package var isEnabled: Bool
    /// The deadline of each job, from its start; nil: none.
    package var deadline: Duration?
    /// The `CreateJobRequest` document, as JSON.
    package var job: String
    /// The token that wrote the schedule; nil: the service needed none.
    package var owner: TokenOwner?
    package var createdAt: Timestamp
    /// The time since which the schedule has its repetition and is enabled. Intervals count from it, and instants before
    /// it are not missed.
    package var begunAt: Timestamp

    package init(
        name: String, repeat: JobRepeat, isEnabled: Bool, deadline: Duration?, job: String, owner: TokenOwner?,
        createdAt: Timestamp
    ) {
        self.name = name
        self.repeat = `repeat`
        self.isEnabled = isEnabled
        self.deadline = deadline
        self.job = job
        self.owner = owner
        self.createdAt = createdAt
        begunAt = createdAt
    }

    /// The schedule that replaces `earlier`.
    package func replacing(_ earlier: JobSchedule) -> JobSchedule {
        var schedule = self
        schedule.createdAt = earlier.createdAt
        if earlier.repeat == `repeat`, earlier.isEnabled == isEnabled { schedule.begunAt = earlier.begunAt }
        return schedule
    }

    /// Throws `.invalidField("name")` for another form of name.
    package static func check(name: String) throws(CacheError) {
        guard FieldText.isName(name) else {
            throw .invalid(
                "name", "The name of a schedule has 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-'.")
        }
    }

    /// The instant for which a job is to be started now; nil: none. Of several missed instants it is the last one.
    ///
    /// - Parameters:
    ///   - last: The last instant that was settled; nil: none.
    ///   - rules: The rules of the zone of the repetition.
    package func due(at now: Timestamp, after last: Timestamp?, _ rules: ZoneRules) -> Timestamp? {
        guard isEnabled else { return nil }
        let instant = `repeat`.neighbours(of: now, from: begunAt, rules).last
        return settled(last, at: now).map { instant > $0 } ?? true ? instant : nil
    }

    /// The next instant; nil: the schedule is not enabled.
    package func next(at now: Timestamp, after last: Timestamp?, _ rules: ZoneRules) -> Timestamp? {
        guard isEnabled else { return nil }
        if let due = due(at: now, after: last, rules) { return due }
        return `repeat`.neighbours(of: max(now, settled(last, at: now) ?? now), from: begunAt, rules).next
    }

    /// The instant after which the schedule starts jobs; nil: all recorded ones are of a clock that was wrong, and would
    /// stop the schedule for long.
    private func settled(_ last: Timestamp?, at now: Timestamp) -> Timestamp? {
        // The first instant of an interval is the begin itself.
        let begin = if case .every = `repeat` { begunAt - .seconds(1) } else { begunAt }
        return [begin, last].compactMap(\.self).filter { !`repeat`.isImpossible($0, at: now) }.max()
    }
}

/// The last start of a schedule.
package struct ScheduledRun: Hashable, Codable, Sendable {
    package enum Result: String, Hashable, Codable, CaseIterable, Sendable {
        case started
        /// The job of the run before is unfinished.
        case skipped
        case failed
    }

    /// The instant that the run was made for.
    package var dueAt: Timestamp
    /// The time of the run.
    package var at: Timestamp
    package var result: Result
    package var error: RecordedError?
    /// The last job that was started.
    package var jobID: String?
    /// The last instant that needs no further run; ``dueAt``, unless the run is repeated.
    package var settledAt: Timestamp?

    package init(
        dueAt: Timestamp, at: Timestamp, result: Result, error: RecordedError? = nil, jobID: String?,
        settledAt: Timestamp?
    ) {
        self.dueAt = dueAt
        self.at = at
        self.result = result
        self.error = error
        self.jobID = jobID
        self.settledAt = settledAt
    }
}

/// A schedule, its last run, and its revision.
package struct StoredSchedule: Hashable, Sendable {
    package var schedule: JobSchedule
    /// Nil: it has not run yet.
    package var run: ScheduledRun?
    package var revision: Int64

    package init(schedule: JobSchedule, run: ScheduledRun?, revision: Int64) {
        self.schedule = schedule
        self.run = run
        self.revision = revision
    }
}
