package import CacheCore
import CacheStore

/// A segment that would be evicted, and the state that determines its rank.
package struct EvictionCandidate: Sendable {
    package var assetID: AssetID
    package var key: String
    package var origin: String
    /// The range of the segment.
    package var range: ByteRange
    /// The segment's state in the eviction policy.
    package var account: SegmentAccount
}

extension AssetCache {
    /// The current wall-clock time.
    package var now: Timestamp { context.wallClock.now() }

    /// A page of the evictions within the last day, newest first.
    package func evictions(
        _ query: EvictionQuery
    ) async throws(CacheError) -> (items: [EvictionRecord], nextCursor: String?) {
        try await context.evictionLog.write()
        return try await context.store.catalog.evictionPage(query, since: context.wallClock.now() - EvictionLog.kept)
    }

    /// The segments that would be evicted to free `bytes` now, in eviction order, at most `limit`. Nothing is evicted.
    package func nextEvictions(toFree bytes: Int64, limit: Int) async throws(CacheError) -> [EvictionCandidate] {
        var candidates: [EvictionCandidate] = []
        var names: [AssetID: (key: String, origin: String)] = [:]
        for (account, range) in evictor.next(toFree: bytes, limit: limit) {
            let id = account.segment.asset
            let name: (key: String, origin: String)
            if let known = names[id] { name = known } else { name = try await self.name(of: id) }
            names[id] = name
            candidates.append(
                EvictionCandidate(assetID: id, key: name.key, origin: name.origin, range: range, account: account))
        }
        return candidates
    }

    /// The key and the origin of an asset; both are empty if the asset is unknown.
    func name(of id: AssetID) async throws(CacheError) -> (key: String, origin: String) {
        if let asset = context.openAssets[id] { return (asset.target.key, asset.target.originName) }
        let record = try await context.store.catalog.asset(id)?.record
        return (record?.key ?? "", record?.origin ?? "")
    }
}
