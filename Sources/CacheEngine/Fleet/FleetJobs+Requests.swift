import CacheCore
import CacheStore
import Logging
import Synchronization

/// Requests of clients for the jobs of a fleet, at each node.
extension FleetJobs {
    /// The largest number of jobs in etcd, and the largest size of their items: all together must leave room in etcd's
    /// quota of 2 GB.
    private static let mostJobs = 1000
    private static let mostBytes = 256 << 20
    /// The largest size of the items of one job.
    private static let mostBytesOfJob = 16 << 20
    /// The number of items from which a job stays at the node that has accepted it.
    private static let mostItems = 10_000
    /// The number of superseded jobs that end in the transaction of the new one; etcd permits 128 operations.
    private static let endedAtOnce = 40
    private static let mostAttempts = 20

    // MARK: Creation

    /// Adds a new job, which this node runs; it is durable when this returns. Nil: the job is too large for etcd.
    ///
    /// Throws `.overloaded` if the fleet has too many jobs, and `.fleetUnavailable`.
    func submit(_ record: JobRecord, idempotency: IdempotencyKey?) async throws(CacheError) -> JobInsertion? {
        guard record.items.count <= Self.mostItems, let chunks = try FleetJobChunks.chunks(of: record.items),
            chunks.reduce(0, { $0 + $1.count }) <= Self.mostBytesOfJob
        else { return nil }
        if let idempotency, let earlier = try await store.insertion(with: idempotency) { return earlier }
        try await refresh()
        return try await turn.pass { () async throws(CacheError) in
            try prefetch.checkRoom(for: record)
            try await makeRoom(for: chunks)
            let lease = try await store.grantLease()
            do throws(CacheError) {
                try await store.put(chunks, of: record.id, lease: lease)
                let insertion = try await insert(record, chunks, idempotency, lease)
                if case .repeated = insertion { await store.remove(lease: lease) }
                return insertion
            } catch {
                await store.remove(lease: lease)
                throw error
            }
        }
    }

    private func insert(
        _ record: JobRecord, _ chunks: [[UInt8]], _ idempotency: IdempotencyKey?, _ lease: Int64
    ) async throws(CacheError) -> JobInsertion {
        guard let nodeLease = state.withLock(\.lease) else {
            throw CacheError(.fleetUnavailable, "The node has no lease of etcd yet.")
        }
        let tally = record.items.reduce(into: JobTally()) { $0.add($1) }
        let snapshot = JobSnapshot(record: record, tally: tally, version: record.createdAt.milliseconds)
        let head = FleetJobHead(snapshot, items: record.items.count, chunks: chunks, lease: lease)
        for _ in 0..<Self.mostAttempts {
            let superseded = endings(by: record)
            let revision = try await store.insert(
                record.id, head, request: idempotency, ending: Array(superseded.prefix(Self.endedAtOnce)),
                nodeLease: nodeLease)
            if let revision {
                begin(record.id, head, revision: revision, claim: revision, record.items)
                for change in superseded.dropFirst(Self.endedAtOnce) { _ = try await store.commit(change) }
                wakeUp()
                return .inserted(superseded: superseded.map(\.id))
            }
            if let idempotency, let earlier = try await store.insertion(with: idempotency) { return earlier }
            try await readHeads()
        }
        throw CacheError(.fleetUnavailable, "Too many jobs of the queue change at the same time.")
    }

    /// The ends of the unfinished jobs that a job supersedes.
    private func endings(by record: JobRecord) -> [FleetJobStore.Change] {
        guard record.supersedes, let queue = record.queue else { return [] }
        let now = wallClock.now()
        let jobs = state.withLock(\.heads).filter { id, entry in
            entry.head.queue == queue && !entry.head.jobState.isFinished && id != record.id
        }
        return jobs.map { id, entry in
            var head = entry.head
            head.end(as: .cancelled, because: .superseded(by: record.id), at: now)
            head.supersedes = true
            return FleetJobStore.Change(id: id, head: head, revision: entry.revision, releasesClaim: true)
        }
    }

    /// Removes the oldest finished jobs if etcd has no room for another one.
    private func makeRoom(for chunks: [[UInt8]]) async throws(CacheError) {
        let heads = state.withLock(\.heads)
        var (count, bytes) = (heads.count + 1, chunks.reduce(0) { $0 + $1.count })
        bytes += heads.values.reduce(0) { $0 + $1.head.bytes }
        let finished = heads.filter { $0.value.head.jobState.isFinished }
        for (id, entry) in finished.sorted(by: { $0.value.head.version < $1.value.head.version })
        where count > Self.mostJobs || bytes > Self.mostBytes {
            await store.remove(lease: entry.head.lease)
            state.withLock { $0.heads[id] = nil }
            (count, bytes) = (count - 1, bytes - entry.head.bytes)
        }
        guard count <= Self.mostJobs, bytes <= Self.mostBytes else {
            throw CacheError(.overloaded, "The fleet has too many unfinished jobs: repeat later, or cancel jobs.")
        }
    }

    // MARK: State

    /// The state of a job that is not in the schedule; nil: the fleet has no such job.
    func snapshot(_ id: String) async throws(CacheError) -> JobSnapshot? {
        // A job that has ended here may not be in etcd yet.
        if let job = state.withLock({ $0.running[id] }) { return job.head.snapshot(id, node: store.node) }
        do throws(CacheError) {
            guard let entry = try await store.entry(id) else { return nil }
            return entry.head.snapshot(id, node: entry.claim?.node)
        } catch {
            guard let known = lastKnown(id) else { throw error }
            return known
        }
    }

    /// The state of a job as it was last read.
    private func lastKnown(_ id: String) -> JobSnapshot? {
        state.withLock { state in state.heads[id]?.head.snapshot(id, node: state.claims[id]?.node) }
    }

    /// All jobs that a query selects, newest first; without etcd as they were last read.
    func snapshots(_ query: JobQuery) async -> [JobSnapshot] {
        do throws(CacheError) { try await refresh() } catch {
            logger.debug("the list of jobs is that of the last contact", metadata: ["error": "\(error)"])
        }
        let jobs = state.withLock { state in
            state.heads.map { id, entry in
                let node = state.running[id] != nil ? store.node : state.claims[id]?.node
                return (state.running[id]?.head ?? entry.head).snapshot(id, node: node)
            }
        }
        return jobs.map { prefetch.scheduled($0.record.id) ?? $0 }
            .filter { job in
                (query.state.map { $0 == job.record.state } ?? true)
                    && (query.label.map { $0 == job.record.label } ?? true)
                    && (query.queue.map { $0 == job.record.queue } ?? true)
            }
            .sorted { $0.place(before: $1) }
    }

    /// The items of a job, at least the first `count` ones, without the files of playlists unless this node runs it; nil: the
    /// fleet has no such job.
    func items(_ id: String, first count: Int) async throws(CacheError) -> [JobItemRecord]? {
        if let job = state.withLock({ $0.running[id] }) { return job.items }
        guard let entry = try await store.entry(id) else { return nil }
        var record = entry.head.record(id)
        record.items = try await store.items(of: id, entry.head, first: count)
        record.concludeItems()
        return record.items
    }

    // MARK: Changes

    /// Cancels a job, at whichever node it runs. Returns false if the fleet has no such job.
    func cancel(_ id: String) async throws(CacheError) -> Bool {
        if runs(id) {
            prefetch.change { $0.cancel(id, at: $1) }
            try await prefetch.saveChanges()
            try await turn.pass { () async throws(CacheError) in try await flush(id) }
            return true
        }
        for _ in 0..<Self.mostAttempts {
            guard let entry = try await store.entry(id) else { return false }
            guard !entry.head.jobState.isFinished else { return true }
            var head = entry.head
            head.end(as: .cancelled, because: nil, at: wallClock.now())
            let change = FleetJobStore.Change(id: id, head: head, revision: entry.revision, releasesClaim: true)
            guard try await store.commit(change) == nil else {
                wakeUp()
                return true
            }
        }
        throw CacheError(.fleetUnavailable, "The job changes too often to be cancelled: repeat the request.")
    }

    /// Changes the terms of an unfinished job, at whichever node it runs: that node takes them over from etcd. Returns false
    /// if the fleet has no such job. Throws `.conflict` if it is finished, and the errors of `change`.
    func change(
        _ id: String, by change: (JobTerms) throws(CacheError) -> JobTerms
    ) async throws(CacheError) -> Bool {
        for _ in 0..<Self.mostAttempts {
            guard let entry = try await store.entry(id) else { return false }
            guard !entry.head.jobState.isFinished else { throw PrefetchQueue.finished }
            var head = entry.head
            head.terms = try change(entry.head.terms)
            guard head.terms != entry.head.terms else { return true }
            head.version = max(head.version + 1, wallClock.now().milliseconds)
            guard try await store.commit(FleetJobStore.Change(id: id, head: head, revision: entry.revision)) != nil
            else { continue }
            if runs(id) { try await refresh() } else { wakeUp() }
            return true
        }
        throw CacheError(.fleetUnavailable, "The job changes too often to be changed by a request: repeat it.")
    }

    /// Runs a finished job again, here. `again`: its new state; nil: it stays as it is. Returns false if the fleet has no
    /// such job.
    func retry(_ id: String, as again: (JobRecord) -> JobRecord?) async throws(CacheError) -> Bool {
        try await refresh()
        return try await turn.pass { () async throws(CacheError) in
            guard let entry = try await store.entry(id) else { return false }
            guard entry.head.jobState.isFinished, !runs(id) else {
                throw CacheError(.conflict, "The job is not finished.")
            }
            guard let nodeLease = state.withLock(\.lease) else {
                throw CacheError(.fleetUnavailable, "The node has no lease of etcd yet.")
            }
            var finished = entry.head.record(id)
            finished.items = try await store.items(of: id, entry.head)
            finished.concludeItems()
            guard let record = again(finished) else { return true }
            try prefetch.checkRoom(for: record)
            var head = entry.head
            head.apply(record)
            head.owner = record.owner.map(FleetTokenOwner.init)
            head.round += 1
            head.version = max(head.version + 1, wallClock.now().milliseconds)
            head.sums = FleetJobHead.Sums(record.items.reduce(into: JobTally()) { $0.add($1) })
            guard let revision = try await store.claim(id, at: entry.revision, as: head, nodeLease: nodeLease) else {
                throw CacheError(.conflict, "Another node has changed the job: read it again and retry.")
            }
            begin(id, head, revision: revision, claim: revision, record.items)
            for change in endings(by: record) { _ = try await store.commit(change) }
            return true
        }
    }
}

extension JobSnapshot {
    /// The order of lists: the newest job first.
    func place(before other: JobSnapshot) -> Bool {
        (record.createdAt, record.id) > (other.record.createdAt, other.record.id)
    }
}
