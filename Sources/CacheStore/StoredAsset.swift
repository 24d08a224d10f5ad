package import CacheCore

/// An asset as it lies in the catalog.
package struct StoredAsset: Hashable, Sendable {
    package var record: AssetRecord
    /// The bytes that are durable.
    package var extents: ByteRangeSet
    /// Nil where nothing was ever stored of this generation.
    package var file: FileName?

    package init(record: AssetRecord, extents: ByteRangeSet, file: FileName?) {
        self.record = record
        self.extents = extents
        self.file = file
    }

    package var cachedBytes: Int64 { extents.byteCount }
}

/// An asset made ready for use: what the catalog says of it, checked against its file.
package struct LoadedAsset: Sendable {
    package var record: AssetRecord
    /// Never beyond the file's end.
    package var extents: ByteRangeSet
    /// Nil where nothing is stored of this generation: make one with `Store.createFile`.
    package var file: SparseFile?
}
