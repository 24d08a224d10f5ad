/// Which assets a list names, and in what order.
package struct AssetQuery: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable { case complete, partial, empty }
    package enum Sort: String, Hashable, Sendable, CaseIterable { case lastAccess, cachedBytes, hits, createdAt }

    package var key: String?
    /// Upstream URLs, of which one must be the asset's; queries are left out of the comparison.
    package var urls: [String]?
    /// The keys of those URLs: assets with one of them are listed, too.
    package var urlKeys: [String] = []
    package var origin: String?
    /// What the key begins with.
    package var prefix: String?
    package var state: State?
    package var isPinned: Bool?
    package var tag: String?
    package var sort: Sort
    package var isDescending: Bool
    /// 1…1000.
    package var limit: Int
    /// Where the last page ended, as that page said.
    package var cursor: String?

    package init(
        key: String? = nil, urls: [String]? = nil, origin: String? = nil, prefix: String? = nil, state: State? = nil,
        isPinned: Bool? = nil, tag: String? = nil, sort: Sort = .lastAccess, isDescending: Bool = true,
        limit: Int = 100, cursor: String? = nil
    ) {
        self.key = key
        self.urls = urls
        self.origin = origin
        self.prefix = prefix
        self.state = state
        self.isPinned = isPinned
        self.tag = tag
        self.sort = sort
        self.isDescending = isDescending
        self.limit = limit
        self.cursor = cursor
    }
}
