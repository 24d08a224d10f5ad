/// How a piece of work stands; a time-out is never folded into "failed".
package enum JobState: String, Hashable, Sendable, CaseIterable {
    case queued, running, succeeded, failed, timedOut, cancelled

    package var isFinished: Bool {
        switch self {
        case .queued, .running: false
        case .succeeded, .failed, .timedOut, .cancelled: true
        }
    }
}

package enum JobPriority: String, Hashable, Sendable, CaseIterable { case low, normal, high }

/// What a prefetch item or a probe names: one of three ways to say which asset.
package enum AssetReference: Hashable, Sendable {
    case url(String, key: String?)
    case mounted(origin: String, path: String, key: String?)
    case known(AssetID)
}

/// A failure as it is kept with a job: the code's name and the sentence.
package struct RecordedError: Hashable, Sendable {
    package var code: String
    package var message: String

    package init(code: String, message: String) {
        self.code = code
        self.message = message
    }

    package init(_ error: CacheError) { self.init(code: error.code.name, message: error.message) }

    /// Why a job ended that another one of its queue took the place of.
    package static func superseded(by job: String) -> RecordedError {
        RecordedError(CacheError(.cancelled, "The job was superseded by job \(job)."))
    }
}

/// A prefetch job as the catalog keeps it.
package struct JobRecord: Hashable, Sendable {
    package var id: String
    package var state: JobState
    package var label: String?
    /// What a later job may supersede it by.
    package var queue: String?
    /// Whether it ends the unfinished jobs of its queue when it is begun, or begun again. One that was superseded does
    /// so too from then on: the jobs of its queue take each other's place.
    package var supersedes: Bool
    package var priority: JobPriority
    package var maxBytesPerSecond: Int64?
    package var timeout: Duration?
    package var deadlineAt: Timestamp?
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    package var error: RecordedError?
    package var items: [JobItemRecord]

    package init(
        id: String, state: JobState = .queued, label: String? = nil, queue: String? = nil,
        supersedes: Bool = false, priority: JobPriority = .normal, maxBytesPerSecond: Int64? = nil,
        timeout: Duration? = nil,
        deadlineAt: Timestamp? = nil, createdAt: Timestamp, startedAt: Timestamp? = nil, finishedAt: Timestamp? = nil,
        error: RecordedError? = nil, items: [JobItemRecord] = []
    ) {
        self.id = id
        self.state = state
        self.label = label
        self.queue = queue
        self.supersedes = supersedes
        self.priority = priority
        self.maxBytesPerSecond = maxBytesPerSecond
        self.timeout = timeout
        self.deadlineAt = deadlineAt
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.error = error
        self.items = items
    }
}

/// One asset of a job, and the ranges of it that are wanted.
package struct JobItemRecord: Hashable, Sendable {
    /// Its place in the job, from 0.
    package var index: Int
    package var reference: AssetReference
    /// Range header texts as the client wrote them; empty: the whole asset.
    package var ranges: [String]
    /// Added to the asset's tags when all of the item is on disk.
    package var tags: [String]
    /// Whether the asset is pinned then.
    package var isPinned: Bool
    package var state: JobState
    package var assetID: AssetID?
    package var attempts: Int
    /// Nil until the asset's length is known.
    package var bytesTotal: Int64?
    package var bytesFromCache: Int64
    package var bytesFromUpstream: Int64
    package var error: RecordedError?

    package init(
        index: Int, reference: AssetReference, ranges: [String] = [], tags: [String] = [], isPinned: Bool = false,
        state: JobState = .queued, assetID: AssetID? = nil, attempts: Int = 0, bytesTotal: Int64? = nil,
        bytesFromCache: Int64 = 0,
        bytesFromUpstream: Int64 = 0, error: RecordedError? = nil
    ) {
        self.index = index
        self.reference = reference
        self.ranges = ranges
        self.tags = tags
        self.isPinned = isPinned
        self.state = state
        self.assetID = assetID
        self.attempts = attempts
        self.bytesTotal = bytesTotal
        self.bytesFromCache = bytesFromCache
        self.bytesFromUpstream = bytesFromUpstream
        self.error = error
    }

    package var bytesDone: Int64 { bytesFromCache + bytesFromUpstream }
}
