extension SpaceLedger {
    /// Puts quotas in force; answers whether what their owners have must be counted now.
    package mutating func adopt(_ quotas: [QuotaOwner: Quota]) -> Bool { shares.adopt(quotas) }

    /// Whether something is left to somebody whatever others need.
    package var guarantees: Bool { shares.guarantees }

    /// Those that have more than their quota, and how much.
    package var overdrafts: [(owner: QuotaOwner, bytes: Int64)] { shares.overdrafts }

    /// All quotas, and what is counted for them, in no order.
    package var quotaStandings: [QuotaStanding] { shares.standings }

    /// The asset is theirs from now on, with what is counted of its `extents`.
    package mutating func own(_ asset: AssetID, by owners: AssetOwners, extents: ByteRangeSet) {
        let indices = Set(extents.runs.flatMap { grid.indices(of: $0) })
        let bytes = indices.reduce(0) { $0 + (policy.bytes(of: SegmentID(asset: asset, index: $1)) ?? 0) }
        shares.own(asset, by: owners, bytes: bytes)
    }
}
