package import CacheCore

/// Result of an offline verification of the store.
package struct VerificationReport: Hashable, Sendable {
    /// One inconsistency.
    package struct Finding: Hashable, Sendable {
        /// Kinds of inconsistency. The raw values appear in reports.
        package enum Kind: String, Sendable, CaseIterable {
            /// SQLite's integrity check reports an error; `file` is its message.
            case damagedCatalog
            /// A row of an asset or of its checksums is damaged.
            case damagedRow
            /// A file without a row.
            case orphanFile
            /// A row with a file that does not exist.
            case missingFile
            /// A file or a directory that cannot be read.
            case unreadable
            /// A file that ends before the end of its extents.
            case shortFile
            /// Bytes that do not match their checksum, or cannot be read.
            case badBytes
            /// A row with a byte count that differs from the sum of its extents.
            case wrongCount
            /// The usage by groups differs from a complete count; `file` tells the number of groups.
            case wrongUsage
        }

        package var kind: Kind
        /// The affected asset; nil if it is unknown.
        package var asset: AssetID?
        /// Name or path of the file, or SQLite's message for `damagedCatalog`.
        package var file: String?
        /// The affected bytes; nil if the finding does not concern a range.
        package var range: ByteRange?
    }

    /// Number of verified assets.
    package var assets = 0
    /// Number of entries in the shard directories.
    package var files = 0
    /// Number of bytes read for verification.
    package var bytes: Int64 = 0
    /// Number of cached bytes that cannot be verified, because they were written before checksums existed.
    package var uncheckableBytes: Int64 = 0
    /// Number of cached bytes that cannot be verified, because their master key is missing.
    package var lockedBytes: Int64 = 0
    package var findings: [Finding] = []
    /// Whether every finding was repaired.
    package var isRepaired = false
}
