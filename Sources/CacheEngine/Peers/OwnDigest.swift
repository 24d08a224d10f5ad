package import CacheCore
import CacheStore

/// The digest of this node's cache, for other nodes. It is made when one of them requests it, and again after
/// ``interval``.
package final class OwnDigest: Sendable {
    /// An encoded digest with its entity tag.
    package struct Version: Sendable {
        package var bytes: [UInt8]
        package var tag: String
    }

    private struct State {
        var version: Version?
        /// The uptime at which the version was current.
        var at = Duration.zero
        var number = 0
    }

    private static let interval = Duration.seconds(5)
    /// The number of assets that are read from the catalog at a time.
    private static let pageSize = 10_000

    private let context: EngineContext
    private let turn = AsyncMutex()
    /// Guards the last version.
    private let state = OrderedMutex(.leaf, State())

    init(context: EngineContext) { self.context = context }

    /// The digest of all assets with bytes on disk or with a fill in progress. Throws errors of the catalog.
    package func current() async throws(CacheError) -> Version {
        try await turn.pass { () async throws(CacheError) in
            let now = context.uptime()
            if let version = state.withLock({ now - $0.at < Self.interval ? $0.version : nil }) { return version }
            let bytes = try await digest().encoded
            return state.withLock { state in
                if state.version?.bytes != bytes {
                    state.number += 1
                    // The name of the process makes the tag that of this start.
                    let tag = "\"\(context.upstreams.loopName)-\(state.number)\""
                    state.version = Version(bytes: bytes, tag: tag)
                }
                state.at = now
                return state.version ?? Version(bytes: bytes, tag: "\"0\"")
            }
        }
    }

    private func digest() async throws(CacheError) -> CacheDigest {
        let open = Set(context.openAssets.all.map(\.id))
        var assets = Array(open)
        var last: AssetID?
        repeat {
            let page = try await context.store.catalog.cachedAssetIDs(after: last, limit: Self.pageSize)
            assets += page.filter { !open.contains($0) }
            last = page.count < Self.pageSize ? nil : page.last
        } while last != nil
        var digest = CacheDigest(capacity: assets.count)
        for asset in assets { digest.add(asset) }
        return digest
    }
}
