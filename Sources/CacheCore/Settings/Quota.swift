/// The minimum and maximum disk usage of one owner.
package struct Quota: Hashable, Sendable {
    /// Bytes that eviction leaves to the owner as long as another asset can be evicted.
    package var minBytes: Int64
    /// Usage above this is evicted, from assets of the owner only; nil: no limit.
    package var maxBytes: Int64?

    package init(minBytes: Int64 = 0, maxBytes: Int64? = nil) {
        self.minBytes = minBytes
        self.maxBytes = maxBytes
    }
}

/// The owner of a quota: all assets of an origin, or all assets with a tag.
package enum QuotaOwner: Hashable, Sendable {
    case origin(String)
    case tag(String)
}

/// A quota and the usage of its owner.
package struct QuotaStatus: Hashable, Sendable {
    package var owner: QuotaOwner
    package var quota: Quota
    /// The counted bytes of the owner's assets on disk.
    package var cachedBytes: Int64

    package init(owner: QuotaOwner, quota: Quota, cachedBytes: Int64) {
        self.owner = owner
        self.quota = quota
        self.cachedBytes = cachedBytes
    }
}

/// The owners of one asset: its origin and each of its tags.
package struct AssetOwners: Hashable, Sendable {
    package var origin: String
    package var tags: [String]

    package init(origin: String = "", tags: [String] = []) {
        self.origin = origin
        self.tags = tags
    }

    var all: [QuotaOwner] { [.origin(origin)] + tags.map { .tag($0) } }
}
