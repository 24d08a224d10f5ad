import CacheCore
import CacheStore

/// The unpinned assets that exceed `maxIdle` or `maxAge` of a policy.
struct ExpiredAssets: Sendable {
    /// An asset that exceeds a limit.
    struct Asset: Sendable {
        let id: AssetID
        let cachedBytes: Int64
        /// 0 if it is unknown.
        let length: Int64
        /// The limit.
        let reason: EvictionReason
    }

    let catalog: Catalog

    /// The number of assets in one query.
    private static let pageSize = 200

    /// Calls `body` with the assets that exceed a limit, page by page.
    func each(
        under policy: PolicySettings, at now: Timestamp, _ body: ([Asset]) async throws(CacheError) -> Void
    ) async throws(CacheError) {
        if let maxIdle = policy.maxIdle {
            try await each(.lastAccess, before: now - maxIdle, because: .idle, { $0.lastAccessAt }, body)
        }
        if let maxAge = policy.maxAge {
            try await each(.createdAt, before: now - maxAge, because: .age, { $0.createdAt }, body)
        }
    }

    /// All of them.
    func all(
        under policy: PolicySettings, at now: Timestamp, besides isExcluded: (AssetID) -> Bool
    ) async throws(CacheError) -> [Asset] {
        var all: [Asset] = []
        try await each(under: policy, at: now) { (page) async throws(CacheError) in
            all += page.filter { !isExcluded($0.id) }
        }
        return all
    }

    /// The assets with a `time` before `limit`, in its order.
    private func each(
        _ sort: AssetQuery.Sort, before limit: Timestamp, because reason: EvictionReason,
        _ time: (AssetRecord) -> Timestamp, _ body: ([Asset]) async throws(CacheError) -> Void
    ) async throws(CacheError) {
        var cursor: String?
        repeat {
            let query = AssetQuery(
                isPinned: false, sort: sort, isDescending: false, limit: Self.pageSize, cursor: cursor)
            let page = try await catalog.assetPage(query)
            let old = page.items.filter { time($0.record) < limit }
            if !old.isEmpty {
                try await body(
                    old.map { item in
                        Asset(
                            id: item.record.id, cachedBytes: item.cachedBytes,
                            length: item.record.generation.length ?? 0, reason: reason)
                    })
            }
            cursor = old.count == page.items.count ? page.nextCursor : nil
        } while cursor != nil
    }
}
