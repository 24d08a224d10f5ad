/// Which item of which prefetch job runs next, and how the jobs stand: a value that only decides.
///
/// Jobs go by priority; those of equal priority take turns, the oldest first, and each gives its items in their order. A
/// job that keeps to a rate has one item at work: more would only hold places that others could use.
/// Whoever owns the schedule tells it the time, and carries out the actions it answers with.
package struct PrefetchSchedule: Sendable {
    /// One item at work. An item that is begun again is another run.
    package struct Run: Hashable, Sendable {
        package let job: String
        package let item: Int
        package let number: UInt64
    }

    /// A point in time on both clocks: the wall's for records and deadlines, the running one for durations.
    package struct Moment: Hashable, Sendable {
        package var wall: Timestamp
        /// Since any fixed point.
        package var uptime: Duration

        package init(wall: Timestamp, uptime: Duration) {
            self.wall = wall
            self.uptime = uptime
        }
    }

    package enum Action: Hashable, Sendable {
        case start(Run)
        /// Its job has ended before it.
        case stop(Run)
        /// There is something new to tell of the job.
        case changed(job: String)
    }

    /// How a run came to its end.
    package enum Outcome: Hashable, Sendable {
        /// Every byte the item names is on disk and in the catalog.
        case succeeded
        case failed(RecordedError)
        case timedOut(RecordedError)
        case cancelled(RecordedError)
        /// The asset became another one on the way: to be begun again, a few times.
        case changed(RecordedError)
        /// It was stopped from outside; the item is as it was before.
        case interrupted
    }

    /// How far a run has come.
    package struct Progress: Hashable, Sendable {
        package var assetID: AssetID?
        /// Nil while the asset's length is not known.
        package var bytesTotal: Int64?
        package var bytesFromCache: Int64
        package var bytesFromUpstream: Int64

        package init(
            assetID: AssetID? = nil, bytesTotal: Int64? = nil, bytesFromCache: Int64 = 0, bytesFromUpstream: Int64 = 0
        ) {
            self.assetID = assetID
            self.bytesTotal = bytesTotal
            self.bytesFromCache = bytesFromCache
            self.bytesFromUpstream = bytesFromUpstream
        }
    }

    /// What has to be written down of a job.
    package struct Change: Hashable, Sendable {
        /// Without its items.
        package var job: JobRecord
        /// Those that have changed.
        package var items: [JobItemRecord]
    }

    /// Items at work at once.
    package let concurrency: Int
    /// Nothing starts before `open` and after `close`.
    private var isOpen = false
    private var jobs: [String: PrefetchJob] = [:]
    private var active: Set<Run> = []
    private var lastRun: UInt64 = 0
    private var arrivals: UInt64 = 0

    package init(concurrency: Int) { self.concurrency = max(1, concurrency) }

    // MARK: Looking

    package var activeCount: Int { active.count }

    package func contains(_ job: String) -> Bool { jobs[job] != nil }

    package func state(of job: String) -> JobState? { jobs[job]?.record.state }

    /// Nil where the job is not scheduled.
    package func standing(of job: String, at now: Moment) -> JobStanding? { jobs[job]?.standing(at: now) }

    /// The item a run works on; nil where the run has been overtaken.
    package func item(of run: Run) -> JobItemRecord? {
        guard let job = jobs[run.job], job.running[run.item] == run.number else { return nil }
        return job.record.items[run.item]
    }

    /// The jobs that are scheduled.
    package var ids: [String] { Array(jobs.keys) }

    /// The job's items that succeeded.
    package func succeededItems(of job: String) -> [JobItemRecord] {
        jobs[job]?.record.items.filter { $0.state == .succeeded } ?? []
    }

    /// How long until some job's limit runs out; nil where none has one.
    package func nextLimit(at now: Moment) -> Duration? {
        jobs.values.compactMap { $0.timeLeft(at: now) }.min()
    }

    // MARK: Changing

    package mutating func open(at now: Moment) -> [Action] {
        isOpen = true
        return admit(at: now)
    }

    /// Nothing starts any more, and what runs counts as queued again.
    package mutating func close(at now: Moment) -> [Action] {
        isOpen = false
        var actions: [Action] = active.map { .stop($0) }
        for id in jobs.keys where jobs[id]?.requeue(at: now) == true { actions.append(.changed(job: id)) }
        return actions
    }

    /// Takes a job in, new or from the last time: what ran then is queued. Nil where it is there already.
    ///
    /// With `superseded`, the unfinished jobs of its queue end as it comes; named are those that are written down as ended
    /// already, scheduled or not.
    package mutating func add(
        _ record: JobRecord, superseding superseded: [String]? = nil, at now: Moment
    ) -> [Action]? {
        guard jobs[record.id] == nil else { return nil }
        let ends = superseded.map { supersede($0, by: record, at: now) } ?? []
        arrivals += 1
        jobs[record.id] = PrefetchJob(record, arrival: arrivals, turn: lastRun, at: now)
        return ends + [.changed(job: record.id)] + admit(at: now)
    }

    private mutating func supersede(_ named: [String], by record: JobRecord, at now: Moment) -> [Action] {
        guard let queue = record.queue else { return [] }
        let scheduled = jobs.values.filter { $0.record.queue == queue }.map(\.record.id)
        var actions: [Action] = []
        for id in Set(named + scheduled).sorted() {
            guard contains(id) else {
                actions.append(.changed(job: id))
                continue
            }
            actions += end(id, as: .cancelled, because: .superseded(by: record.id), at: now)
        }
        return actions
    }

    /// The next queued item of unknown size, by the order of the jobs; each one is answered once. Nothing while items can be
    /// begun at once: those tell their size themselves.
    package mutating func takeUnmeasured() -> (job: String, item: JobItemRecord)? {
        guard isOpen, active.count >= concurrency || !jobs.values.contains(where: \.canBegin) else { return nil }
        for id in jobs.values.sorted(by: { $0.place < $1.place }).map(\.record.id) {
            if let item = jobs[id]?.takeUnmeasured() { return (id, item) }
        }
        return nil
    }

    /// The size of a queued item was asked for ahead of its run.
    package mutating func measured(_ item: Int, of job: String, bytes: Int64, at now: Moment) -> [Action] {
        jobs[job]?.measured(item, bytes, at: now) == true ? [.changed(job: job)] : []
    }

    package mutating func progressed(_ run: Run, _ progress: Progress, at now: Moment) -> [Action] {
        jobs[run.job]?.progressed(run, progress, at: now) == true ? [.changed(job: run.job)] : []
    }

    /// The run is over, and its place is free.
    package mutating func ended(_ run: Run, _ outcome: Outcome, at now: Moment) -> [Action] {
        guard active.remove(run) != nil else { return [] }
        let hasChanged = jobs[run.job]?.ended(run, outcome, at: now) == true
        return (hasChanged ? [.changed(job: run.job)] : []) + admit(at: now)
    }

    /// Ends a job: its items that are not finished are cancelled. What was fetched stays.
    package mutating func cancel(_ job: String, at now: Moment) -> [Action] {
        end(job, as: .cancelled, because: nil, at: now) + admit(at: now)
    }

    /// Ends the jobs whose limit has run out.
    package mutating func expire(at now: Moment) -> [Action] { admit(at: now) }

    private mutating func end(
        _ job: String, as state: JobState, because error: RecordedError?, at now: Moment
    ) -> [Action] {
        guard let runs = jobs[job]?.end(as: state, because: error, at: now) else { return [] }
        return runs.map { .stop($0) } + [.changed(job: job)]
    }

    /// Starts what there is room for, and nothing whose time has run out.
    private mutating func admit(at now: Moment) -> [Action] {
        var actions: [Action] = []
        for (id, job) in jobs where job.timeLeft(at: now) == .zero {
            let error = CacheError(.upstreamTimedOut(.job), "The job's time ran out before all of it was fetched.")
            actions += end(id, as: .timedOut, because: RecordedError(error), at: now)
        }
        while isOpen, active.count < concurrency, let id = nextJob() {
            lastRun += 1
            guard let run = jobs[id]?.begin(number: lastRun, at: now) else { break }
            active.insert(run)
            actions += [.start(run), .changed(job: id)]
        }
        return actions
    }

    private func nextJob() -> String? {
        jobs.values.filter(\.canBegin).min { $0.place < $1.place }?.record.id
    }

    // MARK: Writing down

    /// What has changed since this was asked last.
    package mutating func takeChanges() -> [Change] {
        jobs.keys.compactMap { jobs[$0]?.takeChange() }
    }

    /// These could not be written down: they are to be taken again.
    package mutating func restore(_ changes: [Change]) {
        for change in changes { jobs[change.job.id]?.restore(change) }
    }

    /// Forgets the jobs that are finished and written down.
    package mutating func forgetFinished() {
        jobs = jobs.filter { !($0.value.record.state.isFinished && $0.value.isSaved) }
    }
}
