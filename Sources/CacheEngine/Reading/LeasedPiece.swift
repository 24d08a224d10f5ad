import CacheCore

/// Bytes that may be sent from the file as long as this lives.
package struct LeasedPiece: Sendable {
    package let piece: FilePiece
    let lease: Lease
}

/// Bytes stay on disk until this is let go.
final class Lease: Sendable {
    private let asset: OpenAsset
    private let id: FillLedger.LeaseID

    /// Takes over the hold on `asset` and the lease.
    init(asset: OpenAsset, id: FillLedger.LeaseID) {
        self.asset = asset
        self.id = id
    }

    deinit {
        asset.end(id)
        asset.context.openAssets.release(asset)
    }
}
