/// What origins have of the store, and may have. Nothing is counted while none has a quota.
struct OriginShares: Sendable {
    private struct Share {
        var quota = OriginSettings.Quota()
        var bytes: Int64 = 0
    }

    private struct Owner {
        var share: Int
        var bytes: Int64
    }

    private var shares: [Share] = []
    private var places: [String: Int] = [:]
    private var owners: [AssetID: Owner] = [:]
    private(set) var isOn = false

    /// Puts quotas in force, by the origins' names; answers whether what they have must be counted now.
    mutating func adopt(_ quotas: [String: OriginSettings.Quota]) -> Bool {
        let wasOn = isOn
        isOn = !quotas.isEmpty
        guard isOn else {
            self = OriginShares()
            return false
        }
        for place in shares.indices { shares[place].quota = OriginSettings.Quota() }
        for (name, quota) in quotas { shares[place(of: name)].quota = quota }
        return !wasOn
    }

    /// The asset is one of the origin's, and has so many bytes; nil: as many as were counted.
    mutating func own(_ asset: AssetID, by origin: String, bytes: Int64? = nil) {
        guard isOn else { return }
        let owner = owners[asset] ?? Owner(share: place(of: origin), bytes: 0)
        owners[asset] = owner
        if let bytes { change(asset, by: bytes - owner.bytes) }
    }

    /// The asset has more, or fewer, bytes.
    mutating func change(_ asset: AssetID, by bytes: Int64) {
        guard isOn, bytes != 0, var owner = owners[asset] else { return }
        let change = max(bytes, -owner.bytes)
        owner.bytes += change
        shares[owner.share].bytes += change
        owners[asset] = owner.bytes > 0 ? owner : nil
    }

    /// Origins that have more than their quota, and how much.
    var overdrafts: [(share: Int, bytes: Int64)] {
        shares.indices.compactMap { place in
            let share = shares[place]
            guard let most = share.quota.maxBytes, share.bytes > most else { return nil }
            return (place, share.bytes - most)
        }
    }

    func share(of asset: AssetID) -> Int? { owners[asset]?.share }

    /// Whether something is left to it whatever others need.
    func isGuaranteed(_ share: Int) -> Bool { shares[share].quota.minBytes > 0 }

    var guarantees: Bool { shares.contains { $0.quota.minBytes > 0 } }

    /// What each may lose.
    var spare: [Int64] { shares.map { $0.bytes - $0.quota.minBytes } }

    private mutating func place(of origin: String) -> Int {
        if let place = places[origin] { return place }
        places[origin] = shares.count
        shares.append(Share())
        return shares.count - 1
    }
}
