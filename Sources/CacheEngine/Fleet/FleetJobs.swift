import CacheCore
import CacheStore
import EtcdClient
import Logging

/// The jobs of a fleet: the ones that this node runs, and what etcd states of the others.
///
/// One node at a time runs a job: the node with its claim. It stores the progress of the items every few seconds. When
/// its lease ends, the claim ends, and the first other node that claims the job continues it after the recorded items.
/// A finished head in etcd ends the job at each node.
final class FleetJobs: Sendable {
    /// A job that this node runs. The files of playlists are known here only.
    struct Running: Sendable {
        var head: FleetJobHead
        /// The revisions of the head and of the claim.
        var revision, claim: Int64
        /// All items, those that the client has ordered first.
        var items: [JobItemRecord]
        /// The numbers of ``FleetJobResults`` that etcd lacks.
        var unsaved: Set<Int> = []
        var isHeadSaved = true

        var isSaved: Bool { isHeadSaved && unsaved.isEmpty }
    }

    struct State: Sendable {
        /// The heads as they were last read, with their revisions.
        var heads: [String: (head: FleetJobHead, revision: Int64)] = [:]
        var claims: [String: FleetJobStore.Claim] = [:]
        var running: [String: Running] = [:]
        /// Jobs that this node cannot continue, at these revisions.
        var unusable: [String: Int64] = [:]
        var lease: Int64?
        /// Whether this node claims jobs of others.
        var isReady = false
        var renewedAt = Duration.zero
        /// The URL of the router; nil: this node runs all items itself.
        var router: ItemRouter?
    }

    /// The interval at which the progress of running jobs is stored, and jobs without a node are searched.
    private static let interval = Duration.seconds(3)
    private static let streamPause = Duration.seconds(1)
    private static let renewalInterval = Duration.seconds(3600)
    /// The number of ``FleetJobResults`` in one request, of at most 100 KiB each.
    private static let resultsAtOnce = 8

    let store: FleetJobStore
    let prefetch: PrefetchQueue
    let logger: Logger
    let wallClock: any WallClock
    let uptime: @Sendable () -> Duration
    /// One change of jobs at a time.
    let turn = AsyncMutex()
    /// Guards the state.
    let state = OrderedMutex(.leaf, State())
    private let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    init(_ store: FleetJobStore, prefetch: PrefetchQueue, of context: EngineContext) {
        self.store = store
        self.prefetch = prefetch
        logger = context.logger
        wallClock = context.wallClock
        uptime = context.uptime
    }

    /// Follows the jobs until cancellation.
    func run(clock: any Clock<Duration>) async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                await self.store.desired.signal(
                    self.wake, below: self.store.prefix, every: Self.interval, pause: Self.streamPause, clock: clock)
            }
            for await _ in wakes {
                do throws(CacheError) {
                    try await refresh()
                } catch {
                    // The node reports the loss of etcd itself. Running jobs go on.
                    logger.debug("the jobs of the fleet cannot be read", metadata: ["error": "\(error)"])
                }
            }
        }
    }

    /// This node has another lease, or takes part in the fleet in another way.
    func update(lease: Int64?, isReady: Bool) {
        let isNew = state.withLock { state in
            defer { (state.lease, state.isReady) = (lease, isReady) }
            return state.lease != lease || state.isReady != isReady
        }
        if isNew { wake.yield() }
    }

    /// Something has changed that concerns this node.
    func wakeUp() { wake.yield() }

    func update(router: ItemRouter?) { state.withLock { $0.router = router } }

    // MARK: Reading

    /// Reads the heads that have changed, stores the progress of running jobs, and claims jobs that no node runs.
    func refresh() async throws(CacheError) {
        try await turn.pass { () async throws(CacheError) in
            try await readHeads()
            try await renew()
            for id in state.withLock({ Array($0.running.keys) }) { try await check(id) }
            for id in state.withLock({ Array($0.running.keys) }) { try await flush(id) }
            try await claimOthers()
        }
    }

    /// Reads the heads that have changed. Call it in ``turn``.
    func readHeads() async throws(CacheError) {
        let overview = try await store.overview()
        let (changed, moved) = state.withLock { state in
            let changed = overview.heads.filter { state.heads[$0.key]?.revision != $0.value }.map(\.key)
            let moved = overview.heads.keys.filter { state.claims[$0]?.node != overview.claims[$0]?.node }
            return (changed, moved)
        }
        let heads = try await store.heads(changed)
        let seen = state.withLock { state in
            state.heads = state.heads.filter { overview.heads[$0.key] != nil }
            state.heads.merge(heads) { $1 }
            state.claims = overview.claims
            state.unusable = state.unusable.filter { overview.heads[$0.key] == $0.value }
            return Set(changed + moved).filter { state.running[$0] == nil }
        }
        prefetch.signal(seen)
    }

    /// Renews the leases of running jobs.
    private func renew() async throws(CacheError) {
        let now = uptime()
        let due = state.withLock { state in
            guard now - state.renewedAt > Self.renewalInterval else { return [FleetJobHead]() }
            state.renewedAt = now
            return state.running.values.map(\.head)
        }
        for head in due { try await store.renew(head) }
    }

    /// Ends or resumes a running job if its state or its claim in etcd is not that of this node.
    private func check(_ id: String) async throws(CacheError) {
        let isOwn = state.withLock { state in
            guard let job = state.running[id] else { return true }
            return state.heads[id]?.revision == job.revision && state.claims[id]?.revision == job.claim
        }
        guard !isOwn else { return }
        guard let entry = try await store.entry(id), !entry.head.jobState.isFinished else { return drop(id) }
        guard let claim = entry.claim else { return try await resume(id, entry) }
        guard claim.process == store.process else { return drop(id) }
        adopt(id, entry, claim: claim.revision)
    }

    /// Notes the revisions of a running job in etcd, and takes over terms that another node has changed.
    private func adopt(_ id: String, _ entry: FleetJobStore.Entry, claim: Int64) {
        let terms = entry.head.terms
        let isNew = state.withLock { state in
            guard let present = state.running[id]?.head.terms.revision else { return false }
            state.running[id]?.revision = entry.revision
            state.running[id]?.claim = claim
            guard terms.revision > present else { return false }
            state.running[id]?.head.terms = terms
            return true
        }
        if isNew { prefetch.apply(terms, of: id) }
    }

    /// Claims a running job again whose claim has ended with the lease.
    private func resume(_ id: String, _ entry: FleetJobStore.Entry) async throws(CacheError) {
        guard let lease = state.withLock(\.lease),
            let claim = try await store.claim(id, at: entry.revision, nodeLease: lease)
        else { return }
        adopt(id, entry, claim: claim)
    }

    /// Ends the run of a job here: it has ended, or another node runs it.
    private func drop(_ id: String) {
        guard state.withLock({ $0.running.removeValue(forKey: id) }) != nil else { return }
        prefetch.change { $0.remove(id, at: $1) }
        prefetch.signal([id])
    }

    // MARK: Claims

    /// Claims the unfinished jobs that no node runs, and continues them.
    private func claimOthers() async throws(CacheError) {
        let (lease, ids) = state.withLock { state -> (Int64?, [String]) in
            guard state.isReady else { return (nil, []) }
            // A claim of this node is that of its last process, or of a request without an answer.
            let ids = state.heads.filter { id, entry in
                !entry.head.jobState.isFinished && state.running[id] == nil && state.unusable[id] == nil
                    && state.claims[id].map { $0.node == store.node } ?? true
            }
            return (state.lease, ids.sorted { $0.value.head.createdAt < $1.value.head.createdAt }.map(\.key))
        }
        guard let lease else { return }
        for id in ids {
            let (entry, present) = state.withLock { ($0.heads[id], $0.claims[id]) }
            guard let entry,
                let claim = try await store.claim(id, at: entry.revision, over: present, nodeLease: lease)
            else { continue }
            do throws(CacheError) {
                let items = try await store.items(of: id, entry.head)
                begin(id, entry.head, revision: entry.revision, claim: claim, items)
                logger.notice("a job of the fleet is continued at this node", metadata: ["job": "\(id)"])
            } catch {
                try await setAside(id, entry.revision, claim, because: error)
            }
        }
    }

    /// Leaves a job to other nodes after an error of its documents.
    private func setAside(
        _ id: String, _ revision: Int64, _ claim: Int64, because error: CacheError
    ) async throws(CacheError) {
        try await store.release(id, claim)
        guard error.code == .fleetConflict || error.code == .storageCorrupt else { throw error }
        state.withLock { $0.unusable[id] = revision }
        logger.error(
            "a job of the fleet cannot be continued at this node", metadata: ["job": "\(id)", "error": "\(error)"])
    }

    /// Schedules a claimed job.
    func begin(_ id: String, _ head: FleetJobHead, revision: Int64, claim: Int64, _ items: [JobItemRecord]) {
        var record = head.record(id)
        record.items = items
        for index in items.indices where !items[index].state.isFinished { record.items[index].state = .queued }
        let isRouted = state.withLock { state in
            state.running[id] = Running(head: head, revision: revision, claim: claim, items: record.items)
            state.heads[id] = (head, revision)
            return state.router != nil
        }
        prefetch.add(record, isRouted: isRouted)
    }

    // MARK: Progress

    /// The jobs of other nodes that wait for a reader: it can be one of this node.
    var triggers: [(job: String, trigger: JobTrigger)] {
        state.withLock { state in
            state.heads.compactMap { id, entry in
                guard state.running[id] == nil, !entry.head.jobState.isFinished, let trigger = entry.head.trigger,
                    trigger.passedAt == nil
                else { return nil }
                return (id, trigger)
            }
        }
    }

    /// Whether this node runs the job.
    func runs(_ id: String) -> Bool { state.withLock { $0.running[id] != nil } }

    /// Notes changes of the schedule; they are stored later. `progress`: the present sums of a job.
    func note(_ changes: [PrefetchSchedule.Change], progress: (String) -> JobSnapshot?) {
        // The sums are read before the lock is taken: they ask for the node of the job.
        let changes = changes.map { (change: $0, progress: progress($0.job.id)) }
        let hasMoved = state.withLock { state in
            var hasMoved = false
            for (change, progress) in changes {
                guard let present = state.running[change.job.id]?.head.state else { continue }
                hasMoved = hasMoved || present != change.job.state.rawValue
                state.running[change.job.id]?.apply(change, progress)
            }
            return hasMoved
        }
        if hasMoved { wake.yield() }
    }

    /// Stores the progress of a running job. Call it in ``turn``.
    func flush(_ id: String) async throws(CacheError) {
        while let change = state.withLock({ $0.running[id]?.takeChange(of: id, atMost: Self.resultsAtOnce) }) {
            var revision: Int64?
            do throws(CacheError) {
                revision = try await store.commit(change)
            } catch {
                state.withLock { $0.running[id]?.restore(change) }
                guard error.code == .notFound else { throw error }
                return drop(id)  // the lease has ended, and with it the job
            }
            guard let revision else {
                state.withLock { $0.running[id]?.restore(change) }
                wakeUp()
                return
            }
            let isOver = change.releasesClaim
            state.withLock { state in
                state.heads[id] = (change.head, revision)
                state.running[id]?.revision = revision
                if isOver { (state.running[id], state.claims[id]) = (nil, nil) }
            }
            if isOver {
                try await store.renew(change.head)
                prefetch.signal([id])
            }
        }
    }
}

extension FleetJobs.Running {
    /// Notes a change of the schedule.
    mutating func apply(_ change: PrefetchSchedule.Change, _ progress: JobSnapshot?) {
        for item in change.items {
            if item.index < items.count {
                items[item.index] = item
            } else if item.index == items.count {
                items.append(item)
            }
            guard items.indices.contains(item.index) else { continue }
            unsaved.insert(FleetJobResults.ordered(item.index, in: items) / FleetJobResults.count)
        }
        head.apply(change.job)
        if let progress { head.apply(progress) }
        isHeadSaved = false
    }

    /// The unsaved changes, with at most `limit` results; nil: none. The end of the job comes with the last ones.
    mutating func takeChange(of id: String, atMost limit: Int) -> FleetJobStore.Change? {
        guard !isSaved else { return nil }
        var change = FleetJobStore.Change(id: id, head: head, revision: revision, claim: claim)
        for number in unsaved.sorted().prefix(limit) {
            change.results[number] = FleetJobResults(number, of: items, ordered: head.items, round: head.round)
            unsaved.remove(number)
        }
        if head.jobState.isFinished {
            change.releasesClaim = unsaved.isEmpty
            if !unsaved.isEmpty { change.head.state = JobState.running.rawValue }
        }
        isHeadSaved = unsaved.isEmpty
        return change
    }

    /// Marks changes as unsaved again.
    mutating func restore(_ change: FleetJobStore.Change) {
        isHeadSaved = false
        unsaved.formUnion(change.results.keys)
    }
}
