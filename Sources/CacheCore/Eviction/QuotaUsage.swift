/// Counts the usage of each owner with a quota. An asset counts for each of its owners.
struct QuotaUsage: Sendable {
    /// One owner with its quota and its usage.
    private struct Share {
        let owner: QuotaOwner
        var quota: Quota
        var bytes: Int64 = 0
    }

    /// The usage of one asset with at least one owner that has a quota.
    private struct Member {
        /// Indices of its owners in `shares`; never empty.
        var shares: [Int]
        var bytes: Int64
    }

    /// The owners. An owner stays with an empty quota when its quota is removed, because members refer to its index.
    private var shares: [Share] = []
    /// The index of each owner in `shares`.
    private var places: [QuotaOwner: Int] = [:]
    /// The assets of these owners that have bytes.
    private var members: [AssetID: Member] = [:]
    /// The distinct index lists of the members. Members share them to save memory.
    private var lists: Set<[Int]> = []

    /// Puts quotas in force. Returns whether new owners have a quota, so that the bytes of all assets must be counted.
    mutating func adopt(_ quotas: [QuotaOwner: Quota]) -> Bool {
        guard !quotas.isEmpty else {
            self = QuotaUsage()
            return false
        }
        for place in shares.indices { shares[place].quota = quotas[shares[place].owner] ?? Quota() }
        let new = quotas.filter { places[$0.key] == nil }
        for (owner, quota) in new {
            places[owner] = shares.count
            shares.append(Share(owner: owner, quota: quota))
        }
        return !new.isEmpty
    }

    /// Registers the owners of an asset before its bytes are counted. It has no effect on a registered asset.
    mutating func meet(_ asset: AssetID, of owners: AssetOwners) {
        guard !shares.isEmpty, members[asset] == nil else { return }
        join(asset, owners)
    }

    /// Assigns the asset to `owners` with `bytes` in total, in place of its former owners.
    mutating func own(_ asset: AssetID, by owners: AssetOwners, bytes: Int64) {
        guard !shares.isEmpty else { return }
        change(asset, by: -.max)
        members[asset] = nil
        guard bytes > 0 else { return }
        join(asset, owners)
        change(asset, by: bytes)
    }

    /// Registers the asset with those of its owners that have a quota.
    private mutating func join(_ asset: AssetID, _ owners: AssetOwners) {
        let list = Set(owners.all.compactMap { places[$0] }).sorted()
        guard !list.isEmpty else { return }
        members[asset] = Member(shares: lists.insert(list).memberAfterInsert, bytes: 0)
    }

    /// Changes the counted bytes of the asset. An asset without bytes is forgotten.
    mutating func change(_ asset: AssetID, by bytes: Int64) {
        guard !shares.isEmpty, bytes != 0, var member = members[asset] else { return }
        let change = max(bytes, -member.bytes)
        member.bytes += change
        for share in member.shares { shares[share].bytes += change }
        members[asset] = member.bytes > 0 ? member : nil
    }

    /// The owners above their maximum, with the excess in bytes.
    var overdrafts: [(owner: QuotaOwner, bytes: Int64)] {
        shares.compactMap { share in
            guard let most = share.quota.maxBytes, share.bytes > most else { return nil }
            return (share.owner, share.bytes - most)
        }
    }

    /// The owners with a quota in force, in no particular order.
    var entries: [QuotaStatus] {
        shares.filter { $0.quota != Quota() }.map {
            QuotaStatus(owner: $0.owner, quota: $0.quota, cachedBytes: $0.bytes)
        }
    }

    /// Whether any owner has a minimum.
    var guarantees: Bool { shares.contains { $0.quota.minBytes > 0 } }

    /// Applies the quotas during one choice of victims.
    struct Choice {
        fileprivate let shares: QuotaUsage
        /// The index of the only owner with evictable assets; nil: any owner.
        fileprivate let share: Int?
        fileprivate let segmentBytes: Int64
        /// Bytes that each owner may lose before it reaches its minimum; nil: minimums are ignored.
        fileprivate var spare: [Int64]?

        /// Whether quotas protect a segment of the asset. If not, the segment counts as evicted with its full size,
        /// even if it has fewer bytes or is skipped later: this protects too much rather than too little.
        mutating func spares(_ asset: AssetID) -> Bool {
            guard !shares.shares.isEmpty else { return false }
            let list = shares.members[asset]?.shares ?? []
            if let share, !list.contains(share) { return true }
            guard let spare else { return false }
            for place in list where isGuaranteed(place) && spare[place] < segmentBytes { return true }
            for place in list where isGuaranteed(place) { self.spare?[place] -= segmentBytes }
            return false
        }

        /// Whether the owner has a minimum to protect. An owner above its maximum (`share`) needs no protection: its
        /// usage exceeds its minimum, too.
        private func isGuaranteed(_ place: Int) -> Bool { place != share && shares.shares[place].quota.minBytes > 0 }
    }

    /// Starts one choice of victims; nil if `owner` has no quota. `owner`: only its assets, nil: all assets.
    /// `keepsQuotas`: other owners keep their minimum.
    func choice(of owner: QuotaOwner?, segmentBytes: Int64, keepsQuotas: Bool) -> Choice? {
        let share = owner.flatMap { places[$0] }
        guard share != nil || owner == nil else { return nil }
        let spare = shares.map { $0.bytes - $0.quota.minBytes }
        return Choice(shares: self, share: share, segmentBytes: segmentBytes, spare: keepsQuotas ? spare : nil)
    }
}
