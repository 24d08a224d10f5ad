import CacheCore

/// JSON format of a quota.
struct StoredQuota: Codable {
    private var minBytes: Int64
    private var maxBytes: Int64?

    init(_ quota: Quota) {
        minBytes = quota.minBytes
        maxBytes = quota.maxBytes
    }

    var quota: Quota { Quota(minBytes: minBytes, maxBytes: maxBytes) }
}
