import CacheCore
import Synchronization

/// Everything that is counted, per origin and per asset, since the service started.
///
/// It is kept in shards, by asset, which are added up when somebody asks: there is no lock that every read takes.
final class CacheCounters: Sendable {
    private struct Figures {
        var origins: [String: TrafficFigures] = [:]
        var assets: [AssetID: TopAsset] = [:]

        mutating func count(_ origin: String, _ body: (inout TrafficFigures) -> Void) {
            body(&origins[origin, default: TrafficFigures()])
        }

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

    private let shards = Shards { Figures() }
    private let found = Mutex(IntegrityFigures())
    private let evicted = Mutex((count: Int64(0), bytes: Int64(0)))
    /// Assets of one shard whose reads are told apart; beyond it the less read half is forgotten.
    private let assetLimit: Int

    init(assetLimit: Int = 20_000) { self.assetLimit = assetLimit / shards.count }

    /// One request came to its end, and was sent so much; nil as the asset: the bytes are of none.
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

    /// One request came to its end before it was known what it is sent.
    func failed(_ requestClass: ReadOutcome.Class, origin: String, isAborted: Bool) {
        count(origin) { traffic in
            traffic.requests[requestClass.rawValue, default: 0] += 1
            if isAborted { traffic.clientAborted += 1 }
        }
    }

    func refetched(_ bytes: Int64, origin: String) {
        guard bytes > 0 else { return }
        count(origin) { $0.refetchedBytes += bytes }
    }

    /// An upstream answered a request for so many bytes; where their end was not known, it sent so many.
    func requested(_ bytes: Int64, origin: String) {
        guard bytes > 0 else { return }
        count(origin) { $0.requestedBytes += bytes }
    }

    /// A request left for an upstream.
    func sent(isPrefetch: Bool, origin: String) {
        count(origin) { figures in
            if isPrefetch { figures.upstreamPrefetchRequests += 1 } else { figures.upstreamRequests += 1 }
        }
    }

    func fillRetried(origin: String) { count(origin) { $0.fillsRetried += 1 } }

    /// A second request for the same window was sent, because the first one's answer was late.
    func fillHedged(origin: String) { count(origin) { $0.fillsHedged += 1 } }

    /// The second request was answered first.
    func hedgeWon(origin: String) { count(origin) { $0.hedgesWon += 1 } }

    /// A reader's wait for bytes came to its end.
    func waited(_ outcome: WaitOutcome, origin: String) { count(origin) { $0.waits[outcome.name, default: 0] += 1 } }

    /// A transfer ended; what it brought counts whether it was wanted or not.
    func fillEnded(origin: String, isPrefetch: Bool, end: TransferEnd, error: CacheError?) {
        count(origin) { figures in
            let bytes = end.storedBytes + end.droppedBytes
            figures.upstreamBytes += bytes
            figures.refetchedBytes += end.droppedBytes
            if isPrefetch { figures.upstreamPrefetchBytes += bytes }
            switch error?.code {
            case nil: figures.fillsSucceeded += 1
            case .cancelled: figures.fillsCancelled += 1
            case .upstreamTimedOut: figures.fillsTimedOut += 1
            default: figures.fillsFailed += 1
            }
        }
    }

    func evicted(segments: Int, bytes: Int64) {
        evicted.withLock { evicted in
            evicted.count += Int64(segments)
            evicted.bytes += bytes
        }
    }

    var evictions: (count: Int64, bytes: Int64) { evicted.withLock { $0 } }

    /// Bytes on disk proved not to be what was written.
    func spoiled(blocks: Int, bytes: Int64) {
        found.withLock { integrity in
            integrity.badBlocks += Int64(blocks)
            integrity.badBytes += bytes
        }
    }

    /// An asset proved not to be what its upstream stated.
    func contradicted() { found.withLock { $0.badDigests += 1 } }

    func scrubbed(bytes: Int64) { found.withLock { $0.scrubbedBytes += bytes } }

    func scrubEnded() { found.withLock { $0.scrubs += 1 } }

    var integrity: IntegrityFigures { found.withLock { $0 } }

    /// The figures of every origin that was asked for anything, by name.
    func origins() -> [String: TrafficFigures] {
        shards.map(\.origins).reduce(into: [:]) { sum, origins in
            for (origin, figures) in origins { sum[origin, default: TrafficFigures()].add(figures) }
        }
    }

    func top(by order: TopOrder, limit: Int) -> [TopAsset] {
        let assets = shards.map { Array($0.assets.values) }.joined()
        return Array(assets.sorted { (order.rank($0), $1.assetID) > (order.rank($1), $0.assetID) }.prefix(limit))
    }

    private func count(_ origin: String, _ body: (inout TrafficFigures) -> Void) {
        shard(of: nil).value.withLock { $0.count(origin, body) }
    }

    private func shard(of asset: AssetID?) -> Shards<Figures>.Shard { asset.map { shards[$0] } ?? shards[0] }
}

/// What the list of most read assets is sorted by.
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
