package import CacheCore
import CacheStore

/// A page of the checksums of an asset's stored blocks.
package struct AssetChecksums: Sendable {
    /// A run inside one block, and the CRC-32C (RFC 3720 §12.1) of its bytes.
    package struct Item: Sendable {
        package var range: ByteRange
        package var crc32C: UInt32

        package init(range: ByteRange, crc32C: UInt32) {
            self.range = range
            self.crc32C = crc32C
        }
    }

    package var record: AssetRecord
    package var cachedBytes: Int64
    /// In ascending order. Bytes without an item are not stored, or have no checksum.
    package var items: [Item]
    /// Nil on the last page.
    package var nextCursor: String?

    package init(record: AssetRecord, cachedBytes: Int64, items: [Item], nextCursor: String? = nil) {
        self.record = record
        self.cachedBytes = cachedBytes
        self.items = items
        self.nextCursor = nextCursor
    }
}

extension AssetAdministration {
    /// Returns a page of the checksums of an asset's stored blocks, as the catalog has them; the bytes are not read.
    ///
    /// Throws `.notFound` if the asset is unknown, `.readerRequired` if its content is private to its readers,
    /// `.conflict` if it is encrypted, and `.invalidField("cursor")` for a cursor of another generation.
    package func checksums(of id: AssetID, limit: Int, cursor: String?) async throws(CacheError) -> AssetChecksums {
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        try asset.target.requireContentForAll()
        try await context.commits.flush()
        let (file, record, extents) = asset.look { ($0.file, $0.record, $0.ledger.extents) }
        guard let record else { throw Self.unknown(id) }
        guard file?.isEncrypted != true else {
            throw CacheError(
                .conflict,
                "The content is stored encrypted, with keyed checksums; compare its Repr-Digest (Want-Repr-Digest).")
        }
        let page = try await context.store.catalog.sumPage(
            of: file?.name?.serial ?? 0, in: extents, limit: limit, cursor: cursor)
        return AssetChecksums(
            record: record, cachedBytes: extents.byteCount,
            items: page.items.compactMap { piece in
                guard case .crc32C(let sum) = piece.sum else { return nil }
                return AssetChecksums.Item(range: piece.range, crc32C: sum)
            }, nextCursor: page.nextCursor)
    }
}
