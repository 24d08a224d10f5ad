/// Conditions and order of a list of assets. Conditions that are nil select all assets.
package struct AssetQuery: Hashable, Sendable {
    /// The part of an asset that is on disk.
    package enum State: String, Hashable, Sendable, CaseIterable { case complete, partial, empty }
    /// The property by which the list is ordered.
    package enum Sort: String, Hashable, Sendable, CaseIterable {
        case lastAccess, cachedBytes, hits, createdAt, key
        /// Assets of unknown length are the shortest.
        case contentLength
    }

    package var key: String?
    /// Upstream URLs: an asset is listed if it was fetched from one of them. Queries are not compared.
    package var urls: [String]?
    /// The keys of these URLs. An asset with one of them is listed, too.
    package var urlKeys: [String] = []
    package var origin: String?
    /// The beginning of the key.
    package var prefix: String?
    /// A part of the key or of the URL of the last fetch, without its query.
    package var part: NamePart?
    package var state: State?
    package var isPinned: Bool?
    package var tag: String?
    package var sort: Sort
    package var isDescending: Bool
    /// The size of a page: 1 to 1000.
    package var limit: Int
    /// The cursor that the previous page returned; nil: the first page.
    package var cursor: String?

    package init(
        key: String? = nil, urls: [String]? = nil, origin: String? = nil, prefix: String? = nil,
        part: NamePart? = nil, state: State? = nil, isPinned: Bool? = nil, tag: String? = nil,
        sort: Sort = .lastAccess, isDescending: Bool = true, limit: Int = 100, cursor: String? = nil
    ) {
        self.key = key
        self.urls = urls
        self.origin = origin
        self.prefix = prefix
        self.part = part
        self.state = state
        self.isPinned = isPinned
        self.tag = tag
        self.sort = sort
        self.isDescending = isDescending
        self.limit = limit
        self.cursor = cursor
    }
}
