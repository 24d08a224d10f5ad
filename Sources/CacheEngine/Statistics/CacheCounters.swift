import CacheCore

/// The counters of all origins and assets since the service started.
///
/// They are sharded by asset, and summed when they are read: no lock is shared by all reads. Counts without an asset
/// belong to the first shard.
final class CacheCounters: Sendable {
    /// The counters of one shard.
    private struct Figures {
        var origins: [String: TrafficFigures] = [:]
        var assets: [AssetID: TopAsset] = [:]

        /// Changes the counters of an origin.
        mutating func count(_ origin: String, _ body: (inout TrafficFigures) -> Void) {
            body(&origins[origin, default: TrafficFigures()])
        }

        /// Counts a read of an asset. Above `limit` assets, only the half with the most served bytes is kept.
        mutating func read(_ id: AssetID, key: String, _ sent: ReadTally, limit: Int) {
            var top =
                assets[id] ?? TopAsset(assetID: id, key: key, servedBytes: 0, servedFromCacheBytes: 0, requests: 0)
            top.servedBytes += sent.bytesFromCache + sent.bytesAfterFill
            top.servedFromCacheBytes += sent.bytesFromCache
            top.requests += 1
            assets[id] = top
            guard assets.count > limit else { return }
            let kept = assets.values.sorted { $0.servedBytes > $1.servedBytes }.prefix(limit / 2)
            assets = Dictionary(uniqueKeysWithValues: kept.map { ($0.assetID, $0) })
        }
    }

    /// Each shard's lock guards its counters.
    private let shards = Sharded(.leaf) { Figures() }
    /// Guards the integrity counters.
    private let found = OrderedMutex(.leaf, IntegrityFigures())
    /// Guards the number of evicted segments, their bytes, and those that arrived within the hour before.
    private let evicted = OrderedMutex(.leaf, (count: Int64(0), bytes: Int64(0), youngBytes: Int64(0)))
    /// The maximum number of assets per shard with counters of their own; above it, the less read half is dropped.
    private let assetLimit: Int

    init(assetLimit: Int = 20_000) { self.assetLimit = assetLimit / shards.count }

    /// A request ended, and `sent` are the bytes of its body. `asset` is nil if the bytes belong to no asset of the
    /// cache.
    func ended(
        _ requestClass: ReadOutcome.Class, of asset: AssetID?, key: String, origin: String, sent: ReadTally,
        isAborted: Bool
    ) {
        shard(of: asset).value.withLock { figures in
            figures.count(origin) { traffic in
                traffic.requests[requestClass.rawValue, default: 0] += 1
                traffic.servedFromCacheBytes += sent.bytesFromCache
                traffic.servedAfterFillBytes += sent.bytesAfterFill
                if isAborted { traffic.clientAborted += 1 }
            }
            if let asset { figures.read(asset, key: key, sent, limit: assetLimit) }
        }
    }

    /// A request failed before its response was determined.
    func failed(_ requestClass: ReadOutcome.Class, origin: String, isAborted: Bool) {
        count(origin) { traffic in
            traffic.requests[requestClass.rawValue, default: 0] += 1
            if isAborted { traffic.clientAborted += 1 }
        }
    }

    /// A response to another node of the fleet ended.
    func sentToPeer(_ bytes: Int64, origin: String) {
        count(origin) { traffic in
            traffic.peerReads += 1
            traffic.sentToPeerBytes += bytes
        }
    }

    /// A transfer from another node of the fleet ended; `end` with its bytes, and whether it failed.
    func peerFillEnded(origin: String, end: TransferEnd, hasFailed: Bool) {
        count(origin) { traffic in
            traffic.peerBytes += end.storedBytes + end.droppedBytes
            traffic.refetchedBytes += end.droppedBytes
            if hasFailed { traffic.peerFillsFailed += 1 } else { traffic.peerFills += 1 }
        }
    }

    /// Bytes were fetched that are on disk already.
    func refetched(_ bytes: Int64, origin: String) {
        guard bytes > 0 else { return }
        count(origin) { $0.refetchedBytes += bytes }
    }

    /// An upstream answered a request for this number of bytes; if the request had no end, it sent this number.
    func requested(_ bytes: Int64, origin: String) {
        guard bytes > 0 else { return }
        count(origin) { $0.requestedBytes += bytes }
    }

    /// A request was sent to an upstream.
    func sent(isPrefetch: Bool, origin: String) {
        count(origin) { figures in
            if isPrefetch { figures.upstreamPrefetchRequests += 1 } else { figures.upstreamRequests += 1 }
        }
    }

    /// A failed transfer was retried.
    func fillRetried(origin: String) { count(origin) { $0.fillsRetried += 1 } }

    /// A hedge was sent: a second request for the same window, because the first response was late.
    func fillHedged(origin: String) { count(origin) { $0.fillsHedged += 1 } }

    /// The hedge was answered before the first request.
    func hedgeWon(origin: String) { count(origin) { $0.hedgesWon += 1 } }

    /// A reader's wait for bytes ended.
    func waited(_ outcome: WaitOutcome, origin: String) { count(origin) { $0.waits[outcome.name, default: 0] += 1 } }

    /// A transfer ended. All its bytes count, wanted or not; dropped bytes also count as refetched.
    func fillEnded(origin: String, isPrefetch: Bool, end: TransferEnd, error: CacheError?) {
        count(origin) { figures in
            let bytes = end.storedBytes + end.droppedBytes
            figures.upstreamBytes += bytes
            figures.refetchedBytes += end.droppedBytes
            if isPrefetch { figures.upstreamPrefetchBytes += bytes }
            switch error?.code {
            case nil: figures.fillsSucceeded += 1
            case let code? where code.isOfReader: figures.fillsSucceeded += 1
            case .cancelled: figures.fillsCancelled += 1
            case .upstreamTimedOut: figures.fillsTimedOut += 1
            default: figures.fillsFailed += 1
            }
        }
    }

    /// Segments were evicted.
    func evicted(segments: Int, bytes: Int64, youngBytes: Int64 = 0) {
        evicted.withLock { evicted in
            evicted.count += Int64(segments)
            evicted.bytes += bytes
            evicted.youngBytes += youngBytes
        }
    }

    /// The number of evicted segments, their bytes, and those that arrived within the hour before.
    var evictions: (count: Int64, bytes: Int64, youngBytes: Int64) { evicted.withLock { $0 } }

    /// Checksums of blocks on disk did not match. `bytes`: the size of these blocks, or of their checked parts.
    func spoiled(blocks: Int, bytes: Int64) {
        found.withLock { integrity in
            integrity.badBlocks += Int64(blocks)
            integrity.badBytes += bytes
        }
    }

    /// The content of an asset did not match the digest that its upstream stated.
    func contradicted() { found.withLock { $0.badDigests += 1 } }

    /// The scrubber has read these bytes.
    func scrubbed(bytes: Int64) { found.withLock { $0.scrubbedBytes += bytes } }

    /// A scrub ended.
    func scrubEnded() { found.withLock { $0.scrubs += 1 } }

    var integrity: IntegrityFigures { found.withLock { $0 } }

    /// The counters of every origin with traffic, by name.
    func origins() -> [String: TrafficFigures] {
        shards.map(\.origins).reduce(into: [:]) { sum, origins in
            for (origin, figures) in origins { sum[origin, default: TrafficFigures()].add(figures) }
        }
    }

    /// The most read assets in descending order.
    func top(by order: TopOrder, limit: Int) -> [TopAsset] {
        let assets = shards.map { Array($0.assets.values) }.joined()
        return Array(assets.sorted { (order.rank($0), $1.assetID) > (order.rank($1), $0.assetID) }.prefix(limit))
    }

    /// Changes the counters of an origin for an event without an asset.
    private func count(_ origin: String, _ body: (inout TrafficFigures) -> Void) {
        shard(of: nil).value.withLock { $0.count(origin, body) }
    }

    private func shard(of asset: AssetID?) -> Sharded<Figures>.Shard { asset.map { shards[$0] } ?? shards[0] }
}

/// The sort order of the list of most read assets.
package enum TopOrder: String, Sendable, CaseIterable {
    case served, fromCache, requests

    func rank(_ asset: TopAsset) -> Int64 {
        switch self {
        case .served: asset.servedBytes
        case .fromCache: asset.servedFromCacheBytes
        case .requests: asset.requests
        }
    }
}
