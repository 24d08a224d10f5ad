package import CacheCore

/// The interval and the rate of scheduled scrubs.
package struct ScrubSchedule: Hashable, Sendable {
    /// The time between the starts of two scrubs; nil: only on request.
    package var interval: Duration?
    /// The maximum rate; nil: as fast as the disk permits.
    package var bytesPerSecond: Int64?

    package init(interval: Duration? = nil, bytesPerSecond: Int64? = 32 << 20) {
        self.interval = interval
        self.bytesPerSecond = bytesPerSecond
    }
}

/// The parameters of one scrub.
package struct ScrubRequest: Hashable, Sendable {
    /// The maximum rate; nil: as configured.
    package var bytesPerSecond: Int64?
    /// The only asset to check; nil: all assets.
    package var asset: AssetID?

    package init(bytesPerSecond: Int64? = nil, asset: AssetID? = nil) {
        self.bytesPerSecond = bytesPerSecond
        self.asset = asset
    }
}

/// The progress and the findings of a scrub.
package struct ScrubReport: Hashable, Sendable {
    /// The lifecycle of a scrub; `cancelled`: interrupted by a shutdown.
    package enum State: String, Sendable, CaseIterable { case running, succeeded, failed, cancelled }

    package var id: String
    package var state = State.running
    /// The only asset that is checked; nil: all assets.
    package var asset: AssetID?
    /// The maximum rate; nil or 0: as fast as the disk permits.
    package var bytesPerSecond: Int64?
    package var startedAt: Timestamp
    /// Nil while the scrub is running.
    package var finishedAt: Timestamp?
    /// The number of assets to check.
    package var assetsTotal: Int64 = 0
    package var assetsDone: Int64 = 0
    /// The number of cached bytes to check.
    package var bytesTotal: Int64 = 0
    package var bytesDone: Int64 = 0
    /// Parts, of at most one checksum block, that failed their checksum.
    package var badBlocks: Int64 = 0
    /// The length of these parts in bytes.
    package var badBytes: Int64 = 0
    /// Catalog rows that failed their checksum.
    package var damagedRows: Int64 = 0
    /// Complete assets with a computed digest.
    package var digests: Int64 = 0
    /// Assets with a digest that differs from the upstream's.
    package var badDigests: Int64 = 0
    /// Assets that cannot be checked, because their master key is missing.
    package var lockedAssets: Int64 = 0
    /// The message of the failure; nil if there was none.
    package var error: String?
}
