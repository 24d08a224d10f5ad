/// Divides state into shards by asset, each with its own lock, so that reads of different assets rarely contend.
///
/// An asset always has the same shard, so changes of its state are serialised.
package struct Sharded<Value>: Sendable {
    /// One shard; its lock guards the value of a part of the assets.
    package final class Shard: Sendable {
        /// Guards the shard's state.
        package let value: OrderedMutex<Value>

        fileprivate init(_ rank: LockRank, _ value: sending Value) { self.value = OrderedMutex(rank, value) }
    }

    private let shards: [Shard]

    /// Creates `count` shards, each with a value from `make`. No thread holds the locks of two shards.
    package init(_ rank: LockRank, count: Int = 16, _ make: () -> sending Value) {
        shards = (0..<count).map { _ in Shard(rank, make()) }
    }

    package var count: Int { shards.count }

    /// The shard for any number; equal numbers have equal shards.
    package subscript(place: UInt) -> Shard { shards[Int(place % UInt(shards.count))] }

    /// The shard of an asset.
    package subscript(asset: AssetID) -> Shard { shards[index(of: asset)] }

    /// The index of the asset's shard, as in the result of `map`.
    package func index(of asset: AssetID) -> Int { Int(asset.low % UInt64(shards.count)) }

    /// Applies `body` to each shard in turn. The results are not a consistent snapshot: each shard is locked
    /// separately.
    package func map<Outcome: Sendable>(_ body: (inout Value) -> Outcome) -> [Outcome] {
        shards.map { shard in shard.value.withLock { body(&$0) } }
    }
}
