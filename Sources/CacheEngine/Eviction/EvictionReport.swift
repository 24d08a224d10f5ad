package import CacheCore
import CacheStore

/// The result of an eviction or a purge, or of its dry run.
package struct EvictionReport: Sendable {
    /// The ranges of one asset. `ranges` is empty for a purge; it removes whole assets.
    package struct Entry: Sendable {
        package var assetID: AssetID
        package var key: String
        package var ranges: [ByteRange]
        package var bytes: Int64
    }

    /// Whether this is the report of a dry run; it removes nothing.
    package let isDryRun: Bool
    /// The bytes that were freed, or would be; 0 for a soft purge.
    package var freedBytes: Int64 = 0
    /// The number of pinned assets among the purged ones; evictions skip pinned assets.
    package var pinnedAssets = 0
    /// The plan with which this dry run can be committed, or the purge that runs in the background; nil otherwise.
    package var planID: String?
    /// Whether the purge has taken effect and deletes its assets in the background; the report then has no entries.
    package var isInBackground = false
    /// The receipt of an erasure; nil for other purges.
    package var receipt: ErasureReceipt?
    /// The probable reason why a purge selects no asset; nil: it selects some, or the reason is unknown.
    package var hint: String?
    /// One entry for each of the first 1,000 assets, in the order of their removal.
    package private(set) var entries: [Entry] = []
    /// The index of each asset's entry; 1,000 or more for assets without an entry.
    private var indices: [AssetID: Int] = [:]

    /// The number of assets, with or without an entry.
    package var assets: Int { indices.count }

    init(isDryRun: Bool) { self.isDryRun = isDryRun }

    /// Adds to the entry of the asset. After the first 1,000 assets only the totals grow.
    mutating func add(_ entry: Entry) {
        freedBytes += entry.bytes
        let index = indices[entry.assetID] ?? assets
        indices[entry.assetID] = index
        if index == entries.count, index < 1000 {
            entries.append(entry)
        } else if index < entries.count {
            entries[index].ranges += entry.ranges
            entries[index].bytes += entry.bytes
        }
    }

    /// Enters the keys of the assets, and clips the ranges at the ends of the assets.
    mutating func describe(_ assets: [SelectedAsset], length: (AssetID) -> Int64?) {
        for asset in assets {
            guard let index = indices[asset.id], index < entries.count else { continue }
            entries[index].key = asset.key
            guard let length = length(asset.id) else { continue }
            entries[index].ranges = entries[index].ranges.map { $0.cutOff(at: length) }
        }
    }
}

/// The amount that an administrator asks to free.
package enum EvictionGoal: Sendable {
    case free(bytes: Int64)
    /// Free until the store uses at most this number of bytes.
    case target(bytes: Int64)
}

extension EvictionReport.Entry {
    /// The number of evicted bytes in these ranges. Holes within the evicted ranges count as evenly distributed.
    func bytes(in parts: [ByteRange]) -> Int64 {
        let (evicted, whole) = (ByteRangeSet(ranges), ranges.byteCount)
        guard whole > 0 else { return 0 }
        let part = ByteRangeSet(parts).runs.reduce(0) { $0 + evicted.byteCount(in: $1) }
        return Int64(Double(bytes) * Double(part) / Double(whole))
    }
}
