/// Counts recent uses of assets that are not stored, so that an asset used once need not be written to disk.
///
/// Two generations of counters bound the memory: when the current one is full, it replaces the earlier one.
package struct AdmissionFilter: Sendable {
    /// The uses of one asset, and the time of the last counted one.
    private struct Use {
        var count: Int
        var at: Timestamp
    }

    /// Uses closer together than this count as one: they belong to one viewer.
    private static let interval = Duration.seconds(300)

    /// The current generation of counters.
    private var uses: [AssetID: Use] = [:]
    /// The previous generation, dropped when the current one is full.
    private var earlier: [AssetID: Use] = [:]
    private let limit: Int

    /// `limit`: the number of assets in one generation; the filter knows at least so many.
    package init(limit: Int = 32_768) { self.limit = limit }

    /// Counts a use of an asset that is not stored. Returns the number of uses, including this one.
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
