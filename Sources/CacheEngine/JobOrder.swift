package import CacheCore

/// What a client asks a prefetch job to fetch, and how.
package struct JobOrder: Sendable {
    /// Ranges are `Range` header texts; none at all: the whole asset.
    package var items: [(reference: AssetReference, ranges: [String])]
    package var priority: JobPriority
    package var label: String?
    /// For all items of the job together.
    package var maxBytesPerSecond: Int64?
    /// From its first item's start.
    package var timeout: Duration?
    package var deadlineAt: Timestamp?
    /// A digest of the request's body: a key that is used again must come with the same.
    package var fingerprint: String

    package init(
        items: [(reference: AssetReference, ranges: [String])], priority: JobPriority = .normal, label: String? = nil,
        maxBytesPerSecond: Int64? = nil, timeout: Duration? = nil, deadlineAt: Timestamp? = nil,
        fingerprint: String = ""
    ) {
        self.items = items
        self.priority = priority
        self.label = label
        self.maxBytesPerSecond = maxBytesPerSecond
        self.timeout = timeout
        self.deadlineAt = deadlineAt
        self.fingerprint = fingerprint
    }

    /// What one job may name.
    package static let maxItems = 10_000

    /// The job as it is kept, under a new identifier. Throws `.invalidField` for limits that are none, for too many items
    /// or none, and for ranges that cannot be read.
    func record(id: String, at now: Timestamp) throws(CacheError) -> JobRecord {
        guard (1...Self.maxItems).contains(items.count) else {
            throw CacheError(.invalidField("items"), "A job has 1 to \(Self.maxItems) items.")
        }
        if let maxBytesPerSecond, maxBytesPerSecond < 1 {
            throw CacheError(
                .invalidField("maxBytesPerSecond"), "A rate of at least 1 byte per second is expected here.")
        }
        if let timeout, timeout <= .zero {
            throw CacheError(.invalidField("timeoutSeconds"), "A time above zero is expected here.")
        }
        var records: [JobItemRecord] = []
        for (index, item) in items.enumerated() {
            for (place, text) in item.ranges.enumerated() {
                guard case .ranges = RangeHeader.parse(text) else {
                    throw CacheError(
                        .invalidField("items[\(index)].ranges[\(place)]"),
                        "A range like bytes=0-1048575 or bytes=-65536 is expected here.")
                }
            }
            records.append(JobItemRecord(index: index, reference: item.reference, ranges: item.ranges))
        }
        return JobRecord(
            id: id, label: label, priority: priority, maxBytesPerSecond: maxBytesPerSecond, timeout: timeout,
            deadlineAt: deadlineAt, createdAt: now, items: records)
    }
}
