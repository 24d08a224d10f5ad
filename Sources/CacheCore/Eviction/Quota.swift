/// How much of the store an owner's assets may have together.
package struct Quota: Hashable, Sendable {
    /// What is left to them whatever others need.
    package var minBytes: Int64
    /// What is above goes, of their own; nil: no limit.
    package var maxBytes: Int64?

    package init(minBytes: Int64 = 0, maxBytes: Int64? = nil) {
        self.minBytes = minBytes
        self.maxBytes = maxBytes
    }

    /// Throws `.invalidField` with the API's name of the first field that cannot be used, below `path`.
    func validate(at path: String) throws(CacheError) {
        guard minBytes >= 0 else {
            throw CacheError(.invalidField("\(path).minBytes"), "What is left to an owner is not negative.")
        }
        guard maxBytes.map({ $0 > 0 && $0 >= minBytes }) ?? true else {
            throw CacheError(
                .invalidField("\(path).maxBytes"), "The most is above 0 and not below the least, or null for no limit.")
        }
    }
}

/// Whose assets a quota is for: all of an origin, or all that have a tag.
package enum QuotaOwner: Hashable, Sendable {
    case origin(String)
    case tag(String)
}

/// A quota, and what its owner has by now.
package struct QuotaStanding: Hashable, Sendable {
    package var owner: QuotaOwner
    package var quota: Quota
    package var cachedBytes: Int64

    package init(owner: QuotaOwner, quota: Quota, cachedBytes: Int64) {
        self.owner = owner
        self.quota = quota
        self.cachedBytes = cachedBytes
    }
}

/// Whose an asset is: it counts to its origin, and to each of its tags.
package struct AssetOwners: Hashable, Sendable {
    package var origin: String
    package var tags: [String]

    package init(origin: String = "", tags: [String] = []) {
        self.origin = origin
        self.tags = tags
    }

    var all: [QuotaOwner] { [.origin(origin)] + tags.map { .tag($0) } }
}
