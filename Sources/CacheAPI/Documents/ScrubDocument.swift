package import CacheCore
package import CacheEngine

extension ScrubRequest {
    private struct Document: Decodable {
        enum RateLimits: NumberLimits { static let range: ClosedRange<Int64> = 1024...(1 << 40) }
        var bytesPerSecond: Limited<RateLimits>?
        var assetId: AssetID?
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// Reads the `ScrubRequest` schema.
    package init(_ json: JSON) throws(CacheError) {
        let document = try json.decode(Document.self)
        self.init(bytesPerSecond: document.bytesPerSecond?.value, asset: document.assetId)
    }
}

/// The `Scrub` schema.
package struct ScrubDocument: Codable {
    var scrubId, state: String
    var assetId: AssetID?
    var bytesPerSecond: Int64?
    var startedAt: Timestamp
    var finishedAt: Timestamp?
    var assetsTotal, assetsDone, bytesTotal, bytesDone, badBlocks, badBytes, damagedRows, digests, badDigests: Int64
    var lockedAssets: Int64
    var error: String?
}

extension ScrubDocument {
    package init(_ report: ScrubReport) {
        self.init(
            scrubId: report.id, state: report.state.rawValue, assetId: report.asset,
            bytesPerSecond: report.bytesPerSecond, startedAt: report.startedAt, finishedAt: report.finishedAt,
            assetsTotal: report.assetsTotal, assetsDone: report.assetsDone, bytesTotal: report.bytesTotal,
            bytesDone: report.bytesDone, badBlocks: report.badBlocks, badBytes: report.badBytes,
            damagedRows: report.damagedRows, digests: report.digests, badDigests: report.badDigests,
            lockedAssets: report.lockedAssets, error: report.error)
    }
}
