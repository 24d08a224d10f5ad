package import CacheCore
import CacheStore

/// Creates, lists and changes prefetch jobs for the management API.
package struct PrefetchJobs: Sendable {
    let prefetch: PrefetchQueue
    let catalog: Catalog
    let commits: CommitQueue
    let resolver: AssetResolver
    let configuration: CacheConfiguration
    let random: any RandomSource
    /// The time after which a list saves no further changes.
    private static let listWait = Duration.milliseconds(50)

    /// Creates a prefetch job; it is durable when this returns. A repeated idempotency key returns the job that it was
    /// first used for. A request that supersedes ends the unfinished jobs of its queue in the same transaction.
    ///
    /// Throws `.invalidField` with the path of the field, such as `items[3].ranges[0]`, also for an item that is known
    /// to be larger than the capacity; `.jobTooLarge` for more items than `limits.jobItems`; `.overloaded` if all jobs
    /// have too many unfinished items; `.conflict` if the idempotency key was used with another request;
    /// `.upstreamForbidden` for hosts that the configuration does not permit; and `.tokenScope` for an item outside the
    /// limits of the owner. In a fleet each node can continue the job; it
    /// then also throws `.fleetUnavailable`.
    package func submit(_ order: CreateJobRequest, idempotencyKey: String? = nil) async throws(CacheError)
        -> JobSnapshot
    {
        try await submit(
            try await checked(order), idempotencyKey.map { IdempotencyKey(key: $0, bodyHash: order.fingerprint) })
    }

    /// Creates the job of a checked request. `isSpooled`: the items are in its spool file.
    func submit(
        _ record: JobRecord, _ key: IdempotencyKey?, isSpooled: Bool = false
    ) async throws(CacheError) -> JobSnapshot {
        var insertion = try await prefetch.fleet?.submit(record, idempotency: key)
        if insertion == nil {
            insertion = try await prefetch.submit(record, idempotency: key, isSpooled: isSpooled)
        }
        switch insertion ?? .inserted() {
        case .inserted: return try await prefetch.job(record.id)
        case .repeated(let id, isSameBody: true):
            return try await prefetch.job(id)
        case .repeated(_, isSameBody: false):
            throw CacheError(.conflict, "The Idempotency-Key was used for another job: send a new one.")
        }
    }

    /// Throws the errors of ``submit(_:idempotencyKey:)`` for a request that can never be accepted. No job is made.
    package func check(_ order: CreateJobRequest) async throws(CacheError) { _ = try await checked(order) }

    /// The job with a new identifier. Throws `.tokenScope` if the owner may not make it.
    func checked(_ order: CreateJobRequest) async throws(CacheError) -> JobRecord {
        guard (1...CreateJobRequest.maxItems).contains(order.items.count) else {
            throw .invalid("items", "A job has 1 to \(CreateJobRequest.maxItems) items.")
        }
        var record = try await checkedHead(of: order)
        if let refusal = CreateJobRequest.refusal(of: order.items.count, maxItems: prefetch.limits.jobItems) {
            throw refusal
        }
        // Lengths that were learned a moment ago must be in the catalog.
        try await commits.flush()
        record.items = try await checkedItems(order.items, from: 0, of: order)
        return record
    }

    /// The job with a new identifier, without items.
    func checkedHead(of order: CreateJobRequest) async throws(CacheError) -> JobRecord {
        try await checkOwner(of: order)
        try await checkZones(of: order.times.windows)
        // The clients' deadlines are instants of the system's clock; so is the time of the creation.
        var record = try order.head(id: random.identifier(), at: prefetch.civilClock.now())
        record.times.trigger = try await trigger(of: order)
        return record
    }

    /// The records of the next items of a request, from an index on. Checks names, rights, ranges and sizes, and enters the
    /// sizes of items with a length that the catalog knows.
    func checkedItems(
        _ items: [CreateJobRequest.Item], from first: Int, of order: CreateJobRequest
    ) async throws(CacheError) -> [JobItemRecord] {
        let items = named(items)
        if let owner = order.owner, owner.limits.isLimited {
            for item in items { try await check(item.reference, for: owner) }
        }
        var records: [JobItemRecord] = []
        for (place, item) in items.enumerated() {
            var record = try order.record(of: item, at: first + place)
            if let last = records.last { record.share(with: last) }
            records.append(record)
        }
        try await measure(&records)
        return records
    }

    /// Throws `.invalidField` for an asset that cannot exist, or is unknown by its identifier.
    private func trigger(of order: CreateJobRequest) async throws(CacheError) -> JobTrigger? {
        guard let (reference, percent) = order.when else { return nil }
        switch reference {
        case .known(let id):
            guard try await resolver.key(of: id) != nil else {
                throw .invalid("when.assetId", "There is no such asset: name it by origin and path.")
            }
            return JobTrigger(assetID: id, percent: percent)
        case .mounted(let origin, let path, _):
            let id: AssetID
            do throws(CacheError) { id = try await resolver.resolve(reference).id } catch {
                let field = if case .notFound = error.code { "origin" } else { "path" }
                throw CacheError(.invalidField("when.\(field)"), error.message)
            }
            return JobTrigger(
                assetID: id, origin: origin, path: String(path.prefix { $0 != "?" }), percent: percent)
        case .url: throw .invalid("when", "An asset by assetId, or by origin and path, is expected here.")
        }
    }

    private func checkOwner(of order: CreateJobRequest) async throws(CacheError) {
        guard let owner = order.owner, owner.limits.isLimited else { return }
        if let (reference, _) = order.when { try await check(reference, for: owner) }
        // The queue may have jobs of other readers.
        if order.supersedes { throw owner.refusal("supersede, which cancels other jobs") }
    }

    private func check(_ reference: AssetReference, for owner: TokenOwner) async throws(CacheError) {
        try await owner.check(reference) { id async throws(CacheError) in try await resolver.key(of: id) }
    }

    /// A page of jobs, newest first. `nextCursor` is nil on the last page.
    package func page(
        _ query: JobQuery = JobQuery()
    ) async throws(CacheError) -> (items: [JobSnapshot], nextCursor: String?) {
        // The states of a large job can take long to save.
        await prefetch.saveLogged(within: Self.listWait)
        if let fleet = prefetch.fleet { return try await page(query, with: await fleet.snapshots(query)) }
        let page = try await catalog.jobPage(query)
        return (page.items.map { prefetch.scheduled($0.record.id) ?? $0 }, page.nextCursor)
    }

    /// A page of the jobs of this node and of its fleet together.
    private func page(
        _ query: JobQuery, with shared: [JobSnapshot]
    ) async throws(CacheError) -> (items: [JobSnapshot], nextCursor: String?) {
        let place = try FleetJobPlace(query.cursor)
        let limit = min(max(query.limit, 1), 1000)
        let rest = place.last.map { last in shared.filter { last.precedes($0) } } ?? shared
        var own = query
        (own.limit, own.cursor) = (limit, place.ownCursor)
        let page = place.hasOwn ? try await catalog.jobPage(own) : JobPage(items: [])
        let ofNode = page.items.map { prefetch.scheduled($0.record.id) ?? $0 }
        let items = Array((ofNode + rest.prefix(limit)).sorted { $0.place(before: $1) }.prefix(limit))
        let ownCount = items.count { $0.place == nil }
        guard ofNode.count + rest.count > limit || page.nextCursor != nil else { return (items, nil) }
        var next = place
        next.last = items.last { $0.place != nil }.map(FleetJobPlace.Last.init) ?? place.last
        if ownCount > 0 {
            own.limit = ownCount
            let ownPage = try await catalog.jobPage(own)
            (next.ownCursor, next.hasOwn) = (ownPage.nextCursor, ownPage.nextCursor != nil)
        }
        return (items, next.text)
    }

    /// The number of jobs on all pages of a list.
    package func count(_ query: JobQuery) async throws(CacheError) -> Int {
        let shared = await prefetch.fleet?.snapshots(query).count ?? 0
        return try await catalog.jobCount(query) + shared
    }

    /// The job with this identifier. Throws `.notFound`.
    package func job(_ id: String) async throws(CacheError) -> JobSnapshot { try await prefetch.job(id) }

    /// A page of a job's items, in their order. Throws `.notFound` for an unknown job.
    package func items(
        _ id: String, limit: Int = 100, cursor: String? = nil
    ) async throws(CacheError) -> (items: [JobItemRecord], nextCursor: String?) {
        let place = try JobItemPage.Place(of: id, limit: limit, cursor: cursor)
        // The catalog has all items of the other jobs, once those of spool files are loaded.
        if !prefetch.isLoaded { try await prefetch.loadUnfinishedJobs() }
        if let items = prefetch.look({ $0.items(of: id, after: place.last, atMost: place.limit + 1) }) {
            let page = JobItemPage(items, at: place)
            return (page.items, page.nextCursor)
        }
        if let page = try await catalog.jobItems(id, limit: limit, cursor: cursor) {
            return (page.items, page.nextCursor)
        }
        let last = min(max(place.last, -1), Int.max - 2000)
        guard let items = try await prefetch.fleet?.items(id, first: last + place.limit + 2) else {
            throw PrefetchQueue.unknown(id)
        }
        let rest = items.dropFirst(min(last, items.count) + 1)
        let page = JobItemPage(Array(rest.prefix(place.limit + 1)), at: place)
        return (page.items, page.nextCursor)
    }

    /// Cancels a job; the fetched bytes stay in the cache. A finished job is not changed. Throws `.notFound`.
    package func cancel(_ id: String) async throws(CacheError) -> JobSnapshot {
        if let fleet = prefetch.fleet, try await catalog.jobSnapshot(id) == nil {
            guard try await fleet.cancel(id) else { throw PrefetchQueue.unknown(id) }
            return try await prefetch.job(id)
        }
        if prefetch.look({ !$0.contains(id) }) {
            guard let stored = try await catalog.jobSnapshot(id) else { throw PrefetchQueue.unknown(id) }
            if !stored.record.state.isFinished { try await prefetch.loadUnfinishedJobs() }
        }
        prefetch.change { $0.cancel(id, at: $1) }
        try await prefetch.saveEnd(of: id)
        return try await prefetch.job(id)
    }

    /// Throws `.invalidField` for a window in an unknown zone. The rules are read from files.
    private func checkZones(of windows: [JobWindow]) async throws(CacheError) {
        guard !windows.isEmpty else { return }
        try await resolver.context.diskThreads.run { [zones = prefetch.zones] in try zones.check(windows) }
    }

    /// Changes the terms of an unfinished job; the change is durable when this returns.
    ///
    /// - Parameter condition: Compared with the revision of the job.
    ///
    /// Throws `.conflict` for a finished job, `.preconditionFailed`, `.invalidField` for a deadline that has passed, and
    /// `.notFound`.
    package func change(
        _ id: String, by patch: JobPatch, if condition: Precondition = .none
    ) async throws(CacheError) -> JobSnapshot {
        try await checkZones(of: patch.windows.value ?? [])
        let now = prefetch.civilClock.now()
        return try await change(id, if: condition) { terms throws(CacheError) in try patch.applied(to: terms, at: now) }
    }

    /// A reader has passed the point that a job waits for.
    func passed(_ id: String) async throws(CacheError) {
        let now = prefetch.civilClock.now()
        _ = try await change(id, if: .none) { terms throws(CacheError) in
            guard terms.times.trigger != nil, terms.times.trigger?.passedAt == nil else { return terms }
            var changed = terms
            changed.times.trigger?.passedAt = now
            changed.revision += 1
            return changed
        }
    }

    private func change(
        _ id: String, if condition: Precondition, by patch: (JobTerms) throws(CacheError) -> JobTerms
    ) async throws(CacheError) -> JobSnapshot {
        func changed(_ terms: JobTerms) throws(CacheError) -> JobTerms {
            if case .revision(let revision) = condition, revision != terms.revision {
                throw CacheError(
                    .preconditionFailed,
                    "If-Match does not match the job: its ETag is \"\(terms.revision)\" now; read it again.")
            }
            return try patch(terms)
        }
        if let fleet = prefetch.fleet, try await catalog.jobSnapshot(id) == nil {
            guard try await fleet.change(id, by: changed) else { throw PrefetchQueue.unknown(id) }
            return try await prefetch.job(id)
        }
        try await prefetch.loadUnfinishedJobs()
        while true {
            guard let record = prefetch.look({ $0.record(of: id) }), !record.state.isFinished else {
                _ = try await prefetch.job(id)
                throw PrefetchQueue.finished
            }
            let terms = try changed(record.terms)
            guard terms != record.terms else { return try await prefetch.job(id) }
            if prefetch.apply(terms, of: id, over: record.revision) { break }
        }
        try await prefetch.saveTerms(of: id)
        return try await prefetch.job(id)
    }

    /// Queues the items again that failed, timed out or were cancelled. A deadline that has passed is removed. If the
    /// job supersedes, it ends the unfinished jobs of its queue in the same transaction.
    ///
    /// - Parameter owner: The token of the request. If the job is one of the same token, it gets its present limits;
    ///   a job of another token keeps its own.
    ///
    /// Throws `.conflict` while the job is not finished, and `.notFound`.
    package func retry(_ id: String, by owner: TokenOwner? = nil) async throws(CacheError) -> JobSnapshot {
        let now = prefetch.civilClock.now()
        if let fleet = prefetch.fleet, try await catalog.jobSnapshot(id) == nil {
            guard try await fleet.retry(id, as: { $0.begunAgain(at: now, by: owner) }) else {
                throw PrefetchQueue.unknown(id)
            }
            return try await prefetch.job(id)
        }
        try await prefetch.resubmit(id) { $0.begunAgain(at: now, by: owner) }
        return try await prefetch.job(id)
    }

    /// A stream of the job's states: the present one, and one after changes. Intermediate states may be skipped, but
    /// never the last one; the stream ends after the finished job. Throws `.notFound`.
    package func events(_ id: String) async throws(CacheError) -> AsyncStream<JobSnapshot> {
        let watch = JobObserver(id, in: prefetch)
        _ = try await prefetch.job(id)
        return AsyncStream { await watch.next() }
    }

    /// Checks the items, and enters the sizes of items with a length that the catalog knows.
    private func measure(_ items: inout [JobItemRecord]) async throws(CacheError) {
        var ids: [AssetID?] = []
        for item in items { ids.append(try await check(item)) }
        let sizes = try await catalog.sizes(of: Set(ids.compactMap(\.self)))
        let capacity = configuration.policy.settings.capacityBytes ?? .max
        for (place, id) in ids.enumerated() where items[place].fetchesRanges {
            guard let length = id.flatMap({ sizes[$0]?.length }), let bytes = items[place].bytes(length: length) else {
                continue
            }
            guard bytes <= capacity else {
                throw .invalid(
                    "items[\(items[place].index)]",
                    "The item has \(bytes) bytes, the cache at most \(capacity): request ranges or raise capacityBytes."
                )
            }
            items[place].bytesTotal = bytes
        }
    }

    /// The asset that the item names. Rejects items that can never be fetched. Whether an asset given by its
    /// identifier exists is checked when its item runs.
    private func check(_ item: JobItemRecord) async throws(CacheError) -> AssetID? {
        let field: (String) -> CacheError.Code = { .invalidField("items[\(item.index)].\($0)") }
        do throws(CacheError) {
            if case .known(let id) = item.reference { return id }
            return try await resolver.resolve(item.reference).id
        } catch {
            switch (error.code, item.reference) {
            case (.invalidField(let name), _): throw CacheError(field(name), error.message)
            case (.notFound, .mounted): throw CacheError(field("origin"), error.message)
            case (.malformedRequest, .mounted): throw CacheError(field("path"), error.message)
            case (.malformedRequest, .url): throw CacheError(field("url"), error.message)
            default: throw error
            }
        }
    }
}

extension JobRecord {
    /// The job with all items queued again that have not succeeded; nil if all have succeeded.
    fileprivate func begunAgain(at now: Timestamp, by owner: TokenOwner?) -> JobRecord? {
        var again = self
        for index in items.indices where items[index].state != .succeeded {
            again.items[index].state = .queued
            again.items[index].error = nil
            again.items[index].wait = nil
        }
        guard again.items != items else { return nil }
        again.state = .queued
        if let owner, owner.id == self.owner?.id { again.owner = owner }
        again.startedAt = nil
        again.finishedAt = nil
        again.error = nil
        again.revision += 1
        if let deadlineAt, deadlineAt <= now { again.deadlineAt = nil }
        return again
    }
}
