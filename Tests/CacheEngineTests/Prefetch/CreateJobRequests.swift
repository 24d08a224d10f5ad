import CacheCore
import CacheEngine
import CacheTestKit
import Testing

extension AssetReference {
    static func media(_ path: String) -> AssetReference { .mounted(origin: "media", path: path, key: nil) }
}

extension CreateJobRequest {
    /// Requests ranges of assets; without ranges the whole asset.
    init(
        items: [(reference: AssetReference, ranges: [String])], queue: String? = nil, supersedes: Bool = false,
        maxBytesPerSecond: Int64? = nil, timeout: Duration? = nil
    ) {
        self.init(
            items: items.map { Item(reference: $0.reference, ranges: $0.ranges) }, queue: queue,
            supersedes: supersedes, maxBytesPerSecond: maxBytesPerSecond, timeout: timeout)
    }

    /// Requests whole assets of the origin `media`.
    static func of(_ paths: String...) -> CreateJobRequest { CreateJobRequest(items: paths.map { (.media($0), []) }) }
}

extension AssetCache {
    /// Waits for the end of the job and returns its last snapshot.
    func finished(_ job: JobSnapshot) async throws -> JobSnapshot {
        var last = job
        for await snapshot in try await jobs.events(job.record.id) { last = snapshot }
        return last
    }

    /// Waits until an item of the job waits, and returns the first such item.
    func waitingItem(of job: JobSnapshot) async throws -> JobItemRecord {
        var item: JobItemRecord?
        #expect(
            try await eventually {
                item = try await jobs.items(job.record.id).items.first { $0.state == .waiting }
                return item != nil
            })
        return try #require(item)
    }
}
