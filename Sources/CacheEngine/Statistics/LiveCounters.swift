import CacheCore
import Synchronization

/// Counters of moving bytes and active readers, for the live statistics. Threads count without a lock.
final class LiveCounters: Sendable {
    /// The sums of all shards since the start.
    struct Totals: Hashable, Sendable {
        /// Body bytes handed to clients that were on disk when their read began.
        var fromCache: Int64 = 0
        /// Body bytes handed to clients that were fetched during their read.
        var fromUpstream: Int64 = 0
        /// Body bytes received from upstreams.
        var upstream: Int64 = 0
        var readers: Int64 = 0
    }

    private final class Shard: Sendable {
        let fromCache = Atomic<Int64>(0)
        let fromUpstream = Atomic<Int64>(0)
        let upstream = Atomic<Int64>(0)
        let readers = Atomic<Int64>(0)
        // Separates the counters of two shards by a cache line.
        let padding: [8 of Int64] = InlineArray(repeating: 0)
    }

    private let shards = (0..<16).map { _ in Shard() }

    private func shard(of asset: AssetID) -> Shard { shards[Int(asset.low % 16)] }

    /// A read hands out bytes.
    func sent(fromCache: Int64, fromUpstream: Int64, of asset: AssetID) {
        let shard = shard(of: asset)
        if fromCache > 0 { shard.fromCache.wrappingAdd(fromCache, ordering: .relaxed) }
        if fromUpstream > 0 { shard.fromUpstream.wrappingAdd(fromUpstream, ordering: .relaxed) }
    }

    /// Bytes arrived from an upstream.
    func received(_ bytes: Int64, of asset: AssetID) {
        shard(of: asset).upstream.wrappingAdd(bytes, ordering: .relaxed)
    }

    /// A reader joined (1) or left (-1).
    func readers(_ change: Int64, of asset: AssetID) {
        shard(of: asset).readers.wrappingAdd(change, ordering: .relaxed)
    }

    var totals: Totals {
        shards.reduce(into: Totals()) { totals, shard in
            totals.fromCache += shard.fromCache.load(ordering: .relaxed)
            totals.fromUpstream += shard.fromUpstream.load(ordering: .relaxed)
            totals.upstream += shard.upstream.load(ordering: .relaxed)
            totals.readers += shard.readers.load(ordering: .relaxed)
        }
    }
}
