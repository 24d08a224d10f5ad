/// Pure order of jobs and items: which item of which prefetch job runs next, and the progress of all jobs.
///
/// Jobs are ordered by priority, and those of equal priority by their deadlines, the earliest first. Jobs of equal priority
/// and deadline, or without one, take turns, the oldest first. Each job starts its items in their order. A job with a rate limit
/// uses at most a quarter of the slots: several small items hide the latency of their requests from each other, and more
/// would only occupy slots that other jobs could use. The owner passes the time and performs the returned actions.
package struct PrefetchSchedule: Sendable {
    /// One run of an item. A restarted item is another run.
    package struct Run: Hashable, Sendable {
        package let job: String
        package let item: Int
        package let number: UInt64
    }

    /// A time on all clocks.
    package struct Moment: Hashable, Sendable {
        /// For waits; it does not jump.
        package var wall: Timestamp
        /// The system's clock, for the instants that clients name or see; it can jump.
        package var civil: Timestamp
        /// The uptime, from any fixed origin.
        package var uptime: Duration

        /// `civil` nil: as `wall`.
        package init(wall: Timestamp, civil: Timestamp? = nil, uptime: Duration) {
            self.wall = wall
            self.civil = civil ?? wall
            self.uptime = uptime
        }
    }

    /// An effect that the owner must perform.
    package enum Action: Hashable, Sendable {
        /// Start the run.
        case start(Run)
        /// Stop the run: its job has ended, or the schedule is closed.
        case stop(Run)
        /// Publish and save the changes of the job.
        case changed(job: String)
    }

    /// The result of a run.
    package enum Outcome: Hashable, Sendable {
        /// All bytes of the item are on disk and in the catalog.
        case succeeded
        /// Likewise, and the item is a playlist: these items are added to the job.
        case expanded([JobItemRecord])
        /// The item is a live playlist: these items are added, and it is loaded again after the time. The error is that of
        /// the load.
        case followed([JobItemRecord], ItemWait.Hold, Duration?, RecordedError?)
        case failed(RecordedError)
        case timedOut(RecordedError)
        case cancelled(RecordedError)
        /// The asset changed during the run. The item restarts, at most twice; then it fails with this error.
        case changed(RecordedError)
        /// The item waits for the end of the cause, at most until its repetition after the time; nil time: growing
        /// intervals.
        case waiting(ItemWait.Hold, Duration?, RecordedError)
        /// The service stopped the run. The item is queued again and keeps its progress.
        case interrupted
    }

    /// The progress of a run.
    package struct Progress: Sendable {
        package var assetID: AssetID?
        /// Nil while the asset's length is not known.
        package var bytesTotal: Int64?
        package var bytesFromCache: Int64
        package var bytesFromUpstream: Int64
        /// The ranges and the result of an item by time, once they are resolved.
        package var resolved: (ranges: [String], result: PlayResult)?

        package init(
            assetID: AssetID? = nil, bytesTotal: Int64? = nil, bytesFromCache: Int64 = 0, bytesFromUpstream: Int64 = 0
        ) {
            self.assetID = assetID
            self.bytesTotal = bytesTotal
            self.bytesFromCache = bytesFromCache
            self.bytesFromUpstream = bytesFromUpstream
        }
    }

    /// The changes of a job since its last save.
    package struct Change: Hashable, Sendable {
        /// The job without its items.
        package var job: JobRecord
        /// The changed items only.
        package var items: [JobItemRecord]
        /// The positions of the items that the catalog does not have yet.
        var added: Range<Int>
    }

    /// The maximum numbers of items. They can change; a reduction removes no item.
    package struct Limits: Hashable, Sendable {
        /// Of one job, with the files of its playlists.
        package var jobItems: Int
        /// Of all jobs together, without finished items.
        package var unfinishedItems: Int

        package init(jobItems: Int = 100_000, unfinishedItems: Int = 500_000) {
            self.jobItems = jobItems
            self.unfinishedItems = unfinishedItems
        }
    }

    /// The largest number of running items, over all jobs.
    package let concurrency: Int
    /// False before `open` and after `close`: nothing starts.
    private var isOpen = false
    private var jobs: [String: PrefetchJob] = [:]
    /// The holds of waiting items.
    private var holds = ItemHolds()
    /// The measured rates of the upstreams of running items.
    private var rates = OriginRates()
    /// The party of each active run, and whether its job has a rate limit.
    private var parties: [Run: (name: String, isLimited: Bool)] = [:]
    /// Jobs with items that other nodes run. Their runs only wait for these, and have a limit of their own: otherwise the
    /// nodes could use up their runs with waits for each other.
    private var routed: Set<String> = []
    /// The running items; an entry stays until its run has ended, even if the job is finished.
    private var active: Set<Run> = []
    /// The rules of the time zones of jobs.
    private var zones: [String: ZoneRules] = [:]
    private var lastRun: UInt64 = 0
    private var arrivals: UInt64 = 0

    package init(concurrency: Int) { self.concurrency = max(1, concurrency) }

    // MARK: Queries

    package var activeCount: Int { active.count }

    package func contains(_ job: String) -> Bool { jobs[job] != nil }

    package func state(of job: String) -> JobState? { jobs[job]?.record.state }

    /// The progress of the job; nil if it is not scheduled.
    package func progress(of job: String, at now: Moment) -> JobSnapshot? { jobs[job]?.progress(at: now) }

    /// Whether other nodes run the items of the job.
    package func isRouted(_ job: String) -> Bool { routed.contains(job) }

    /// The item of a run; nil if the run is obsolete.
    package func item(of run: Run) -> JobItemRecord? {
        guard let job = jobs[run.job], job.running[run.item] == run.number else { return nil }
        return job.record.items[run.item]
    }

    /// The files of the playlist of a run that its job has; the latest ones of a live playlist.
    package func knownFiles(of run: Run) -> Set<JobItemRecord.Content> { jobs[run.job]?.knownFiles(of: run.item) ?? [] }

    /// Whether the item of a run is a file of a live playlist.
    package func isOfLive(_ run: Run) -> Bool { jobs[run.job]?.isOfLive(run.item) ?? false }

    /// The token that made the job; nil: none, or the job is not scheduled.
    package func owner(of job: String) -> TokenOwner? { jobs[job]?.record.owner }

    /// The identifiers of the scheduled jobs.
    package var ids: [String] { Array(jobs.keys) }

    /// The job without its items; nil if it is not scheduled.
    package func record(of job: String) -> JobRecord? { jobs[job]?.record.withoutItems }

    /// The terms of the job; nil if it is not scheduled.
    package func terms(of job: String) -> JobTerms? { jobs[job]?.record.terms }

    /// Whether a job that is not paused has queued or running items.
    package var hasRunnable: Bool { jobs.values.contains { $0.runnableCount > 0 && !$0.isHeld } }

    /// The number of queued, running and waiting items of all jobs.
    package var unfinishedCount: Int { jobs.values.reduce(0) { $0 + $1.unfinishedCount } }

    /// The job without its items, if it was cancelled, superseded or timed out and is scheduled; nil otherwise.
    package func endedEarly(_ job: String) -> JobRecord? { jobs[job]?.endedEarly }

    /// Throws `.overloaded` if all jobs would have too many unfinished items with a new or requeued job.
    package func checkRoom(for record: JobRecord, within limits: Limits) throws(CacheError) {
        let superseded = record.supersedes ? jobs.values.filter { $0.record.queue == record.queue } : []
        let present = unfinishedCount - superseded.reduce(0) { $0 + $1.unfinishedCount }
        guard present + record.unfinishedCount <= limits.unfinishedItems else {
            throw CacheError(
                .overloaded,
                "All jobs have \(present) unfinished items, limits.unfinishedJobItems permits "
                    + "\(limits.unfinishedItems): repeat later, or cancel jobs.")
        }
    }

    /// The items of the job after the index `last`, at most `count`; nil if the job is not scheduled.
    package func items(of job: String, after last: Int, atMost count: Int) -> [JobItemRecord]? {
        jobs[job].map { job in
            let first = min(max(last, -1), job.record.items.count) + 1
            return job.record.items.dropFirst(first).prefix(count).map(current)
        }
    }

    /// The item with the present time of its repetition.
    private func current(_ item: JobItemRecord) -> JobItemRecord {
        guard item.state == .waiting, let hold = item.wait?.hold, let entry = holds[hold] else { return item }
        var item = item
        item.wait?.retryAt = entry.retryAt
        item.error = entry.error ?? item.error
        return item
    }

    /// The items of the job that have succeeded.
    package func succeededItems(of job: String) -> [JobItemRecord] {
        jobs[job]?.record.items.filter { $0.state == .succeeded } ?? []
    }

    /// The time until the next timeout or deadline of a job, or the next repetition of waiting items; nil: none.
    package func nextLimit(at now: Moment) -> Duration? {
        let untilRetry = holds.nextRetry(after: now.wall).map { $0.since(now.wall) }
        let untilChanges = jobs.values.filter { !$0.record.state.isFinished }.compactMap { $0.timeState.changesAt }
            .map { max(.zero, $0.since(now.civil)) }
        return (jobs.values.compactMap { $0.timeLeft(at: now) } + untilChanges + [untilRetry].compactMap(\.self)).min()
    }

    /// The holds of waiting items.
    package var presentHolds: [ItemWait.Hold] { Array(holds.entries.keys) }

    // MARK: Mutations

    /// Enters the rules of time zones, before the jobs that need them.
    package mutating func enter(_ rules: [String: ZoneRules]) { zones.merge(rules) { $1 } }

    /// Permits items to start.
    package mutating func open(at now: Moment) -> [Action] {
        isOpen = true
        return admit(at: now)
    }

    /// Stops all runs and queues their items again; no item starts from now on.
    package mutating func close(at now: Moment) -> [Action] {
        isOpen = false
        var actions: [Action] = active.map { .stop($0) }
        for id in jobs.keys where jobs[id]?.requeue(at: now) == true { actions.append(.changed(job: id)) }
        return actions
    }

    /// Adds a job, new or loaded after a restart; running items of the last process are queued. Nil if the job is
    /// scheduled already.
    ///
    /// - Parameters:
    ///   - superseded: Not nil ends the unfinished jobs of its queue. The list names the jobs that the catalog has ended
    ///     already, scheduled or not.
    ///   - saved: The number of items that the catalog has; nil: all.
    ///   - isRouted: Whether other nodes run its items.
    package mutating func add(
        _ record: JobRecord, saved: Int? = nil, superseding superseded: [String]? = nil, isRouted: Bool = false,
        at now: Moment
    ) -> [Action]? {
        guard jobs[record.id] == nil else { return nil }
        if isRouted { routed.insert(record.id) }
        let ends = superseded.map { supersede($0, by: record, at: now) } ?? []
        arrivals += 1
        var job = PrefetchJob(record, saved: saved, arrival: arrivals, turn: lastRun, at: now)
        // Each node would observe the limit of a routed job for itself.
        job.mostLimitedRuns = isRouted ? 1 : max(1, concurrency / 4)
        for item in record.items where item.state == .waiting {
            if let wait = item.wait, holds[wait.hold] == nil || !isOpen { holds.restore(wait, because: item.error) }
        }
        jobs[record.id] = job
        return ends + [.changed(job: record.id)] + admit(at: now)
    }

    /// Removes a job that another node runs from now on, and stops its runs.
    package mutating func remove(_ job: String, at now: Moment) -> [Action] {
        guard jobs.removeValue(forKey: job) != nil else { return [] }
        routed.remove(job)
        return active.filter { $0.job == job }.map { .stop($0) } + admit(at: now)
    }

    /// Ends the scheduled jobs of the queue, and reports the named jobs as changed.
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

    /// Dequeues the next queued item of unknown size, in the order of jobs; each item once. Nil while items can start
    /// at once, because a run determines the size itself.
    package mutating func takeUnmeasured() -> (job: String, item: JobItemRecord)? {
        guard isOpen, nextJob() == nil else { return nil }
        for id in jobs.values.sorted(by: { $0.place < $1.place }).map(\.record.id) where !isRouted(id) {
            if jobs[id]?.isHeld == true { continue }
            if let item = jobs[id]?.takeUnmeasured() { return (id, item) }
        }
        return nil
    }

    /// Records the size of a queued item that was probed before its run.
    package mutating func measured(_ item: Int, of job: String, bytes: Int64, at now: Moment) -> [Action] {
        jobs[job]?.measured(item, bytes, at: now) == true ? [.changed(job: job)] : []
    }

    /// Records the progress of a run; no action if the run is obsolete.
    package mutating func progressed(_ run: Run, _ progress: Progress, at now: Moment) -> [Action] {
        if let party = parties[run], let present = item(of: run)?.bytesFromUpstream,
            progress.bytesFromUpstream > present
        {
            rates.received(
                progress.bytesFromUpstream - present, from: party.name, isLimited: party.isLimited, at: now.uptime)
        }
        guard jobs[run.job]?.progressed(run, progress, at: now) == true else { return [] }
        let changed: [Action] = [.changed(job: run.job)]
        // Bytes from the upstream show that the cause of the hold has ended.
        guard holds.isCanary(run), item(of: run)?.wait == nil else { return changed }
        return changed + holds.ended(run, .succeeded, at: now.wall).flatMap { release($0, at: now) } + admit(at: now)
    }

    /// Records the end of a run, and starts the next items. A playlist whose files exceed `limits` fails.
    package mutating func ended(
        _ run: Run, _ outcome: Outcome, within limits: Limits = Limits(), at now: Moment
    ) -> [Action] {
        guard active.remove(run) != nil else { return [] }
        if let party = parties.removeValue(forKey: run) {
            rates.ended(at: party.name, isLimited: party.isLimited, now.uptime)
        }
        var limits = limits
        if outcome.addsItems { limits.unfinishedItems -= unfinishedCount - 1 }  // the playlist itself ends
        let ended = holds.ended(run, outcome, at: now.wall)
        let retryAt = outcome.wait.flatMap { holds[$0.hold]?.retryAt }
        let hasChanged = jobs[run.job]?.ended(run, outcome, within: limits, repeatingAt: retryAt, at: now) == true
        return (hasChanged ? [.changed(job: run.job)] : []) + ended.flatMap { release($0, at: now) } + admit(at: now)
    }

    /// Ends holds, and starts their items. Items of other holds repeat at once, one for each hold.
    ///
    /// - Parameters:
    ///   - ended: The holds with a cause that has ended.
    ///   - probed: The holds with a cause that can have ended, which only a run can find out.
    package mutating func wake(_ ended: [ItemWait.Hold], probing probed: [ItemWait.Hold] = [], at now: Moment)
        -> [Action]
    {
        for hold in probed { holds.hasten(hold, at: now.wall) }
        let ended = ended.filter { holds.canEnd($0, at: now.wall) }
        return ended.flatMap { release($0, at: now) } + admit(at: now)
    }

    /// Queues the items of a hold that has ended.
    private mutating func release(_ hold: ItemWait.Hold, at now: Moment) -> [Action] {
        holds.remove(hold)
        return jobs.keys.filter { jobs[$0]?.release(hold, at: now) == true }.map { .changed(job: $0) }
    }

    /// Cancels a job and its unfinished items. The fetched bytes stay.
    package mutating func cancel(_ job: String, at now: Moment) -> [Action] {
        end(job, as: .cancelled, because: nil, at: now) + admit(at: now)
    }

    /// Takes over the terms of a job; nil if it is finished or not scheduled.
    ///
    /// - Parameter revision: The terms that these ones replace; nil: any. Nil is returned if they are others.
    package mutating func apply(
        _ terms: JobTerms, of job: String, over revision: Int64? = nil, at now: Moment
    ) -> [Action]? {
        let isRouted = isRouted(job)
        guard revision == nil || revision == jobs[job]?.record.revision,
            let runs = jobs[job]?.apply(terms, restarts: isRouted, at: now)
        else { return nil }
        return runs.map { .stop($0) } + [.changed(job: job)] + admit(at: now)
    }

    /// Ends the jobs with an expired timeout or deadline.
    package mutating func expire(at now: Moment) -> [Action] { admit(at: now) }

    /// Ends a job; no action if it is finished.
    private mutating func end(
        _ job: String, as state: JobState, because error: RecordedError?, at now: Moment
    ) -> [Action] {
        guard let runs = jobs[job]?.end(as: state, because: error, at: now) else { return [] }
        return runs.map { .stop($0) } + [.changed(job: job)]
    }

    /// Ends expired jobs, and starts items while the concurrency permits.
    private mutating func admit(at now: Moment) -> [Action] {
        var actions: [Action] = []
        for (id, job) in jobs where job.timeLeft(at: now) == .zero {
            let error = CacheError(.upstreamTimedOut(.job), "The job reached its timeout or deadline unfinished.")
            actions += end(id, as: .timedOut, because: RecordedError(error), at: now)
        }
        for id in jobs.keys where jobs[id]?.failOverdue(at: now) == true { actions.append(.changed(job: id)) }
        for id in jobs.keys {
            guard let runs = jobs[id]?.checkTimes(zones, at: now) else { continue }
            actions += runs.map { .stop($0) } + [.changed(job: id)]
        }
        guard isOpen else { return actions }
        actions += repeatWaiting(at: now)
        while let id = nextJob() {
            if jobs[id]?.holdQueued(by: holds, at: now) == true {
                actions.append(.changed(job: id))
                continue
            }
            lastRun += 1
            guard let run = jobs[id]?.begin(number: lastRun, at: now) else { break }
            activate(run, at: now)
            actions += [.start(run), .changed(job: id)]
        }
        return actions
    }

    /// Enters a run that starts.
    private mutating func activate(_ run: Run, at now: Moment) {
        active.insert(run)
        guard let item = item(of: run) else { return }
        let party = (name: item.reference.party ?? "", isLimited: terms(of: run.job)?.maxBytesPerSecond != nil)
        parties[run] = party
        rates.began(at: party.name, isLimited: party.isLimited, now.uptime)
    }

    /// Starts one item for each hold with a repetition that is due, and drops holds without items.
    private mutating func repeatWaiting(at now: Moment) -> [Action] {
        var actions: [Action] = []
        for hold in holds.due(at: now.wall) {
            let waiting = jobs.values.filter { $0.waits(for: hold) }
            if waiting.isEmpty { holds.remove(hold) }
            let full = full
            let startable = waiting.filter { job in
                job.canRepeat(hold) && !(isRouted(job.record.id) ? full.routed : full.others)
            }
            guard let id = startable.min(by: { $0.place < $1.place })?.record.id else { continue }
            lastRun += 1
            guard let run = jobs[id]?.repeat(hold, number: lastRun, at: now) else { continue }
            holds.began(run, for: hold)
            activate(run, at: now)
            actions += [.start(run), .changed(job: id)]
        }
        return actions
    }

    /// The first job, in order, that can start an item; nil: none, or too many items run.
    private func nextJob() -> String? {
        let full = full
        if full.others, full.routed || routed.isEmpty { return nil }
        return jobs.values.filter { $0.canBegin && !(isRouted($0.record.id) ? full.routed : full.others) }
            .min { $0.place < $1.place }?.record.id
    }

    /// Whether as many items run as permitted: of routed jobs, and of the others.
    private var full: (routed: Bool, others: Bool) {
        let waiting = routed.isEmpty ? 0 : active.count { isRouted($0.job) }
        return (waiting >= concurrency, active.count - waiting >= concurrency)
    }

    /// The jobs that wait for a reader.
    package var triggers: [(job: String, trigger: JobTrigger)] {
        jobs.values.compactMap { job in
            guard !job.record.state.isFinished, let trigger = job.record.times.trigger, trigger.passedAt == nil else {
                return nil
            }
            return (job.record.id, trigger)
        }
    }

    // MARK: Predictions

    /// The number of unfinished jobs that will probably miss their deadline.
    package var atRiskCount: Int { jobs.values.count { $0.isAtRisk } }

    /// Predicts the ends of all jobs from the rates of their upstreams. A job whose risk has changed is reported.
    package mutating func predict(at now: Moment) -> [Action] {
        let sorted = jobs.values.filter { !$0.record.state.isFinished }.sorted { $0.place < $1.place }
        guard !sorted.isEmpty else { return [] }
        let (entries, rates) = forecastJobs(sorted, at: now)
        let ends = FinishForecast.ends(of: entries, rates: rates, concurrency: concurrency)
        var actions: [Action] = []
        for job in sorted {
            let id = job.record.id
            let end = ends[id].map { job.end(after: min($0, Self.longestForecast), zones, at: now) }
            if jobs[id]?.predict(end, at: now) == true { actions.append(.changed(job: id)) }
        }
        return actions
    }

    private static let longestForecast = 366.0 * 86400

    /// The jobs of a forecast, in order, and the known rates. An item of unknown size counts as the mean of its job.
    private func forecastJobs(
        _ sorted: [PrefetchJob], at now: Moment
    ) -> (jobs: [FinishForecast.Job], rates: [String: Double]) {
        var (entries, rates, rank): ([FinishForecast.Job], [String: Double], Int) = ([], [:], 0)
        var last: PrefetchJob.Place?
        for job in sorted {
            if let last, !last.isEqual(to: job.place) { rank += 1 }
            last = job.place
            let known = job.tally.itemsTotal - job.tally.itemsUnknown
            let mean = known > 0 ? Double(job.tally.bytesTotal ?? 0) / Double(known) : nil
            let isUnknown = mean == nil && job.tally.itemsUnknown > 0
            let work = job.work.filter { $0.value.items > 0 }.map { key, work in
                FinishForecast.Work(
                    party: key.party, items: work.items,
                    bytes: max(1, Double(work.bytes) + (mean ?? 0) * Double(work.unknown)), isRunning: key.isRunning)
            }
            for part in work where rates[part.party] == nil {
                rates[part.party] = self.rates.bytesPerSecond(of: part.party)
            }
            entries.append(
                FinishForecast.Job(
                    id: job.record.id, rank: rank, work: work.sorted { ($0.party, $0.items) < ($1.party, $1.items) },
                    limit: job.record.maxBytesPerSecond.map(Double.init), mostRuns: job.mostLimitedRuns,
                    deadline: job.timeLeft(at: now)?.inSeconds,
                    start: isUnknown || job.followsLive ? nil : job.timeUntilRun(at: now)))
        }
        return (entries, rates)
    }

    // MARK: Persistence

    /// Returns unsaved changes of at most `limit` jobs and items, and marks them as saved. Fewer are all changes.
    package mutating func takeChanges(atMost limit: Int = .max) -> [Change] {
        var (changes, room): ([Change], Int) = ([], limit)
        for id in jobs.keys where room > 0 {
            guard let change = jobs[id]?.takeChange(atMost: room) else { continue }
            changes.append(change)
            room -= max(1, change.items.count)
        }
        return changes
    }

    /// Marks these changes as unsaved again, after a failed write.
    package mutating func restore(_ changes: [Change]) {
        for change in changes { jobs[change.job.id]?.restore(change) }
    }

    /// Removes the finished jobs without unsaved changes.
    package mutating func forgetFinished() {
        jobs = jobs.filter { !($0.value.record.state.isFinished && $0.value.isSaved) }
        if !routed.isEmpty { routed = routed.filter { jobs[$0] != nil } }
    }
}

extension PrefetchSchedule.Outcome {
    /// The hold that the item waits for, the time until its repetition, and the cause; nil: it does not wait.
    var wait: (hold: ItemWait.Hold, time: Duration?, error: RecordedError?)? {
        switch self {
        case .waiting(let hold, let time, let error): (hold, time, error)
        case .followed(_, let hold, let time, let error): (hold, time, error)
        default: nil
        }
    }

    /// Whether the job can get further items.
    fileprivate var addsItems: Bool {
        switch self {
        case .expanded, .followed: true
        default: false
        }
    }
}

extension PrefetchSchedule.Limits {
    /// The error of a playlist that adds `count` items to a job with `present` items; nil if they fit.
    package func refusal(of count: Int, for present: Int) -> CacheError? {
        guard present + count <= jobItems else {
            return CacheError(
                .jobTooLarge,
                "The playlist has \(count) files, the job \(present) items; limits.jobItems permits "
                    + "\(jobItems): request less time or fewer renditions, or raise the limit.")
        }
        guard count <= unfinishedItems else {
            return CacheError(
                .jobTooLarge,
                "The playlist has \(count) files, limits.unfinishedJobItems leaves room for "
                    + "\(max(0, unfinishedItems)): retry the job when others have finished, or raise the limit.")
        }
        return nil
    }
}
