package import CacheCore
package import CacheEngine

/// The `Eviction` schema.
package struct EvictionDocument: Codable {
    var at: Timestamp
    var reason: String
    var assetId: AssetID
    var key, origin: String
    var bytes: Int64
    var ranges: [RangeDocument]
}

extension EvictionDocument {
    package init(_ record: EvictionRecord) {
        self.init(
            at: record.at, reason: record.reason.rawValue, assetId: record.assetID, key: record.key,
            origin: record.origin, bytes: record.bytes, ranges: record.ranges.map(RangeDocument.init))
    }
}

/// The `EvictionCandidate` schema.
struct EvictionCandidateDocument: Codable {
    var assetId: AssetID
    var key, origin: String
    var range: RangeDocument
    var bytes: Int64
    var reason: String
    var quota: QuotaOwnerDocument?
    var queue: String?
    var reads: Int
    var priority: Double?
    var arrivedAt: Timestamp
    var ageSeconds: Double
    var lastReadAt: Timestamp?
}

extension EvictionCandidateDocument {
    /// The candidate with its age at `now`.
    init(_ candidate: EvictionCandidate, at now: Timestamp) {
        let account = candidate.account
        self.init(
            assetId: candidate.assetID, key: candidate.key, origin: candidate.origin,
            range: RangeDocument(candidate.range), bytes: account.bytes, reason: account.reason.rawValue,
            quota: account.quotaOwner.map(QuotaOwnerDocument.init), queue: account.queue?.rawValue,
            reads: Int(account.reads), priority: account.priority, arrivedAt: account.arrivedAt,
            ageSeconds: max(.zero, now.since(account.arrivedAt)).documentSeconds, lastReadAt: account.lastReadAt)
    }
}

/// The `EvictionReport` schema.
package struct EvictionReportDocument: Codable {
    /// The evicted or selected ranges of one asset.
    package struct Entry: Codable {
        var assetId: AssetID
        package var key: String
        var ranges: [RangeDocument]
        package var bytes: Int64
    }

    var dryRun: Bool
    var freedBytes: Int64
    package var assets, pinnedAssets: Int
    /// The plan of a dry run of a purge.
    package var planId: String?
    /// The probable reason why a purge selects no asset.
    package var hint: String?
    package var entries: [Entry]
    /// The proof of an erasure.
    package var receipt: ErasureReceiptDocument?
    /// The progress of the other nodes of a fleet.
    package var fleet: Omittable<FleetPurgeDocument>
}

extension EvictionReportDocument {
    package init(_ report: EvictionReport, _ purge: FleetPurgeDocument? = nil) {
        self.init(
            dryRun: report.isDryRun, freedBytes: report.freedBytes, assets: report.assets,
            pinnedAssets: report.pinnedAssets, planId: report.planID, hint: report.hint,
            entries: report.entries.map { entry in
                Entry(
                    assetId: entry.assetID, key: entry.key, ranges: entry.ranges.map(RangeDocument.init),
                    bytes: entry.bytes)
            }, receipt: report.receipt.map(ErasureReceiptDocument.init), fleet: .present(purge))
    }
}

/// The `PurgePlan` schema.
package struct PurgePlanDocument: Codable {
    var planId: String
    package var state: String
    var soft: Bool
    var assets, pinnedAssets: Int
    package var bytes: Int64
    package var assetsDone, assetsChanged: Int
    package var freedBytes: Int64
    var expiresAt: Timestamp?
    var shred: Bool
    package var receipt: ErasureReceiptDocument?
    /// The progress of the other nodes of a fleet.
    package var fleet: Omittable<FleetPurgeDocument>
}

extension PurgePlanDocument {
    package init(_ plan: PurgePlan.Progress, _ purge: FleetPurgeDocument? = nil) {
        self.init(
            planId: plan.planID, state: plan.state.rawValue, soft: plan.isSoft, assets: plan.assets,
            pinnedAssets: plan.pinnedAssets, bytes: plan.bytes, assetsDone: plan.assetsDone,
            assetsChanged: plan.assetsChanged, freedBytes: plan.freedBytes, expiresAt: plan.expiresAt,
            shred: plan.isErasure, receipt: plan.receipt.map(ErasureReceiptDocument.init), fleet: .present(purge))
    }
}
