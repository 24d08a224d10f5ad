package import CacheCore
package import CacheEngine

/// The `JobPlan` schema.
package struct JobPlanDocument: Codable, Sendable {
    /// The `JobPlanEntry` schema.
    package struct Entry: Codable, Sendable {
        /// The names of the asset, as those of a `JobItem`.
        package var url, origin, path, key: Omittable<String>
        package var assetId: AssetID?
        package var bytes: Int64?
        package var parent: Int?
    }

    var dryRun: Bool
    package var files: Int
    package var bytes: Int64
    package var filesOfUnknownLength, skippedEntries: Int
    package var entries: [Entry]
}

extension JobPlanDocument {
    package init(_ plan: JobPlan) {
        self.init(
            dryRun: true, files: plan.files, bytes: plan.bytes, filesOfUnknownLength: plan.filesOfUnknownLength,
            skippedEntries: plan.skippedEntries, entries: plan.entries.map(Entry.init))
    }
}

extension JobPlanDocument.Entry {
    fileprivate init(_ entry: JobPlan.Entry) {
        let item = JobItemDocument(JobItemRecord(index: 0, reference: entry.reference))
        self.init(
            url: item.url, origin: item.origin, path: item.path, key: item.key, assetId: item.assetId,
            bytes: entry.bytes, parent: entry.parent)
    }
}
