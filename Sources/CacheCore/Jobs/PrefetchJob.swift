import DequeModule

/// One job of the schedule: its record, its queued and running items, and their counts.
struct PrefetchJob: Sendable {
    typealias Run = PrefetchSchedule.Run
    typealias Moment = PrefetchSchedule.Moment

    /// The deepest nesting of playlists: a multivariant playlist and its media playlists.
    static let maxDepth = 2
    /// The largest number of restarts of an item because its asset changed.
    private static let maxChanges = 2

    private(set) var record: JobRecord
    private(set) var place: Place
    /// Queued items, in order.
    private(set) var queued: Deque<Int> = []
    /// Waiting items by hold, in the order of their waits.
    private var waiting: [ItemWait.Hold: Deque<Int>] = [:]
    /// The earliest time when an item can have waited too long; nil: none waits, or the job has a limit of its own.
    private var waitsEndAt: Timestamp?
    /// Queued items of unknown size that were not probed yet, in order.
    private var unmeasured: Deque<Int> = []
    /// The number of the run of each running item.
    private(set) var running: [Int: UInt64] = [:]
    /// The numbers of the runs that were stopped and have not ended. Until then, no item starts: one could be the same.
    private var stopping: Set<UInt64> = []
    private(set) var tally = JobTally()
    /// The unfinished items.
    private(set) var work: [RemainingWork.Key: RemainingWork] = [:]
    /// The predicted end; nil: none.
    private(set) var predictedFinishAt: Timestamp?
    private var risk = DeadlineRisk()
    /// Whether the job may run at this time, as computed at ``timedAt``.
    private(set) var timeState = JobTimes.State()
    /// Nil: it is to be computed.
    private var timedAt: Timestamp?
    private var meter = RateMeter()
    /// The number of asset changes of each item.
    private var changes: [Int: Int] = [:]
    private var version: Int64 = 0
    /// Items that differ from the catalog.
    private var unsavedItems: Set<Int> = []
    /// The number of items that the catalog has. Further ones are new.
    private var savedCount: Int
    private var isRecordSaved = true
    /// The number of first items that the spool file of the job has; 0: there is none.
    private let spooledCount: Int
    /// The number of unfinished items that follow a live playlist.
    private var liveCount = 0
    /// Whether the job ended before its items.
    private var isEndedEarly = false
    /// The largest number of items in progress while the job has a rate limit.
    var mostLimitedRuns = 1
    /// The files of each expanded playlist.
    private(set) var files: [Int: PlaylistFiles] = [:]
    /// The uptime when the timeout expires; nil: no timeout, or not started.
    private var limitAt: Duration?

    /// Schedules a new or stored job. Items that were running when the service stopped are queued. `saved`: the number of
    /// items that the catalog has; nil: all.
    init(_ record: JobRecord, saved: Int? = nil, arrival: UInt64, turn: UInt64, at now: Moment) {
        self.record = record
        savedCount = saved ?? record.items.count
        spooledCount = record.spooledItems ?? 0
        place = Place(priority: record.priority, deadline: record.deadlineAt, turn: turn, arrival: arrival)
        if record.state == .running { self.record.state = .queued }
        for index in record.items.indices {
            let state = record.items[index].state
            if record.state != .paused, state == .waiting, let wait = record.items[index].wait {
                enter(index, wait)
            } else if !state.isFinished {
                // Without a change, the items are not copied.
                if state != .queued { self.record.items[index].state = .queued }
                queued.append(index)
                if record.items[index].bytesTotal == nil { unmeasured.append(index) }
            }
            count(self.record.items[index], times: 1)
        }
        let children = record.items.indices.filter { record.items[$0].parent != nil }
        files = Dictionary(grouping: children) { record.items[$0].parent ?? 0 }
            .mapValues { PlaylistFiles($0, in: record.items) }
        if let startedAt = record.startedAt { limit(startedAt: startedAt, at: now) }
        meter.note(tally.bytesFromUpstream, at: now.uptime)
        version = now.wall.milliseconds
        if !waiting.isEmpty { self.record.state = .running }
        if !record.state.isFinished { concludeIfOver(at: now) }
    }

    /// The time until the timeout or the deadline, whichever is first; zero if it has passed, nil if there is none or
    /// the job is finished.
    func timeLeft(at now: Moment) -> Duration? {
        guard !record.state.isFinished else { return nil }
        let untilDeadline = record.deadlineAt.map { $0.since(now.civil) }
        let untilLimit = limitAt.map { $0 - now.uptime }
        return [untilDeadline, untilLimit].compactMap { $0 }.min().map { max(.zero, $0) }
    }

    /// The progress of the job.
    func progress(at now: Moment) -> JobSnapshot {
        JobSnapshot(
            record: record.withoutItems, tally: tally, presentRate: meter.bytesPerSecond(at: now.uptime),
            forecast: record.state.isFinished
                ? JobSnapshot.Forecast()
                : JobSnapshot.Forecast(finishAt: predictedFinishAt, isAtRisk: risk.isAtRisk),
            timeState: record.state.isFinished || record.state == .paused ? JobTimes.State() : timeState,
            version: version)
    }

    /// Whether the job will probably miss its deadline.
    var isAtRisk: Bool { !record.state.isFinished && risk.isAtRisk }

    /// Takes over the prediction of the end; returns whether the risk has changed.
    mutating func predict(_ end: Timestamp?, at now: Moment) -> Bool {
        predictedFinishAt = followsLive ? nil : end
        guard let deadline = record.deadlineAt, !followsLive else {
            defer { risk = DeadlineRisk() }
            return risk.isAtRisk
        }
        let hasChanged = risk.update(end, deadline: deadline, span: deadline.since(record.createdAt), at: now)
        if hasChanged { touch(at: now) }
        return hasChanged
    }

    /// Whether an unfinished item follows a live playlist, whose end cannot be predicted.
    var followsLive: Bool { liveCount > 0 }

    /// The number of queued, running and waiting items.
    var unfinishedCount: Int { runnableCount + waitingCount }
    /// The number of queued and running items.
    var runnableCount: Int { queued.count + running.count }
    private var waitingCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    /// The job without its items, if it ended before them; nil otherwise. All items without an end of their own have
    /// ended with it (``JobRecord/concludeItems()``).
    var endedEarly: JobRecord? { isEndedEarly ? record.withoutItems : nil }

    // MARK: Measuring

    /// Dequeues the next queued item of unknown size; each item once.
    mutating func takeUnmeasured() -> JobItemRecord? {
        while let index = unmeasured.popFirst() {
            let item = record.items[index]
            if item.state == .queued, item.bytesTotal == nil, item.fetchesRanges { return item }
        }
        return nil
    }

    /// Sets the size of a queued item; false if the item was started or has a size.
    mutating func measured(_ index: Int, _ bytes: Int64, at now: Moment) -> Bool {
        guard record.items[index].state == .queued, record.items[index].bytesTotal == nil else { return false }
        change(index, at: now) { $0.bytesTotal = bytes }
        return true
    }

    // MARK: Running

    /// Whether an item can start.
    var canBegin: Bool { !queued.isEmpty && canRun }

    /// Whether the job permits another run.
    private var canRun: Bool {
        !isHeld && stopping.isEmpty && (record.maxBytesPerSecond == nil || running.count < mostLimitedRuns)
    }

    /// Whether no item may run now.
    var isHeld: Bool { record.state == .paused || timeState.hold != nil }

    /// The longest time for which a computed state of the times holds: the wall clock can be set.
    private static let timesLast = Duration.seconds(60)

    /// Computes whether the job may run at this time. At the end of its time its items return to the queue, as in a pause.
    /// Returns the runs to stop; nil if nothing has changed.
    mutating func checkTimes(_ zones: [String: ZoneRules], at now: Moment) -> [Run]? {
        guard !record.state.isFinished, record.times != JobTimes() || timeState != JobTimes.State() else { return nil }
        if let timedAt, timedAt <= now.civil, now.civil.since(timedAt) < Self.timesLast,
            timeState.changesAt.map({ now.civil < $0 }) ?? true
        {
            return nil
        }
        let before = timeState
        (timeState, timedAt) = (record.times.state(at: now.civil, zones), now.civil)
        guard timeState != before else { return nil }
        var runs: [Run] = []
        if timeState.hold != nil, before.hold == nil, record.state != .paused {
            runs = halt(at: now)
            record.state = .queued
            setWaitsEnd()
        }
        touch(at: now)
        return runs
    }

    /// Starts the next queued item; nil if there is none.
    mutating func begin(number: UInt64, at now: Moment) -> Run? {
        queued.popFirst().map { begin($0, number: number, at: now) }
    }

    /// Records that the job is running. Its timeout begins with the first call.
    private mutating func start(at now: Moment) {
        if record.startedAt == nil { limit(startedAt: now.civil, at: now) }
        record.startedAt = record.startedAt ?? now.civil
        record.state = .running
    }

    private mutating func begin(_ index: Int, number: UInt64, at now: Moment) -> Run {
        place.turn = number
        running[index] = number
        start(at: now)
        change(index, at: now) { item in
            item.state = .running
            item.attempts += 1
            item.error = nil
        }
        return Run(job: record.id, item: index, number: number)
    }

    /// Records the progress of a run; false if the run is obsolete.
    mutating func progressed(_ run: Run, _ progress: PrefetchSchedule.Progress, at now: Moment) -> Bool {
        guard running[run.item] == run.number else { return false }
        change(run.item, at: now) { item in
            if progress.bytesFromUpstream > item.bytesFromUpstream { item.wait = nil }
            item.assetID = progress.assetID ?? item.assetID
            item.bytesTotal = progress.bytesTotal
            item.bytesFromCache = progress.bytesFromCache
            item.bytesFromUpstream = progress.bytesFromUpstream
            if let resolved = progress.resolved { (item.ranges, item.playResult) = resolved }
        }
        return true
    }

    /// Records the end of a run; false if the run is obsolete. `limits`: of the files that a playlist adds. `retryAt`: the
    /// next repetition of an item that waits.
    mutating func ended(
        _ run: Run, _ outcome: PrefetchSchedule.Outcome, within limits: PrefetchSchedule.Limits,
        repeatingAt retryAt: Timestamp? = nil, at now: Moment
    ) -> Bool {
        stopping.remove(run.number)
        guard running[run.item] == run.number else { return false }
        running[run.item] = nil
        switch outcome {
        case .succeeded: finish(run.item, .succeeded, nil, at: now)
        case .expanded(let children): expand(run.item, children, within: limits, at: now)
        case .followed(let children, let hold, _, let error):
            guard add(children, to: run.item, within: limits, at: now) else { break }
            if !children.isEmpty { change(run.item, at: now) { $0.wait = nil } }
            wait(run.item, for: hold, until: retryAt ?? now.wall, because: error, at: now)
        case .failed(let error): finish(run.item, .failed, error, at: now)
        case .timedOut(let error): finish(run.item, .timedOut, error, at: now)
        case .cancelled(let error): finish(run.item, .cancelled, error, at: now)
        case .changed(let error) where changes[run.item, default: 0] >= Self.maxChanges:
            finish(run.item, .failed, error, at: now)
        case .changed:
            changes[run.item, default: 0] += 1
            putBack(run.item, at: now)
            change(run.item, at: now) { item in
                item.bytesTotal = nil
                item.bytesFromCache = 0
                item.bytesFromUpstream = 0
            }
        case .interrupted: putBack(run.item, at: now)
        case .waiting(let hold, _, let error):
            wait(run.item, for: hold, until: retryAt ?? now.wall, because: error, at: now)
        }
        concludeIfOver(at: now)
        return true
    }

    /// Returns the running items to the queue; false if the job is not running.
    mutating func requeue(at now: Moment) -> Bool {
        guard record.state == .running else { return false }
        for index in running.keys.sorted(by: >) { putBack(index, at: now) }
        running = [:]
        record.state = .queued
        touch(at: now)
        return true
    }

    /// Takes over the terms, and returns the runs to stop; nil if the job is finished. A pause returns running and waiting
    /// items to the queue. `restarts`: whether another rate limit restarts the running items, because other nodes run them.
    mutating func apply(_ terms: JobTerms, restarts: Bool, at now: Moment) -> [Run]? {
        guard !record.state.isFinished else { return nil }
        let before = record.terms
        record.terms = terms
        (place.priority, place.deadline, timedAt) = (terms.priority, terms.deadlineAt, nil)
        var runs: [Run] = []
        if terms.isPaused {
            runs = halt(at: now)
        } else if terms.maxBytesPerSecond != before.maxBytesPerSecond,
            restarts || (terms.maxBytesPerSecond == nil) != (before.maxBytesPerSecond == nil)
        {
            // A run keeps its rate limiter, or has none, until its end.
            runs = stopRunning(at: now)
        }
        setWaitsEnd()
        touch(at: now)
        return runs
    }

    /// Returns the running and the waiting items to the queue, and returns the runs to stop. The waits begin anew later.
    private mutating func halt(at now: Moment) -> [Run] {
        for index in waiting.values.joined().sorted(by: >) {
            putBack(index, at: now)
            record.items[index].wait = nil
        }
        waiting = [:]
        return stopRunning(at: now)
    }

    private mutating func stopRunning(at now: Moment) -> [Run] {
        let runs = running.map { Run(job: record.id, item: $0.key, number: $0.value) }
        for index in running.keys.sorted(by: >) { putBack(index, at: now) }
        stopping.formUnion(running.values)
        running = [:]
        return runs
    }

    /// Ends the job early and returns the runs to stop; nil if the job is finished.
    mutating func end(as state: JobState, because error: RecordedError?, at now: Moment) -> [Run]? {
        guard !record.state.isFinished else { return nil }
        let runs = running.map { Run(job: record.id, item: $0.key, number: $0.value) }
        for index in running.keys { finish(index, state, error, at: now) }
        running = [:]
        isEndedEarly = true
        conclude(as: state, because: error, at: now)
        // Queued and waiting items are not saved one by one: in the catalog, too, they end with the job.
        tally.move(queued.count, from: .queued, to: state)
        tally.move(waitingCount, from: .waiting, to: state)
        record.concludeItems()
        (queued, waiting, waitsEndAt) = ([], [:], nil)
        return runs
    }

    // MARK: Waiting

    /// Lets an item wait that is neither queued nor running any more.
    private mutating func wait(
        _ index: Int, for hold: ItemWait.Hold, until retryAt: Timestamp, because error: RecordedError?, at now: Moment
    ) {
        start(at: now)
        change(index, at: now) { item in
            let since = item.wait?.since ?? now.wall
            item.wait = ItemWait(for: hold, since: since, retryAt: retryAt)
            (item.state, item.error) = (.waiting, error)
        }
        if let wait = record.items[index].wait { enter(index, wait) }
    }

    /// Enters an item in the tables of waiting items.
    private mutating func enter(_ index: Int, _ wait: ItemWait) {
        waiting[wait.hold, default: []].append(index)
        guard record.timeout == nil, record.deadlineAt == nil else { return }
        let end = wait.since + ItemWait.limit
        waitsEndAt = min(waitsEndAt ?? end, end)
    }

    /// Sets `waitsEndAt` under changed terms.
    private mutating func setWaitsEnd() {
        let since = waiting.values.joined().compactMap { record.items[$0].wait?.since }.min()
        waitsEndAt = record.timeout == nil && record.deadlineAt == nil ? since.map { $0 + ItemWait.limit } : nil
    }

    /// Lets the next queued items wait while `holds` prevent their runs. Returns whether there were any.
    mutating func holdQueued(by holds: ItemHolds, at now: Moment) -> Bool {
        var hasHeld = false
        while let index = queued.first, let hold = holds.blocking(record.items[index].reference.party),
            let entry = holds[hold]
        {
            queued.removeFirst()
            wait(index, for: hold, until: entry.retryAt, because: entry.error, at: now)
            hasHeld = true
        }
        return hasHeld
    }

    /// Whether items wait for `hold`.
    func waits(for hold: ItemWait.Hold) -> Bool { waiting[hold] != nil }

    /// Whether the first item of a hold can start.
    func canRepeat(_ hold: ItemWait.Hold) -> Bool {
        waits(for: hold) && canRun
    }

    /// Starts the first item of a hold; nil if there is none.
    mutating func `repeat`(_ hold: ItemWait.Hold, number: UInt64, at now: Moment) -> Run? {
        guard let index = waiting[hold]?.popFirst() else { return nil }
        if waiting[hold]?.isEmpty == true { waiting[hold] = nil }
        return begin(index, number: number, at: now)
    }

    /// Queues the items of a hold that has ended, in front of the others. Returns whether there were any.
    mutating func release(_ hold: ItemWait.Hold, at now: Moment) -> Bool {
        guard let items = waiting.removeValue(forKey: hold) else { return false }
        for index in items.sorted(by: >) { putBack(index, at: now) }
        return true
    }

    /// Fails the items that have waited too long. Returns whether there were any.
    mutating func failOverdue(at now: Moment) -> Bool {
        guard let end = waitsEndAt, end <= now.wall else { return false }
        waitsEndAt = nil
        let items = waiting.values.joined().sorted()
        waiting = [:]
        for index in items {
            if let wait = record.items[index].wait, wait.since + ItemWait.limit > now.wall {
                enter(index, wait)
            } else {
                let error = record.items[index].error ?? RecordedError(Self.unchanged)
                finish(index, .failed, error, at: now)
            }
        }
        concludeIfOver(at: now)
        return true
    }

    private static let unchanged = CacheError(
        .upstreamTimedOut(.job), "The live playlist has neither changed for 24 hours nor ended.")

    // MARK: Persistence

    /// Whether the catalog has all changes.
    var isSaved: Bool { isRecordSaved && unsavedItems.isEmpty && savedCount == record.items.count }

    /// Returns unsaved changes of at most `limit` items and marks them as saved; nil if there are none.
    ///
    /// New items come first, in their order, so that the catalog has all items up to the last one. A crash between two
    /// saves leaves a consistent job:
    ///
    /// 1. A playlist has succeeded in the catalog only if all its files are there. Otherwise it is expanded again, and
    ///    the files that are there are kept.
    /// 2. A job that ended with its last item has ended in the catalog only if all its items have.
    mutating func takeChange(atMost limit: Int) -> PrefetchSchedule.Change? {
        guard !isSaved else { return nil }
        let added = savedCount..<savedCount + min(record.items.count - savedCount, limit)
        savedCount = added.upperBound
        noteSpool()
        unsavedItems.subtract(added)
        let changed = savedCount < record.items.count ? [] : Array(unsavedItems.prefix(limit - added.count))
        unsavedItems.subtract(changed)
        var items = (changed + added).sorted().map { record.items[$0] }
        for place in items.indices where files[items[place].index].map({ $0.last >= savedCount }) ?? false {
            unsavedItems.insert(items[place].index)
            items[place].state = .running
        }
        isRecordSaved = true
        var job = record.withoutItems
        if !isSaved, !isEndedEarly, job.state.isFinished {
            (job.state, job.error, job.finishedAt) = (.running, nil, nil)
        }
        return PrefetchSchedule.Change(job: job, items: items, added: added)
    }

    /// Marks changes as unsaved again, after a failed write.
    mutating func restore(_ change: PrefetchSchedule.Change) {
        isRecordSaved = false
        if !change.added.isEmpty { savedCount = min(savedCount, change.added.lowerBound) }
        noteSpool()
        unsavedItems.formUnion(change.items.map(\.index).filter { !change.added.contains($0) })
    }

    // MARK: Parts

    /// The catalog has all items of the spool file: the job does not need it any more.
    private mutating func noteSpool() { record.spooledItems = savedCount < spooledCount ? spooledCount : nil }

    /// Sets `limitAt`. The time that has passed by the wall clock since the start counts, also across a restart.
    private mutating func limit(startedAt: Timestamp, at now: Moment) {
        limitAt = record.timeout.map { now.uptime + $0 - max(.zero, now.civil.since(startedAt)) }
    }

    /// Returns an item to the front of the queue.
    private mutating func putBack(_ index: Int, at now: Moment) {
        queued.prepend(index)
        change(index, at: now) { ($0.state, $0.error) = (.queued, nil) }
    }

    private mutating func finish(_ index: Int, _ state: JobState, _ error: RecordedError?, at now: Moment) {
        change(index, at: now) { item in
            item.state = state
            item.error = error
            item.wait = nil
        }
        notePlayable(of: record.items[index].parent, at: now)
    }

    /// Finishes a playlist or a list and adds its files.
    private mutating func expand(
        _ index: Int, _ children: [JobItemRecord], within limits: PrefetchSchedule.Limits, at now: Moment
    ) {
        let mayBeEmpty = record.items[index].list != nil || record.items[index].followsLive
        guard !children.isEmpty || mayBeEmpty else {
            let error = CacheError(.outOfRange, "The playlist names no file for the requested time and tracks.")
            return finish(index, .failed, RecordedError(error), at: now)
        }
        guard add(children, to: index, within: limits, at: now) else { return }
        finish(index, .succeeded, nil, at: now)
        notePlayable(of: index, at: now)
    }

    /// Adds the files of a playlist or a list, which precede the queued items. Files that the job has already, from an earlier
    /// load of a live playlist or from an expansion that was interrupted, are not added again. Returns false if the item
    /// fails, because there are too many files.
    private mutating func add(
        _ children: [JobItemRecord], to index: Int, within limits: PrefetchSchedule.Limits, at now: Moment
    ) -> Bool {
        let present = knownFiles(of: index)
        let added = children.filter { !present.contains($0.content) }
        if let error = limits.refusal(of: added.count, for: record.items.count) {
            finish(index, .failed, RecordedError(error), at: now)
            return false
        }
        guard depth(of: index) < Self.maxDepth else {
            let error = CacheError(.mediaIndexTooLarge, "Playlists are nested more than \(Self.maxDepth) levels deep.")
            finish(index, .failed, RecordedError(error), at: now)
            return false
        }
        let first = record.items.count
        for child in added {
            var child = child
            child.index = record.items.count
            child.share(with: record.items[index])
            record.items.append(child)
            count(child, times: 1)
        }
        let positions = Array(first..<record.items.count)
        for position in positions.reversed() { queued.prepend(position) }
        if files[index] == nil { files[index] = PlaylistFiles([], in: []) }
        files[index]?.add(positions, in: record.items)
        return true
    }

    /// Computes the playable time of a playlist, and of the playlists above it.
    private mutating func notePlayable(of playlist: Int?, at now: Moment) {
        guard let playlist, record.items.indices.contains(playlist), let play = record.items[playlist].play,
            !play.isLive, let playable = files[playlist]?.playableEnd(in: record.items)
        else { return }
        let duration = record.items[playlist].playResult?.duration ?? .infinity
        let start = record.items[playlist].playResult?.start ?? play.time.lowerBound
        let end = min(playable, start + play.time.upperBound - play.time.lowerBound, duration)
        let seconds = max(0, end - start)
        guard record.items[playlist].playResult?.playableSeconds != seconds else { return }
        change(playlist, at: now) { $0.playResult?.playableSeconds = seconds }
        notePlayable(of: record.items[playlist].parent, at: now)
    }

    /// Changes an item, and updates counts, rate and version.
    private mutating func change(_ index: Int, at now: Moment, _ body: (inout JobItemRecord) -> Void) {
        count(record.items[index], times: -1)
        body(&record.items[index])
        count(record.items[index], times: 1)
        unsavedItems.insert(index)
        meter.note(tally.bytesFromUpstream, at: now.uptime)
        touch(at: now)
    }

    /// Counts an item, or removes its count.
    private mutating func count(_ item: JobItemRecord, times: Int) {
        if times > 0 { tally.add(item) } else { tally.remove(item) }
        guard !item.state.isFinished else { return }
        if item.followsLive { liveCount += times }
        work[RemainingWork.Key(item), default: RemainingWork()].count(item, times: times)
    }

    /// Increases the version. It follows the wall clock where possible, so that it also increases across a restart.
    private mutating func touch(at now: Moment) {
        isRecordSaved = false
        version = max(version + 1, now.wall.milliseconds)
    }

    /// Finishes the job when no item is queued, running or waiting. `failed` items decide its state first, then `timedOut` and
    /// `cancelled` ones; otherwise it has succeeded.
    private mutating func concludeIfOver(at now: Moment) {
        guard queued.isEmpty, running.isEmpty, waiting.isEmpty else { return }
        let outcome: JobState =
            tally[.failed] > 0
            ? .failed : tally[.timedOut] > 0 ? .timedOut : tally[.cancelled] > 0 ? .cancelled : .succeeded
        conclude(as: outcome, because: firstError(of: outcome), at: now)
    }

    private mutating func conclude(as state: JobState, because error: RecordedError?, at now: Moment) {
        record.state = state
        record.error = error
        record.finishedAt = now.civil
        touch(at: now)
    }
}
