/// Quotas: the ledger counts the bytes of each owner with a quota, see `QuotaUsage`.
extension SpaceLedger {
    /// Puts quotas in force. Returns whether new owners have a quota, so that the bytes of all assets must be counted.
    package mutating func adopt(_ quotas: [QuotaOwner: Quota]) -> Bool { shares.adopt(quotas) }

    /// Whether any owner has a minimum.
    package var guarantees: Bool { shares.guarantees }

    /// The owners above their maximum, with the excess in bytes.
    package var overdrafts: [(owner: QuotaOwner, bytes: Int64)] { shares.overdrafts }

    /// All quotas with the counted usage, in no particular order.
    package var quotaStandings: [QuotaStatus] { shares.entries }

    /// Assigns the asset to its new owners. The recorded bytes of its segments in `extents` move with it.
    package mutating func own(_ asset: AssetID, by owners: AssetOwners, extents: ByteRangeSet) {
        let indices = Set(extents.runs.flatMap { grid.indices(of: $0) })
        let bytes = indices.reduce(0) { $0 + (policy.bytes(of: SegmentID(asset: asset, index: $1)) ?? 0) }
        shares.own(asset, by: owners, bytes: bytes)
    }
}
