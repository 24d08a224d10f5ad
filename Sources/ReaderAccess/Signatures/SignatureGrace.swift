package import CacheCore

/// The readers that began before their signature ended, as a bounded table of digests of signature and asset.
package struct SignatureGrace: Sendable {
    /// How long a reader may continue after the end of its signature.
    package var duration: Duration
    private var ends: BoundedTable<TokenDigest, Timestamp>

    /// - Parameter capacity: The maximum number of pairs; the oldest are dropped.
    package init(duration: Duration, capacity: Int = 65_536) {
        self.duration = duration
        ends = BoundedTable(capacity: capacity)
    }

    /// Records a use before the end of the signature.
    package mutating func began(_ use: TokenDigest, until expiry: Timestamp) { ends[use] = expiry }

    /// The uses that may continue at `now` or later.
    package func uses(at now: Timestamp) -> [(use: TokenDigest, expiry: Timestamp)] {
        ends.entries.filter { now < $0.value + duration }.map { ($0.key, $0.value) }
    }

    /// Whether a use may continue after the end of its signature.
    package mutating func admits(_ use: TokenDigest, at now: Timestamp) -> Bool {
        guard let expiry = ends[use] else { return false }
        return now < expiry + duration
    }
}
