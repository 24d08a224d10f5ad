package import CacheCore

/// What a client asks a prefetch job to fetch, and how.
package struct JobOrder: Sendable {
    /// Ranges are `Range` header texts; none at all: the whole asset.
    package var items: [(reference: AssetReference, ranges: [String])]
    /// Added to the tags of every item's asset.
    package var tags: [String]
    /// Whether every item's asset is pinned.
    package var isPinned: Bool
    package var priority: JobPriority
    package var label: String?
    /// A name that later jobs may supersede it by: 1–64 of A–Z, a–z, 0–9, `.`, `_`, `-`.
    package var queue: String?
    /// Whether the unfinished jobs of its queue end as it is taken on.
    package var supersedes: Bool
    /// For all items of the job together.
    package var maxBytesPerSecond: Int64?
    /// From its first item's start.
    package var timeout: Duration?
    package var deadlineAt: Timestamp?
    /// A digest of the request's body: a key that is used again must come with the same.
    package var fingerprint: String

    package init(
        items: [(reference: AssetReference, ranges: [String])], priority: JobPriority = .normal, label: String? = nil,
        queue: String? = nil, supersedes: Bool = false, maxBytesPerSecond: Int64? = nil, timeout: Duration? = nil,
        deadlineAt: Timestamp? = nil, tags: [String] = [], isPinned: Bool = false, fingerprint: String = ""
    ) {
        self.items = items
        self.tags = tags
        self.isPinned = isPinned
        self.priority = priority
        self.label = label
        self.queue = queue
        self.supersedes = supersedes
        self.maxBytesPerSecond = maxBytesPerSecond
        self.timeout = timeout
        self.deadlineAt = deadlineAt
        self.fingerprint = fingerprint
    }

    /// What one job may name.
    package static let maxItems = 10_000

    /// The job as it is kept, under a new identifier. Throws `.invalidField` for limits that are none, for too many items
    /// or none, for ranges that cannot be read, and for a queue that has no name or none that can be used.
    func record(id: String, at now: Timestamp) throws(CacheError) -> JobRecord {
        try check()
        if let deadlineAt, deadlineAt <= now {
            throw CacheError(.invalidField("deadlineAt"), "The deadline has passed.")
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
            records.append(
                JobItemRecord(
                    index: index, reference: item.reference, ranges: item.ranges, tags: tags, isPinned: isPinned))
        }
        return JobRecord(
            id: id, label: label, queue: queue, supersedes: supersedes, priority: priority,
            maxBytesPerSecond: maxBytesPerSecond, timeout: timeout, deadlineAt: deadlineAt, createdAt: now,
            items: records)
    }

    private func check() throws(CacheError) {
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
        if let queue, !Self.isValid(queue: queue) {
            throw CacheError(
                .invalidField("queue"), "A queue's name is 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'.")
        }
        if supersedes, queue == nil {
            throw CacheError(.invalidField("supersede"), "Only the jobs of a queue can be superseded: name it.")
        }
    }

    private static func isValid(queue: String) -> Bool {
        let marks = ".-_".utf8
        return (1...64).contains(queue.utf8.count)
            && queue.utf8.allSatisfy { FieldText.isLetter($0) || FieldText.isDigit($0) || marks.contains($0) }
    }
}
