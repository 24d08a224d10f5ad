import CacheCore

/// The eviction policy as JSON. Durations are in milliseconds.
struct PolicyText: Codable {
    private var capacityBytes: Int64?
    private var highWatermark: Double
    private var lowWatermark: Double
    private var minFreeDiskBytes: Int64
    private var algorithm: String
    private var maxIdle: Int64?
    private var maxAge: Int64?
    private var grace: Int64
    /// Rows that are older than it have none.
    private var minUses: Int?
    private var maxPinnedBytes: Int64?
    private var tagQuotas: [String: QuotaText]?

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
        tagQuotas = policy.tagQuotas.mapValues(QuotaText.init)
    }

    func policy() throws(CacheError) -> PolicySettings {
        PolicySettings(
            capacityBytes: capacityBytes, highWatermark: highWatermark, lowWatermark: lowWatermark,
            minFreeDiskBytes: minFreeDiskBytes, algorithm: try RowCoding.choice(algorithm, "an eviction algorithm"),
            maxIdle: maxIdle.map { .milliseconds($0) }, maxAge: maxAge.map { .milliseconds($0) },
            grace: .milliseconds(grace), minUses: minUses ?? 1, maxPinnedBytes: maxPinnedBytes,
            tagQuotas: (tagQuotas ?? [:]).mapValues(\.quota))
    }
}
