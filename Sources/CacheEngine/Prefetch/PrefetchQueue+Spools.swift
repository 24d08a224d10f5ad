import CacheCore
import CacheStore
import Logging

/// Spool files of large jobs. A job with a spool file is durable with one row; its items are saved later.
extension PrefetchQueue {
    /// Adds the items of the spool file that the catalog does not have. Returns the error of a file that cannot be read.
    func complete(_ job: inout JobRecord) -> CacheError? {
        guard let count = job.spooledItems, job.items.count < count else { return nil }
        do throws(CacheError) {
            let rest = try spools.items(of: job.id, from: job.items.count)
            guard job.items.count + rest.count == count else {
                return CacheError(.storageCorrupt, "The spool file of the job has \(rest.count) of its last items.")
            }
            job.items += rest
            return nil
        } catch {
            return error
        }
    }

    /// Ends a stored job whose items are lost.
    func end(_ job: JobRecord, because error: CacheError) async throws(CacheError) {
        logger.error("the items of a job are lost", metadata: ["job": "\(job.id)", "error": "\(error)"])
        var ended = job
        (ended.state, ended.error, ended.finishedAt) = (.failed, RecordedError(error), civilClock.now())
        ended.spooledItems = nil
        try await catalog.updateJob(ended)
        removeSpool(of: job.id)
    }

    /// The number of items in one transaction.
    private static let savedAtOnce = 1000

    /// Saves the items of jobs that had ended before the catalog had all of them.
    func saveFinishedSpools() async throws(CacheError) {
        for id in try await catalog.spooledJobs() where look({ !$0.contains(id) }) {
            guard var job = try await catalog.job(id) else { continue }
            let saved = job.items.count
            if let error = complete(&job) {
                try await end(job, because: error)
                continue
            }
            job.concludeItems()
            for first in stride(from: saved, to: job.items.count, by: Self.savedAtOnce) {
                let last = min(first + Self.savedAtOnce, job.items.count)
                try await catalog.append(Array(job.items[first..<last]), to: id)
            }
            job.spooledItems = nil
            try await catalog.updateJob(job)
            removeSpool(of: id)
        }
    }

    /// Removes the spool files of jobs that the catalog has completely.
    func removeSpools(of changes: [PrefetchSchedule.Change]) {
        for change in changes where change.job.spooledItems == nil && spools.contains(change.job.id) {
            removeSpool(of: change.job.id)
        }
    }

    private func removeSpool(of job: String) {
        do throws(CacheError) { try spools.remove(job) } catch {
            // The next start removes it: no job needs it.
            logger.error(
                "the spool file of a job could not be removed", metadata: ["job": "\(job)", "error": "\(error)"])
        }
    }
}
