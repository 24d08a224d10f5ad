/// Which assets were asked for lately without being kept: what is asked for once only need not be written.
package struct AdmissionFilter: Sendable {
    private struct Use {
        var count: Int
        var at: Timestamp
    }

    /// Uses closer together than this are those of one viewer.
    private static let interval = Duration.seconds(300)

    /// The present half, and the one before it, which is forgotten when the present one is full.
    private var uses: [AssetID: Use] = [:]
    private var earlier: [AssetID: Use] = [:]
    private let limit: Int

    /// `limit`: of how many assets it knows at least.
    package init(limit: Int = 32_768) { self.limit = limit }

    /// Counts a use of an asset that is not kept; answers how many there were, this one included.
    package mutating func use(_ asset: AssetID, at now: Timestamp) -> Int {
        var use = uses[asset] ?? earlier[asset] ?? Use(count: 0, at: now)
        if use.count == 0 || now.since(use.at) >= Self.interval || now < use.at {
            use.count += 1
            use.at = now
        }
        if uses.count >= limit, uses[asset] == nil {
            earlier = uses
            uses = [:]
        }
        uses[asset] = use
        return use.count
    }
}
