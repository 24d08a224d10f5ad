package import CacheCore
import CacheStore

/// What would leave the cache of this node if a changed policy or changed quotas were in force now.
package struct PolicyPlan: Sendable {
    /// An asset that would lose bytes.
    package struct Entry: Sendable {
        package var assetID: AssetID
        /// Empty if the asset is unknown.
        package var key, origin: String
        package var bytes: Int64
        package var reason: EvictionReason
    }

    /// The largest number of entries.
    package static let mostEntries = 100

    /// Disk bytes that the store has allocated now.
    package var usedBytes: Int64
    package var freedBytes: Int64
    /// The number of assets that would lose bytes.
    package var assets: Int
    /// The assets that would lose most bytes, largest first.
    package var entries: [Entry]
}

extension EvictionAdministration {
    /// The assets that would leave under other settings and quotas. The victims are chosen on a copy of the space ledger,
    /// in the order of an eviction: first the assets that exceed `maxIdle` or `maxAge`, then the bytes of owners above their
    /// maximum, then those above the capacity or the free space of the disk. Nothing changes. Throws `.overloaded` soon after
    /// a start.
    ///
    /// - Parameter quotas: Those of all origins and tags.
    package func plan(
        _ settings: PolicySettings, _ quotas: [QuotaOwner: Quota]
    ) async throws(CacheError) -> PolicyPlan {
        try await context.space.untilCounted(clock)
        try await context.commits.flush()
        let expired = try await ExpiredAssets(catalog: context.store.catalog).all(
            under: settings, at: now, besides: evictor.isInUse)
        let copy = try await ledger(under: settings, quotas)
        let (now, busy) = (now, evictor.busy(on: copy.grid))
        let losses = try await context.diskThreads.run { () throws(CacheError) in
            var plan = LedgerPlan(ledger: copy, now: now, busy: busy)
            for asset in expired { plan.expire(asset) }
            plan.keepQuotas()
            plan.keepCapacity()
            return plan.losses
        }
        let sorted = losses.sorted { one, two in
            one.value.bytes == two.value.bytes ? one.key < two.key : one.value.bytes > two.value.bytes
        }
        var entries: [PolicyPlan.Entry] = []
        for (id, loss) in sorted.prefix(PolicyPlan.mostEntries) {
            let name = try await name(of: id)
            entries.append(
                PolicyPlan.Entry(
                    assetID: id, key: name.key, origin: name.origin, bytes: loss.bytes, reason: loss.reason))
        }
        return PolicyPlan(
            usedBytes: copy.usedBytes, freedBytes: losses.values.reduce(0) { $0 + $1.bytes }, assets: losses.count,
            entries: entries)
    }

    /// A copy of the space ledger with other settings and quotas. The bytes of owners that get their first quota are counted
    /// from the catalog.
    private func ledger(
        under settings: PolicySettings, _ quotas: [QuotaOwner: Quota]
    ) async throws(CacheError) -> SpaceLedger {
        let copy = context.space.with { $0 }
        var ledger = try await context.diskThreads.run { () throws(CacheError) in
            var ledger = copy
            ledger.adopt(settings)
            if let old = ledger.beginRebuilding() { _ = ledger.finishRebuilding(old.rebuilt()) }
            return ledger
        }
        guard ledger.adopt(quotas) else { return ledger }
        let counted = OrderedMutex(.leaf, ledger)
        try await context.store.catalog.eachAsset { stored in
            counted.withLock { $0.own(stored.asset, by: stored.owners, extents: ByteRangeSet(stored.extents)) }
        }
        return counted.withLock { $0 }
    }
}

/// The bytes that an asset loses, and the first reason.
private struct Loss: Sendable {
    var bytes: Int64 = 0
    let reason: EvictionReason
}

/// Chooses the victims of a plan on a copy of the space ledger.
private struct LedgerPlan {
    var ledger: SpaceLedger
    let now: Timestamp
    /// Segments in use, which an eviction leaves until nothing else is left.
    let busy: Set<SegmentID>
    private(set) var losses: [AssetID: Loss] = [:]

    init(ledger: SpaceLedger, now: Timestamp, busy: Set<SegmentID>) {
        (self.ledger, self.now, self.busy) = (ledger, now, busy)
    }

    /// Removes an asset that exceeds a time limit.
    mutating func expire(_ asset: ExpiredAssets.Asset) {
        guard asset.cachedBytes > 0, losses[asset.id] == nil else { return }
        ledger.gone(0..<max(asset.length, asset.cachedBytes), of: asset.id)
        lose(asset.cachedBytes, of: asset.id, because: asset.reason)
    }

    mutating func keepQuotas() {
        for (owner, _) in ledger.overdrafts {
            // An eviction for one owner may also reduce the usage of another.
            guard let excess = ledger.overdrafts.first(where: { $0.owner == owner })?.bytes else { continue }
            evict(excess, because: .quota, of: owner)
        }
    }

    mutating func keepCapacity() {
        evict(ledger.excess(waitingBytes: 0), because: ledger.reason(waitingBytes: 0), of: nil)
    }

    /// Chooses victims as an eviction does: first without segments in use, then with these, at last of owners at their
    /// minimum quota.
    private mutating func evict(_ bytes: Int64, because reason: EvictionReason, of owner: QuotaOwner?) {
        var missing = bytes
        for (besides, keepsQuotas) in [(busy, true), ([], true), ([], false)] where missing > 0 {
            let victims = ledger.victims(
                toFree: missing, at: now, isUrgent: owner != nil, besides: besides, of: owner, keepsQuotas: keepsQuotas)
            for victim in victims {
                missing -= victim.bytes
                ledger.gone(ledger.range(of: victim.segment), of: victim.segment.asset)
                lose(victim.bytes, of: victim.segment.asset, because: reason)
            }
        }
    }

    private mutating func lose(_ bytes: Int64, of asset: AssetID, because reason: EvictionReason) {
        ledger.used(changedBy: -bytes)
        ledger.freeDiskBytes = ledger.freeDiskBytes.map { $0 + bytes }
        losses[asset, default: Loss(reason: reason)].bytes += bytes
    }
}
