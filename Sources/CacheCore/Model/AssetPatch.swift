/// A partial change of an asset; nil leaves a value unchanged.
package struct AssetPatch: Hashable, Sendable {
    /// The maximum number of tags of an asset.
    package static let maxTags = 64

    /// Whether eviction must spare the asset.
    package var isPinned: Bool?
    /// The end of a pin that this patch sets; nil: the pin has no end.
    package var pinnedUntil: Timestamp?
    /// The complete new list of tags.
    package var tags: [String]?
    /// Null removes the asset's own lifetime.
    package var ttl: Omittable<Duration>
    /// Null restores the verification mode of the origin.
    package var verify: Omittable<Verification>
    /// Null makes the response stale: it must be revalidated before its next use.
    package var freshUntil: Omittable<Timestamp>

    package init(
        isPinned: Bool? = nil, pinnedUntil: Timestamp? = nil, tags: [String]? = nil, ttl: Omittable<Duration> = .absent,
        verify: Omittable<Verification> = .absent, freshUntil: Omittable<Timestamp> = .absent
    ) {
        self.isPinned = isPinned
        self.pinnedUntil = pinnedUntil
        self.tags = tags
        self.ttl = ttl
        self.verify = verify
        self.freshUntil = freshUntil
    }
}
