package import CacheCore

/// The result of a read as reported by `Cache-Status` (RFC 9211) and the statistics.
package struct ReadOutcome: Hashable, Sendable {
    /// The classes in which requests are counted. Every request belongs to exactly one.
    package enum Class: String, Hashable, Sendable, CaseIterable {
        /// All bytes were on disk and fresh.
        case hit
        /// Some bytes were on disk.
        case partial
        /// No byte was on disk.
        case miss
        /// All bytes were on disk, and the upstream confirmed that they are current.
        case revalidated
        /// All bytes were on disk and were served although stale.
        case stale
        /// A stored refusal of the upstream was repeated.
        case negative
        /// The response is not stored.
        case bypass
        /// The response is not the requested content.
        case error

        /// The classes that hit ratios count as hits: all bytes were on disk.
        package static let hits: [Class] = [.hit, .revalidated, .stale]
    }

    /// The reason for an upstream request (RFC 9211 §2.2).
    package enum Forwarding: String, Hashable, Sendable, CaseIterable {
        case miss, partial, stale, request, bypass
        case varyMiss = "vary-miss"
    }

    package var requestClass: Class
    /// Nil if no upstream request was needed.
    package var forwarding: Forwarding?
    /// Whether a transfer started for another reader served this one (request coalescing).
    package var isCollapsed = false
    /// Whether another node of the fleet reads. Such a read is no use of the asset, and no request of a client.
    package var isForPeer = false
    /// Whether the bytes fetched for this read are stored.
    package var isStored = false
    /// The status of the upstream's response; nil if there was no request or no response.
    package var upstreamStatus: Int?
    /// The remaining freshness lifetime; negative if stale.
    package var timeToLive: Duration?
    /// A token with more detail: `stale`, `negative`, `fallback`, or an error code.
    package var detail: String?
}

/// A read that failed before its content was served: the error, and the outcome to report.
package struct ReadFailure: Error, Sendable {
    package var error: CacheError
    package var outcome: ReadOutcome
    /// The age of a repeated refusal; nil otherwise.
    package var age: Duration?
    /// Whether the request is in the statistics: its asset was known, and its client authorized.
    package var isCounted = false
    /// Nil: the reference was not resolved.
    package var asset: AssetName?

    package init(_ error: CacheError, outcome: ReadOutcome? = nil, age: Duration? = nil) {
        self.error = error
        self.outcome = outcome ?? ReadOutcome(requestClass: .error, detail: error.code.name)
        self.age = age
    }
}
