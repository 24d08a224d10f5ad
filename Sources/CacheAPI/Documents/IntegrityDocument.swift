import CacheCore
import CacheEngine

/// The `Integrity` schema.
struct IntegrityDocument: Codable {
    /// A run inside one block.
    struct Item: Codable {
        var offset, length: Int64
        /// Eight hexadecimal digits in lower case.
        var crc32c: String
    }

    var assetId: AssetID
    var generation: Int64
    var etag, lastModified: String?
    var contentLength: Int64?
    var cachedBytes: Int64
    var complete: Bool
    var algorithm = "crc-32c"
    var blockBytes = BlockChecksums.blockBytes
    var items: [Item]
    var nextCursor: String?
}

extension IntegrityDocument {
    init(_ checksums: AssetChecksums) {
        let generation = checksums.record.generation
        self.init(
            assetId: checksums.record.id, generation: generation.number,
            etag: generation.validators.entityTag?.description, lastModified: generation.validators.lastModified,
            contentLength: generation.length, cachedBytes: checksums.cachedBytes,
            complete: generation.length == checksums.cachedBytes,
            items: checksums.items.map { item in
                Item(
                    offset: item.range.lowerBound, length: item.range.length,
                    crc32c: withUnsafeBytes(of: item.crc32C.bigEndian) { $0.hexDigits })
            }, nextCursor: checksums.nextCursor)
    }
}
