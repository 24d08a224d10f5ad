package import CacheCore
package import CacheEngine

extension ScrubRequest {
    /// The members of the schema.
    package static let keys = ["bytesPerSecond", "assetId"]

    /// Reads the `ScrubRequest` schema.
    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys)
        self.init(bytesPerSecond: try fields.integer("bytesPerSecond", in: 1024...(1 << 40)))
        guard let text = try fields.string("assetId") else { return }
        guard let id = AssetID(text) else {
            throw fields.invalid("assetId", "An asset ID with 32 hexadecimal digits is expected here.")
        }
        asset = id
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
            "error": .text(error),
        ]
    }
}
