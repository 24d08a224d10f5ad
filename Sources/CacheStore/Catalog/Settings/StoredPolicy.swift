import CacheCore

/// JSON format of the eviction policy. Durations are milliseconds.
struct StoredPolicy: Codable {
    private var capacityBytes: Int64?
    private var highWatermark: Double
    private var lowWatermark: Double
    private var minFreeDiskBytes: Int64
    private var algorithm: String
    private var maxIdle: Int64?
    private var maxAge: Int64?
    private var grace: Int64
    /// Added later: rows of older versions lack it.
    private var minUses: Int?
    private var maxPinnedBytes: Int64?
    private var tagQuotas: [String: StoredQuota]?

    init(_ policy: PolicySettings) {
        capacityBytes = policy.capacityBytes
        highWatermark = policy.highWatermark
        lowWatermark = policy.lowWatermark
        minFreeDiskBytes = policy.minFreeDiskBytes
        algorithm = policy.algorithm.rawValue
        maxIdle = policy.maxIdle?.wholeMilliseconds
        maxAge = policy.maxAge?.wholeMilliseconds
        grace = policy.grace.wholeMilliseconds
        minUses = policy.minUses
        maxPinnedBytes = policy.maxPinnedBytes
        tagQuotas = policy.tagQuotas.mapValues(StoredQuota.init)
    }

    /// Decodes the policy. Throws `storageCorrupt` if the algorithm is unknown.
    func policy() throws(CacheError) -> PolicySettings {
        PolicySettings(
            capacityBytes: capacityBytes, highWatermark: highWatermark, lowWatermark: lowWatermark,
            minFreeDiskBytes: minFreeDiskBytes, algorithm: try RowCoding.choice(algorithm, "an eviction algorithm"),
            maxIdle: maxIdle.map { .milliseconds($0) }, maxAge: maxAge.map { .milliseconds($0) },
            grace: .milliseconds(grace), minUses: minUses ?? 1, maxPinnedBytes: maxPinnedBytes,
            tagQuotas: (tagQuotas ?? [:]).mapValues(\.quota))
    }
}
