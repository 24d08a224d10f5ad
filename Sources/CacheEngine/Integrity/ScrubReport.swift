package import CacheCore

/// How often everything on disk is compared with its checksums, and how fast.
package struct ScrubSchedule: Hashable, Sendable {
    /// From the end of one scrub to the next; nil: only when it is asked for.
    package var interval: Duration?
    /// Nil: as fast as the disk gives.
    package var bytesPerSecond: Int64?

    package init(interval: Duration? = nil, bytesPerSecond: Int64? = 32 << 20) {
        self.interval = interval
        self.bytesPerSecond = bytesPerSecond
    }
}

/// What a scrub is to look at.
package struct ScrubOrder: Hashable, Sendable {
    /// Nil: as the configuration says.
    package var bytesPerSecond: Int64?
    /// Nil: every asset.
    package var asset: AssetID?

    package init(bytesPerSecond: Int64? = nil, asset: AssetID? = nil) {
        self.bytesPerSecond = bytesPerSecond
        self.asset = asset
    }
}

/// How far a scrub has come, and what it has found.
package struct ScrubReport: Hashable, Sendable {
    package enum State: String, Sendable, CaseIterable { case running, succeeded, failed, cancelled }

    package var id: String
    package var state = State.running
    package var asset: AssetID?
    package var bytesPerSecond: Int64?
    package var startedAt: Timestamp
    package var finishedAt: Timestamp?
    package var assetsTotal: Int64 = 0
    package var assetsDone: Int64 = 0
    package var bytesTotal: Int64 = 0
    package var bytesDone: Int64 = 0
    package var badBlocks: Int64 = 0
    package var badBytes: Int64 = 0
    /// Rows of the catalog that were not what was written.
    package var damagedRows: Int64 = 0
    /// Assets that were summed up, since all of them was there.
    package var digests: Int64 = 0
    /// Those that are not what their upstream stated.
    package var badDigests: Int64 = 0
    package var error: String?
}
