import CacheCore
import CacheEngine

extension AssetReference {
    static func media(_ path: String) -> AssetReference { .mounted(origin: "media", path: path, key: nil) }
}

extension JobOrder {
    /// Whole assets of the origin `media`.
    static func of(_ paths: String...) -> JobOrder { JobOrder(items: paths.map { (.media($0), []) }) }
}

extension AssetCache {
    /// Follows the job to its end.
    func finished(_ job: JobSnapshot) async throws -> JobSnapshot {
        var last = job
        for await snapshot in try await jobEvents(job.record.id) { last = snapshot }
        return last
    }
}
