package import CacheCore

/// What a look at the whole store, offline, has found.
package struct Audit: Hashable, Sendable {
    /// One thing that is not as it should be.
    package struct Finding: Hashable, Sendable {
        package enum Kind: String, Sendable, CaseIterable {
            /// Pages of the catalog do not make tables and indexes.
            case damagedCatalog
            /// An asset's row, or one of its sums, is not what was written.
            case damagedRow
            /// A file that no row names.
            case orphanFile
            case missingFile
            /// A file or a directory that cannot be looked at.
            case unreadable
            /// A file that ends before bytes that are claimed of it.
            case shortFile
            /// Bytes that are not what was written, or cannot be read.
            case badBytes
            /// The row's count of bytes is not that of its extents.
            case wrongCount
        }

        package var kind: Kind
        package var asset: AssetID?
        package var file: String?
        package var range: ByteRange?
    }

    package var assets = 0
    package var files = 0
    package var bytes: Int64 = 0
    /// Bytes that were written before there were checksums, and cannot be checked.
    package var uncheckableBytes: Int64 = 0
    package var findings: [Finding] = []
    /// Whether what was found has been put right.
    package var isRepaired = false
}
