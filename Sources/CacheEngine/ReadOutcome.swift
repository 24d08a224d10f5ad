/// How a read was answered, as `Cache-Status` (RFC 9211) and the statistics tell it.
package struct ReadOutcome: Hashable, Sendable {
    /// The classes that requests are counted in; every request is in exactly one.
    package enum Class: String, Hashable, Sendable, CaseIterable {
        /// All bytes on disk and fresh when asked.
        case hit
        /// Some bytes on disk.
        case partial
        /// No byte on disk.
        case miss
        /// All bytes on disk, and the upstream confirmed them.
        case revalidated
        /// All bytes on disk, not fresh, served all the same.
        case stale
        /// A stored failure of the upstream.
        case negative
        /// Nothing of it is kept.
        case bypass
        /// Not answered with content.
        case error
    }

    package var requestClass: Class
    /// Whether a transfer begun for another reader served this one.
    package var isCollapsed: Bool
    /// Whether bytes fetched for it are kept.
    package var isStored: Bool
    /// The upstream's status, where it was asked.
    package var upstreamStatus: Int?
    /// What is left of its freshness; negative when stale.
    package var timeToLive: Duration?

    package init(
        requestClass: Class, isCollapsed: Bool = false, isStored: Bool = false, upstreamStatus: Int? = nil,
        timeToLive: Duration? = nil
    ) {
        self.requestClass = requestClass
        self.isCollapsed = isCollapsed
        self.isStored = isStored
        self.upstreamStatus = upstreamStatus
        self.timeToLive = timeToLive
    }
}
