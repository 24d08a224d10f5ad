package import CacheCore
import CacheStore

/// A segment that would be evicted, and why it comes before the others.
package struct EvictionCandidate: Sendable {
    package var assetID: AssetID
    package var key: String
    package var origin: String
    package var range: ByteRange
    package var account: SegmentAccount
}

extension AssetCache {
    /// What time it is.
    package var now: Timestamp { context.wallClock.now() }

    /// What was evicted within the last day, newest first.
    package func evictions(
        _ query: EvictionQuery
    ) async throws(CacheError) -> (items: [EvictionRecord], nextCursor: String?) {
        try await context.evictionLog.write()
        return try await context.store.catalog.evictionPage(query, since: context.wallClock.now() - EvictionLog.kept)
    }

    /// What would be evicted next if `bytes` were to be freed now, first to go first, at most `limit` segments.
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

    /// Both empty where nobody knows the asset any more.
    func name(of id: AssetID) async throws(CacheError) -> (key: String, origin: String) {
        if let asset = context.openAssets[id] { return (asset.target.key, asset.target.originName) }
        let record = try await context.store.catalog.asset(id)?.record
        return (record?.key ?? "", record?.origin ?? "")
    }
}
