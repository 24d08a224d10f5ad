/// Pure table of the holds of waiting items.
///
/// At `retryAt` one item repeats for all items of its hold (a canary). If it waits again, the others keep waiting without
/// a run of their own. If it does not, all of them are queued. So the load of a hold does not depend on its items.
struct ItemHolds: Sendable {
    typealias Run = PrefetchSchedule.Run

    struct Entry: Sendable {
        var retryAt: Timestamp
        /// The time of the latest run that had to wait.
        var waitedAt: Timestamp
        /// The number of repetitions in a row that have waited again.
        var failures = 0
        /// The run that repeats for the others; nil: none.
        var canary: Run?
        /// The error of the latest run.
        var error: RecordedError?
    }

    /// The first and the longest interval between repetitions if the cause states no time.
    static let intervals = (first: Duration.seconds(1), longest: Duration.seconds(60))

    /// The shortest wait, also if the cause ends.
    static let shortest = Duration.seconds(1)

    private(set) var entries: [ItemWait.Hold: Entry] = [:]

    subscript(hold: ItemWait.Hold) -> Entry? { entries[hold] }

    /// Records the end of a run. Returns the holds that have ended with it: those that the run was to test, unless it
    /// waits for the same hold again.
    mutating func ended(_ run: Run, _ outcome: PrefetchSchedule.Outcome, at now: Timestamp) -> [ItemWait.Hold] {
        var next: ItemWait.Hold?
        if let waiting = outcome.wait {
            wait(run, waiting.hold, in: waiting.time, because: waiting.error, at: now)
            next = waiting.hold
        }
        let tested = entries.filter { $0.value.canary == run && $0.key != next }.map(\.key)
        guard outcome == .interrupted else { return tested }
        for hold in tested { entries[hold]?.canary = nil }
        return []
    }

    /// Whether the run tests a hold.
    func isCanary(_ run: Run) -> Bool { entries.values.contains { $0.canary == run } }

    /// Records a run that has to wait. Runs that began before the hold do not postpone its repetition.
    private mutating func wait(
        _ run: Run, _ hold: ItemWait.Hold, in time: Duration?, because error: RecordedError?, at now: Timestamp
    ) {
        var entry = entries[hold] ?? Entry(retryAt: now, waitedAt: now)
        let isRepetition = entry.canary == run
        if isRepetition { entry.canary = nil }
        if isRepetition || entry.retryAt <= now && entry.canary == nil {
            let growing = min(Self.intervals.first * (1 << min(entry.failures, 6)), Self.intervals.longest)
            entry.retryAt = now + max(time ?? growing, Self.shortest)
            entry.failures += 1
        }
        (entry.waitedAt, entry.error) = (now, error)
        entries[hold] = entry
    }

    /// Adds the hold of an item that waited in the last process.
    mutating func restore(_ wait: ItemWait, because error: RecordedError?) {
        let retryAt = min(wait.retryAt, entries[wait.hold]?.retryAt ?? wait.retryAt)
        entries[wait.hold] = Entry(retryAt: retryAt, waitedAt: wait.since, error: error)
    }

    /// Records the canary of a hold.
    mutating func began(_ run: Run, for hold: ItemWait.Hold) { entries[hold]?.canary = run }

    /// Permits the repetition of a hold now.
    mutating func hasten(_ hold: ItemWait.Hold, at now: Timestamp) {
        guard let entry = entries[hold], entry.canary == nil, canEnd(hold, at: now) else { return }
        entries[hold]?.retryAt = min(entry.retryAt, now)
    }

    /// Whether the shortest wait has passed.
    func canEnd(_ hold: ItemWait.Hold, at now: Timestamp) -> Bool {
        entries[hold].map { now.since($0.waitedAt) >= Self.shortest } ?? false
    }

    mutating func remove(_ hold: ItemWait.Hold) { entries[hold] = nil }

    /// The holds with a repetition that is due.
    func due(at now: Timestamp) -> [ItemWait.Hold] {
        entries.filter { $0.value.canary == nil && $0.value.retryAt <= now }
            .sorted { $0.value.retryAt < $1.value.retryAt }.map(\.key)
    }

    /// The time of the next repetition that is not due yet; nil: none.
    func nextRetry(after now: Timestamp) -> Timestamp? {
        entries.values.lazy.filter { $0.canary == nil && $0.retryAt > now }.map(\.retryAt).min()
    }

    /// The hold that prevents the run of a queued item with this party; nil: none. A run under an open circuit sends no
    /// request, and succeeds if all its bytes are on disk.
    func blocking(_ party: String?) -> ItemWait.Hold? {
        guard !entries.isEmpty else { return nil }
        let parties = party.map { [ItemWait.Hold(.quota, of: $0), ItemWait.Hold(.credentials, of: $0)] } ?? []
        return (parties + [ItemWait.Hold(.disk, of: "")]).first { entries[$0] != nil }
    }
}
