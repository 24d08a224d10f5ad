package import CacheCore

/// An asset as stored in the catalog.
package struct StoredAsset: Hashable, Sendable {
    package var record: AssetRecord
    /// The durable ranges.
    package var extents: ByteRangeSet
    /// Nil if no bytes of this generation were ever stored.
    package var file: FileName?
    /// Number of the last service run that verified all cached bytes of the asset; 0 if none did.
    var checkedRun: Int64 = 0
    /// The number of cached bytes in the row; it differs from `cachedBytes` only if the row is damaged.
    var countedBytes: Int64 = 0

    /// Number of durable bytes.
    package var cachedBytes: Int64 { extents.byteCount }
}

/// An asset ready for use: its row, compared with its file.
package struct LoadedAsset: Sendable {
    package var record: AssetRecord
    /// Ranges that the catalog lists and the file contains. They never exceed the file's end.
    package var extents: ByteRangeSet
    /// Nil if no bytes of this generation are stored; create a file with `Store.createFile`.
    package var file: SparseFile?
    /// Whether the bytes must be verified before use: the service had an unclean shutdown since they were written or
    /// last verified.
    package var isSuspect = false
    /// Whether no byte was verified since the start, unless it was written after that.
    package var isUnverified = false
}
