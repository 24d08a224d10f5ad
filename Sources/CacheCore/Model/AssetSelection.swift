/// Conditions for assets: an asset is selected if it meets all of them. A nil condition is ignored.
package struct AssetSelection: Hashable, Sendable {
    /// Name of the origin.
    package var origin: String?
    /// A prefix of the key.
    package var prefix: String?
    /// Glob patterns for keys, of which one must match. A variant is tested with the key of its base asset.
    package var patterns: [KeyPattern]?
    /// A tag that the asset must have.
    package var tag: String?
    /// The identifiers to select from.
    package var ids: [AssetID]?
    /// A media type without parameters, such as `video/mp4`, or a range such as `video/*`.
    package var contentType: String?
    /// Inclusive upper limit of the creation time.
    package var createdBefore: Timestamp?

    package init(
        origin: String? = nil, prefix: String? = nil, patterns: [KeyPattern]? = nil, tag: String? = nil,
        ids: [AssetID]? = nil, contentType: String? = nil, createdBefore: Timestamp? = nil
    ) {
        self.origin = origin
        self.prefix = prefix
        self.patterns = patterns
        self.tag = tag
        self.ids = ids
        self.contentType = contentType
        self.createdBefore = createdBefore
    }
}
