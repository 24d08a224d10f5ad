package import CacheCore

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

    /// Why the upstream had to be asked (RFC 9211 §2.2).
    package enum Forwarding: String, Hashable, Sendable, CaseIterable {
        case miss, partial, stale, request, bypass
        case varyMiss = "vary-miss"
    }

    package var requestClass: Class
    /// Nil: it was not, for this answer.
    package var forwarding: Forwarding?
    /// Whether a transfer begun for another reader served this one.
    package var isCollapsed: Bool
    /// Whether bytes fetched for it are kept.
    package var isStored: Bool
    /// The upstream's status, where it was asked.
    package var upstreamStatus: Int?
    /// What is left of its freshness; negative when stale.
    package var timeToLive: Duration?
    /// A token that says more: `stale`, `negative`, `fallback`, or an error's code.
    package var detail: String?

    package init(
        requestClass: Class, forwarding: Forwarding? = nil, isCollapsed: Bool = false, isStored: Bool = false,
        upstreamStatus: Int? = nil, timeToLive: Duration? = nil, detail: String? = nil
    ) {
        self.requestClass = requestClass
        self.forwarding = forwarding
        self.isCollapsed = isCollapsed
        self.isStored = isStored
        self.upstreamStatus = upstreamStatus
        self.timeToLive = timeToLive
        self.detail = detail
    }
}

/// A read that is not answered with content: what went wrong, and how far it came.
package struct ReadFailure: Error, Sendable {
    package var error: CacheError
    package var outcome: ReadOutcome
    /// Of a stored refusal.
    package var age: Duration?

    package init(_ error: CacheError, outcome: ReadOutcome? = nil, age: Duration? = nil) {
        self.error = error
        self.outcome = outcome ?? ReadOutcome(requestClass: .error, detail: error.code.name)
        self.age = age
    }
}
