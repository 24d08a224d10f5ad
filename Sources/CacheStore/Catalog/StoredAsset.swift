package import CacheCore

/// An asset as it lies in the catalog.
package struct StoredAsset: Hashable, Sendable {
    package var record: AssetRecord
    /// The bytes that are durable.
    package var extents: ByteRangeSet
    /// Nil where nothing was ever stored of this generation.
    package var file: FileName?
    /// The run of the service that has looked at all bytes of it last; 0: none.
    package var checkedRun: Int64

    package init(record: AssetRecord, extents: ByteRangeSet, file: FileName?, checkedRun: Int64 = 0) {
        self.record = record
        self.extents = extents
        self.file = file
        self.checkedRun = checkedRun
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
    /// Whether its bytes are to be checked before they are used, because the service ended out of order since they were.
    package var isSuspect = false
}
