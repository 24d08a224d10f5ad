/// What origins and tags have of the store, and may have. Only what those with a quota have is counted, and an asset for each
/// of them that it belongs to.
struct OwnerShares: Sendable {
    private struct Share {
        let owner: QuotaOwner
        var quota: Quota
        var bytes: Int64 = 0
    }

    private struct Member {
        /// Those it counts to; at least one.
        var shares: [Int]
        var bytes: Int64
    }

    private var shares: [Share] = []
    private var places: [QuotaOwner: Int] = [:]
    private var members: [AssetID: Member] = [:]
    /// The lists that members have, each kept once.
    private var lists: Set<[Int]> = []

    /// Puts quotas in force; answers whether what the owners have must be counted now.
    mutating func adopt(_ quotas: [QuotaOwner: Quota]) -> Bool {
        guard !quotas.isEmpty else {
            self = OwnerShares()
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

    /// Bytes of the asset are about to be counted; whose it is where that is not known yet.
    mutating func meet(_ asset: AssetID, of owners: AssetOwners) {
        guard !shares.isEmpty, members[asset] == nil else { return }
        join(asset, owners)
    }

    /// The asset is theirs from now on, and has so many bytes.
    mutating func own(_ asset: AssetID, by owners: AssetOwners, bytes: Int64) {
        guard !shares.isEmpty else { return }
        change(asset, by: -.max)
        members[asset] = nil
        guard bytes > 0 else { return }
        join(asset, owners)
        change(asset, by: bytes)
    }

    private mutating func join(_ asset: AssetID, _ owners: AssetOwners) {
        let list = Set(owners.all.compactMap { places[$0] }).sorted()
        guard !list.isEmpty else { return }
        members[asset] = Member(shares: lists.insert(list).memberAfterInsert, bytes: 0)
    }

    /// The asset has more, or fewer, bytes.
    mutating func change(_ asset: AssetID, by bytes: Int64) {
        guard !shares.isEmpty, bytes != 0, var member = members[asset] else { return }
        let change = max(bytes, -member.bytes)
        member.bytes += change
        for share in member.shares { shares[share].bytes += change }
        members[asset] = member.bytes > 0 ? member : nil
    }

    /// Those that have more than their quota, and how much.
    var overdrafts: [(owner: QuotaOwner, bytes: Int64)] {
        shares.compactMap { share in
            guard let most = share.quota.maxBytes, share.bytes > most else { return nil }
            return (share.owner, share.bytes - most)
        }
    }

    /// Those that have a quota now, in no order.
    var standings: [QuotaStanding] {
        shares.filter { $0.quota != Quota() }.map {
            QuotaStanding(owner: $0.owner, quota: $0.quota, cachedBytes: $0.bytes)
        }
    }

    /// Whether something is left to somebody whatever others need.
    var guarantees: Bool { shares.contains { $0.quota.minBytes > 0 } }

    /// Whom quotas spare in one choice of victims.
    struct Choice {
        fileprivate let shares: OwnerShares
        /// Only its assets may go.
        fileprivate let share: Int?
        fileprivate let segmentBytes: Int64
        /// What each may lose; nil: anything.
        fileprivate var spare: [Int64]?

        /// Whether a segment of the asset stays. Who is looked at may go, whole: rather too much is left than too little.
        mutating func spares(_ asset: AssetID) -> Bool {
            guard !shares.shares.isEmpty else { return false }
            let list = shares.members[asset]?.shares ?? []
            if let share, !list.contains(share) { return true }
            guard let spare else { return false }
            for place in list where isGuaranteed(place) && spare[place] < segmentBytes { return true }
            for place in list where isGuaranteed(place) { self.spare?[place] -= segmentBytes }
            return false
        }

        /// Whose maximum is enforced has more than its minimum.
        private func isGuaranteed(_ place: Int) -> Bool { place != share && shares.shares[place].quota.minBytes > 0 }
    }

    /// `owner`: only of its assets, nil: of all; `keepsQuotas`: nobody else gets below what is left to it. Nil where the owner
    /// has no quota.
    func choice(of owner: QuotaOwner?, segmentBytes: Int64, keepsQuotas: Bool) -> Choice? {
        let share = owner.flatMap { places[$0] }
        guard share != nil || owner == nil else { return nil }
        let spare = shares.map { $0.bytes - $0.quota.minBytes }
        return Choice(shares: self, share: share, segmentBytes: segmentBytes, spare: keepsQuotas ? spare : nil)
    }
}
