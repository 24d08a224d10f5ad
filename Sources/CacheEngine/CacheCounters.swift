import CacheCore
import Synchronization

/// Everything that is counted, per origin and per asset, since the service started.
final class CacheCounters: Sendable {
    private struct State {
        var origins: [String: TrafficFigures] = [:]
        var assets: [AssetID: TopAsset] = [:]
        var evictions: Int64 = 0
        var evictedBytes: Int64 = 0
    }

    private let state = Mutex(State())
    /// Assets whose reads are told apart; beyond it the less read half is forgotten.
    private let assetLimit: Int

    init(assetLimit: Int = 20_000) { self.assetLimit = assetLimit }

    /// One request came to its end.
    func answered(_ requestClass: ReadOutcome.Class, origin: String) {
        count(origin) { $0.requests[requestClass.rawValue, default: 0] += 1 }
    }

    func clientAborted(origin: String) { count(origin) { $0.clientAborted += 1 } }

    /// Bytes were sent; nil as the asset: they are of none.
    func served(fromCache: Int64, afterFill: Int64, of asset: AssetID?, key: String, origin: String) {
        state.withLock { state in
            state.origins[origin, default: TrafficFigures()].servedFromCacheBytes += fromCache
            state.origins[origin, default: TrafficFigures()].servedAfterFillBytes += afterFill
            guard let asset else { return }
            var top =
                state.assets[asset]
                ?? TopAsset(assetID: asset, key: key, servedBytes: 0, servedFromCacheBytes: 0, requests: 0)
            top.servedBytes += fromCache + afterFill
            top.servedFromCacheBytes += fromCache
            top.requests += 1
            state.assets[asset] = top
            guard state.assets.count > assetLimit else { return }
            let kept = state.assets.values.sorted { $0.servedBytes > $1.servedBytes }.prefix(assetLimit / 2)
            state.assets = Dictionary(uniqueKeysWithValues: kept.map { ($0.assetID, $0) })
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
        state.withLock { state in
            state.evictions += Int64(segments)
            state.evictedBytes += bytes
        }
    }

    var evictions: (count: Int64, bytes: Int64) { state.withLock { ($0.evictions, $0.evictedBytes) } }

    /// The figures of every origin that was asked for anything, by name.
    func origins() -> [String: TrafficFigures] { state.withLock { $0.origins } }

    func top(by order: TopOrder, limit: Int) -> [TopAsset] {
        let assets = state.withLock { Array($0.assets.values) }
        return Array(assets.sorted { (order.rank($0), $1.assetID) > (order.rank($1), $0.assetID) }.prefix(limit))
    }

    private func count(_ origin: String, _ body: (inout TrafficFigures) -> Void) {
        state.withLock { body(&$0.origins[origin, default: TrafficFigures()]) }
    }
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
