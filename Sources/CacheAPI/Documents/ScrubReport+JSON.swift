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

extension ScrubReport {
    /// The `Scrub` schema.
    package var json: JSON {
        [
            "scrubId": .string(id), "state": .string(state.rawValue), "assetId": .text(asset?.description),
            "bytesPerSecond": .bytes(bytesPerSecond), "startedAt": .instant(startedAt),
            "finishedAt": .instant(finishedAt), "assetsTotal": .integer(assetsTotal),
            "assetsDone": .integer(assetsDone), "bytesTotal": .integer(bytesTotal), "bytesDone": .integer(bytesDone),
            "badBlocks": .integer(badBlocks), "badBytes": .integer(badBytes), "damagedRows": .integer(damagedRows),
            "digests": .integer(digests), "badDigests": .integer(badDigests),
            "lockedAssets": .integer(lockedAssets), "error": .text(error),
        ]
    }
}
