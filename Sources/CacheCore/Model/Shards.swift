package import Synchronization

/// Values behind locks of their own, each for a share of the assets: what every read does waits for none that all reads
/// share.
///
/// An asset is always in the same shard, so what is done to it there is in order.
package struct Shards<Value>: Sendable {
    package final class Shard: Sendable {
        package let value: Mutex<Value>

        fileprivate init(_ value: sending Value) { self.value = Mutex(value) }
    }

    private let shards: [Shard]

    /// As many shards, each with what `make` makes.
    package init(count: Int = 16, _ make: () -> sending Value) { shards = (0..<count).map { _ in Shard(make()) } }

    package var count: Int { shards.count }

    /// Any number will do; the same one leads to the same shard.
    package subscript(place: UInt) -> Shard { shards[Int(place % UInt(shards.count))] }

    package subscript(asset: AssetID) -> Shard { shards[place(of: asset)] }

    /// Where what `map` answers of the asset's shard stands.
    package func place(of asset: AssetID) -> Int { Int(asset.low % UInt64(shards.count)) }

    /// What `body` makes of each, one after the other: they are not all of the same moment.
    package func map<Outcome: Sendable>(_ body: (inout Value) -> Outcome) -> [Outcome] {
        shards.map { shard in shard.value.withLock { body(&$0) } }
    }
}
