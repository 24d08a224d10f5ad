/// The state of a job or an item. A timeout is a state of its own, not a case of `failed`.
package enum JobState: String, Hashable, Sendable, CaseIterable {
    case queued, running
    /// Of jobs only: a client has stopped the job until it is resumed.
    case paused
    /// Of items only: a cause prevents the run (``ItemWait``).
    case waiting
    case succeeded, failed, timedOut, cancelled

    /// The states of jobs.
    package static let ofJobs = allCases.filter { $0 != .waiting }
    /// The states of items that have ended.
    package static let endsOfItems = allCases.filter(\.isFinished)

    package var isFinished: Bool {
        switch self {
        case .queued, .running, .paused, .waiting: false
        case .succeeded, .failed, .timedOut, .cancelled: true
        }
    }
}

/// The order class of a job.
package enum JobPriority: String, Hashable, Sendable, ChoiceCodable { case low, normal, high }

/// The reference to an asset in a prefetch item or a probe, in one of three forms.
package enum AssetReference: Hashable, Sendable {
    /// An absolute URL; `key` replaces the asset key that is derived from it.
    case url(String, key: String?)
    /// A path below a mounted origin; `key` as for `url`.
    case mounted(origin: String, path: String, key: String?)
    /// An asset of the catalog.
    case known(AssetID)
}

/// The stored form of an error: the name of its code and its message.
package struct RecordedError: Hashable, Codable, Sendable {
    package var code: String
    package var message: String

    package init(code: String, message: String) {
        self.code = code
        self.message = message
    }

    package init(_ error: CacheError) { self.init(code: error.code.name, message: error.message) }

    /// The error of a job that another job of its queue superseded.
    package static func superseded(by job: String) -> RecordedError {
        RecordedError(CacheError(.cancelled, "The job was superseded by job \(job)."))
    }
}

/// The stored form of a prefetch job.
package struct JobRecord: Hashable, Sendable {
    package var id: String
    package var state: JobState
    package var label: String?
    /// The name of the queue where a later job can supersede this one; nil: none.
    package var queue: String?
    /// Whether the job cancels the unfinished jobs of its queue when it is created or retried. A superseded job has
    /// this property from then on, so that jobs of one queue always supersede each other.
    package var supersedes: Bool
    package var priority: JobPriority
    /// The token that made the job; nil: the service needed none. Its items stay inside the limits of the token.
    package var owner: TokenOwner?
    /// The rate limit of the job; nil: no limit.
    package var maxBytesPerSecond: Int64?
    /// The longest time since `startedAt`; nil: no limit.
    package var timeout: Duration?
    /// The time when an unfinished job ends; nil: none.
    package var deadlineAt: Timestamp?
    /// The times when items may run.
    package var times: JobTimes
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    package var error: RecordedError?
    /// The number of the state of its ``terms``, from 1 on. Each change by a client and each retry increases it.
    package var revision: Int64
    /// The number of first items that are in the spool file of the job, because the catalog may not have all of them; nil:
    /// it has.
    package var spooledItems: Int?
    package var items: [JobItemRecord]

    package init(
        id: String, state: JobState = .queued, label: String? = nil, queue: String? = nil,
        supersedes: Bool = false, priority: JobPriority = .normal, owner: TokenOwner? = nil,
        maxBytesPerSecond: Int64? = nil, timeout: Duration? = nil,
        deadlineAt: Timestamp? = nil, createdAt: Timestamp, startedAt: Timestamp? = nil, finishedAt: Timestamp? = nil,
        error: RecordedError? = nil, revision: Int64 = 1, times: JobTimes = JobTimes(), items: [JobItemRecord] = []
    ) {
        self.id = id
        self.state = state
        self.label = label
        self.queue = queue
        self.supersedes = supersedes
        self.priority = priority
        self.owner = owner
        self.maxBytesPerSecond = maxBytesPerSecond
        self.timeout = timeout
        self.deadlineAt = deadlineAt
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.error = error
        self.revision = revision
        self.times = times
        self.items = items
    }
}

extension JobRecord {
    /// The job without its items.
    package var withoutItems: JobRecord {
        var bare = self
        bare.items = []
        return bare
    }

    /// The number of items without an end.
    var unfinishedCount: Int { items.count { !$0.state.isFinished } }

    /// Ends the items that were unfinished when the job ended: they have the state and the error of the job. The catalog
    /// saves only the end of the job, so that the time of a cancellation does not depend on the number of items.
    package mutating func concludeItems() {
        guard state.isFinished else { return }
        for index in items.indices where !items[index].state.isFinished {
            items[index].state = state
            items[index].error = error
            items[index].wait = nil
        }
    }
}
