package import CacheCore
import CacheStore

/// What an eviction or purge took, or would take.
package struct EvictionReport: Sendable {
    package struct Entry: Sendable {
        package var assetID: AssetID
        package var key: String
        package var ranges: [ByteRange]
        package var bytes: Int64
    }

    package let isDryRun: Bool
    package var freedBytes: Int64 = 0
    /// Those that are pinned, or were; evictions take none.
    package var pinnedAssets = 0
    /// By which exactly this purge can be carried out.
    package var planID: String?
    /// One for each asset, the first thousand of them, in the order they go.
    package private(set) var entries: [Entry] = []
    /// Of every asset, the place of its entry.
    private var places: [AssetID: Int] = [:]

    package var assets: Int { places.count }

    init(isDryRun: Bool) { self.isDryRun = isDryRun }

    /// Adds to the asset's entry; beyond a thousand only the figures.
    mutating func add(_ entry: Entry) {
        freedBytes += entry.bytes
        let place = places[entry.assetID] ?? assets
        places[entry.assetID] = place
        if place == entries.count, place < 1000 {
            entries.append(entry)
        } else if place < entries.count {
            entries[place].ranges += entry.ranges
            entries[place].bytes += entry.bytes
        }
    }

    /// Enters the keys of the assets, and cuts the ranges off at their ends.
    mutating func describe(_ assets: [SelectedAsset], length: (AssetID) -> Int64?) {
        for asset in assets {
            guard let place = places[asset.id], place < entries.count else { continue }
            entries[place].key = asset.key
            guard let length = length(asset.id) else { continue }
            entries[place].ranges = entries[place].ranges.map { $0.cutOff(at: length) }
        }
    }
}

/// How much an administrator asks to free.
package enum EvictionGoal: Sendable {
    case free(bytes: Int64)
    /// Until the store uses no more than this.
    case target(bytes: Int64)
}

/// Which assets a purge takes: those that meet every condition given.
package struct PurgeSelection: Sendable {
    package var origin: String?
    package var prefix: String?
    /// Globs over keys, of which one must match.
    package var patterns: [KeyPattern]?
    package var tag: String?
    /// Keys, with all variants of their assets.
    package var keys: [String]?
    /// Upstream URLs in any spelling. Each selects the assets that a request for it would read: below the mounts that lead there,
    /// and by the absolute URL; also assets under a given key that were fetched from there.
    package var urls: [String]?
    package var assetIDs: [AssetID]?
    /// `video/mp4` or `video/*`.
    package var contentType: String?
    /// How long they have been there at least.
    package var minAge: Duration?

    package init(
        origin: String? = nil, prefix: String? = nil, patterns: [KeyPattern]? = nil, tag: String? = nil,
        keys: [String]? = nil, urls: [String]? = nil, assetIDs: [AssetID]? = nil, contentType: String? = nil,
        minAge: Duration? = nil
    ) {
        self.origin = origin
        self.prefix = prefix
        self.patterns = patterns
        self.tag = tag
        self.keys = keys
        self.urls = urls
        self.assetIDs = assetIDs
        self.contentType = contentType
        self.minAge = minAge
    }
}
