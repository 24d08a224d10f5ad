import CacheCore

/// A piece of a file that is protected from eviction as long as this value lives.
package struct LeasedPiece: Sendable {
    package let piece: FilePiece
    let lease: Lease
}

/// A lease on bytes of an asset: they stay on disk until the lease is deinitialized.
final class Lease: Sendable {
    private let asset: OpenAsset
    private let id: FillLedger.LeaseID

    /// Consumes the hold on `asset` and the lease.
    init(asset: OpenAsset, id: FillLedger.LeaseID) {
        self.asset = asset
        self.id = id
    }

    deinit {
        asset.end(id)
        asset.context.openAssets.release(asset)
    }
}
