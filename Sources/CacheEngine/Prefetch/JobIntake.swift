package import CacheCore
import CacheStore
import Logging

/// A large job while its items arrive: they are checked in batches, and written to the spool file of the job.
///
/// Its owner must end it with ``submit(idempotencyKey:fingerprint:)``, ``plan()`` or ``discard()``.
package struct JobIntake: Sendable {
    /// The number of items that are checked and added together.
    package static let batch = 500
    /// The largest number of bytes of all lines.
    package static let mostBytes = Int(JobSpools.mostBytesOfJob)

    private let jobs: PrefetchJobs
    private let order: CreateJobRequest
    private var record: JobRecord
    /// Nil: the items need no spool file.
    private var spool: JobSpool?
    /// The number of items in the spool file.
    private var spooled = 0

    fileprivate init(_ jobs: PrefetchJobs, _ order: CreateJobRequest, _ record: JobRecord) {
        (self.jobs, self.order, self.record) = (jobs, order, record)
    }

    /// The number of items.
    package var count: Int { record.items.count }

    /// Checks items, several batches at the same time.
    package struct Check: Sendable {
        fileprivate let jobs: PrefetchJobs
        fileprivate let order: CreateJobRequest

        /// The records of items from an index on. Throws as ``PrefetchJobs/submit(_:idempotencyKey:)``.
        package func records(
            of items: [CreateJobRequest.Item], from first: Int
        ) async throws(CacheError) -> [JobItemRecord] {
            try await jobs.checkedItems(items, from: first, of: order)
        }
    }

    package var check: Check { Check(jobs: jobs, order: order) }

    /// Adds a batch of checked items, which ``unsaved`` writes. Throws `.jobTooLarge`.
    package mutating func add(_ checked: [JobItemRecord]) throws(CacheError) {
        let most = jobs.prefetch.limits.jobItems
        if let refusal = CreateJobRequest.refusal(of: count + checked.count, maxItems: most) { throw refusal }
        var records = checked
        if let first = record.items.last {
            for place in records.indices { records[place].share(with: first) }
        }
        record.items += records
    }

    /// Items that are not in the spool file yet.
    package struct Unsaved: Sendable {
        fileprivate let jobs: PrefetchJobs
        fileprivate let job: String
        fileprivate let spool: JobSpool?
        fileprivate let items: [JobItemRecord]

        /// Writes them to the file, which the caller must pass to ``keep(_:)``. Throws `.payloadTooLarge` and `.overloaded` for
        /// the size of spool files.
        package func written() async throws(CacheError) -> Written {
            let (spools, job, present, items) = (jobs.prefetch.spools, job, spool, items)
            return try await jobs.resolver.context.diskThreads.run { () throws(CacheError) in
                var spool = if let present { present } else { try spools.create(job) }
                do throws(CacheError) {
                    try spool.append(items)
                } catch {
                    // The error of the write is the cause; a file that cannot be removed is removed at the next start.
                    if present == nil { try? spool.discard() }
                    throw error
                }
                return Written(spool: spool)
            }
        }
    }

    /// The spool file with all items that were unsaved.
    package struct Written: Sendable {
        fileprivate let spool: JobSpool
    }

    /// The items that are not in the spool file yet; nil if they need none: a smaller job is written to the catalog at once.
    package var unsaved: Unsaved? {
        guard !order.isDryRun, spooled < count, spool != nil || count > CreateJobRequest.maxItems else { return nil }
        return Unsaved(jobs: jobs, job: record.id, spool: spool, items: Array(record.items[spooled...]))
    }

    /// Keeps the spool file, which has all items now.
    package mutating func keep(_ written: Written?) {
        guard let written else { return }
        (spool, spooled) = (written.spool, count)
    }

    /// Creates the job; it is durable when this returns.
    package mutating func submit(
        idempotencyKey: String?, fingerprint: String
    ) async throws(CacheError) -> JobSnapshot {
        let key = idempotencyKey.map { IdempotencyKey(key: $0, bodyHash: fingerprint) }
        guard let present = spool else { return try await jobs.submit(record, key) }
        do throws(CacheError) {
            spool = try await onDisk { () throws(CacheError) in
                var spool = present
                try spool.finish()
                return spool
            }
        } catch {
            discard()
            throw error
        }
        record.spooledItems = count
        do throws(CacheError) {
            let job = try await jobs.submit(record, key, isSpooled: true)
            // A repeated request has returned the first job.
            if job.record.id != record.id { discard() }
            return job
        } catch {
            if jobs.prefetch.look({ !$0.contains(record.id) }) { discard() }
            throw error
        }
    }

    /// The files that the job would fetch.
    package func plan() async throws(CacheError) -> JobPlan { try await jobs.plan(record) }

    /// Ends the intake without a job. It must also work in a cancelled task, so that it waits for the disk.
    package func discard() {
        guard let spool else { return }
        do throws(CacheError) { try spool.discard() } catch {
            jobs.prefetch.logger.error(
                "the spool file of a job could not be removed", metadata: ["job": "\(record.id)", "error": "\(error)"])
        }
    }

    private func onDisk<Value: Sendable>(
        _ work: @escaping @Sendable () throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        try await jobs.resolver.context.diskThreads.run(work)
    }
}

extension PrefetchJobs {
    /// Begins a job with items that arrive one after the other. `order` has none.
    package func intake(_ order: CreateJobRequest) async throws(CacheError) -> JobIntake {
        let record = try await checkedHead(of: order)
        try await commits.flush()
        return JobIntake(self, order, record)
    }
}
