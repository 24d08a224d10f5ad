package import CacheCore

/// What an eviction or purge took, or would take.
package struct EvictionReport: Sendable {
    package struct Entry: Sendable {
        package var assetID: AssetID
        package var key: String
        package var ranges: [ByteRange]
        package var bytes: Int64
    }

    package var isDryRun: Bool
    package var freedBytes: Int64
    /// The first thousand, in the order they go.
    package var entries: [Entry]
    package var assets: Int

    /// Adds an entry; beyond a thousand only its figures.
    mutating func add(_ entry: Entry) {
        freedBytes += entry.bytes
        assets += 1
        if entries.count < 1000 { entries.append(entry) }
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
    package var tag: String?
    package var urls: [String]?

    package init(origin: String? = nil, prefix: String? = nil, tag: String? = nil, urls: [String]? = nil) {
        self.origin = origin
        self.prefix = prefix
        self.tag = tag
        self.urls = urls
    }
}
