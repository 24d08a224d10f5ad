package import CacheCore

/// A request to create a prefetch job: the items to fetch, and the limits.
package struct CreateJobRequest: Sendable {
    /// An asset, and the part of it to fetch.
    package struct Item: Sendable {
        package var reference: AssetReference
        /// Ranges in the syntax of the `Range` field; empty: the whole asset.
        package var ranges: [String]
        /// The time span to make playable; nil: the item fetches bytes.
        package var play: PlayRequest?
        /// The files to select from the folder that the reference names; nil: the item is one asset.
        package var list: ListSelection?

        package init(
            reference: AssetReference, ranges: [String] = [], play: PlayRequest? = nil, list: ListSelection? = nil
        ) {
            self.reference = reference
            self.ranges = ranges
            self.play = play
            self.list = list
        }
    }

    package var items: [Item]
    /// Tags that are added to every item's asset.
    package var tags: [String]
    /// Whether every item's asset is pinned after it was fetched.
    package var isPinned: Bool
    package var priority: JobPriority
    package var label: String?
    /// The name of a queue, within which a later job may supersede this one: 1–64 of A–Z, a–z, 0–9, `.`, `_`, `-`.
    package var queue: String?
    /// Whether the unfinished jobs of the queue end when this one is created.
    package var supersedes: Bool
    /// The rate limit for all items of the job together; nil means none.
    package var maxBytesPerSecond: Int64?
    /// The time limit, counted from the start of the first item; nil means none.
    package var timeout: Duration?
    /// The time when the unfinished job ends; nil means none.
    package var deadlineAt: Timestamp?
    /// The times when items may run, without the trigger.
    package var times = JobTimes()
    /// The asset, and the percentage of its length, that a reader must pass before items run; nil: none.
    package var when: (reference: AssetReference, percent: Double)?
    /// Whether no job is created (``PrefetchJobs/plan(_:)``).
    package var isDryRun = false
    /// The token that makes the job; nil: the service needs none.
    package var owner: TokenOwner?
    /// A digest of the request body: a repeated idempotency key must come with the same digest.
    package var fingerprint: String

    package init(
        items: [Item], priority: JobPriority = .normal, label: String? = nil,
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

    /// The maximum number of items in one document.
    static let maxItems = 10_000

    /// The job record with a new identifier, without items. Throws `.invalidField` for invalid limits, a passed deadline, and
    /// an invalid or missing queue name.
    func head(id: String, at now: Timestamp) throws(CacheError) -> JobRecord {
        if let maxBytesPerSecond, maxBytesPerSecond < 1 {
            throw .invalid("maxBytesPerSecond", "A rate of at least 1 byte per second is expected here.")
        }
        if let timeout, timeout <= .zero { throw .invalid("timeoutSeconds", "A timeout above zero is expected here.") }
        if let queue, !FieldText.isName(queue) {
            throw .invalid("queue", "A queue name has 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-'.")
        }
        if supersedes, queue == nil { throw .invalid("supersede", "supersede needs a queue: set queue, too.") }
        if let deadlineAt, deadlineAt <= now {
            throw .invalid("deadlineAt", "The deadline has passed: give a later time, or none.")
        }
        return JobRecord(
            id: id, label: label, queue: queue, supersedes: supersedes, priority: priority, owner: owner,
            maxBytesPerSecond: maxBytesPerSecond, timeout: timeout, deadlineAt: deadlineAt, createdAt: now,
            times: times)
    }

    /// The error of a job with too many items; nil: it has not.
    static func refusal(of count: Int, maxItems: Int) -> CacheError? {
        guard count > maxItems else { return nil }
        return CacheError(
            .jobTooLarge,
            "The job has \(count) items, limits.jobItems permits \(maxItems): use several jobs, or raise the limit.")
    }

    /// The record of an item. Throws `.invalidField` for invalid ranges.
    func record(of item: Item, at index: Int) throws(CacheError) -> JobItemRecord {
        for (place, text) in item.ranges.enumerated() {
            guard case .ranges = RangeHeader.parse(text) else {
                throw .invalid(
                    "items[\(index)].ranges[\(place)]",
                    "A range like bytes=0-1048575 or bytes=-65536 is expected here.")
            }
        }
        if item.list != nil, case .url = item.reference {
            throw .invalid("items[\(index)].url", "A list needs a URL below the base URL of an origin.")
        }
        var record = JobItemRecord(
            index: index, reference: item.reference, ranges: item.ranges, tags: tags, isPinned: isPinned)
        if item.play != nil { record.play = item.play }
        if item.list != nil { record.list = item.list }
        return record
    }
}
