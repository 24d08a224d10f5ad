package import CacheCore

/// Which jobs a list names; the newest come first.
package struct JobQuery: Hashable, Sendable {
    package var state: JobState?
    package var label: String?
    package var queue: String?
    /// 1…1000.
    package var limit: Int
    /// Where the last page ended, as that page said.
    package var cursor: String?

    package init(
        state: JobState? = nil, label: String? = nil, queue: String? = nil, limit: Int = 100, cursor: String? = nil
    ) {
        self.state = state
        self.label = label
        self.queue = queue
        self.limit = limit
        self.cursor = cursor
    }
}

/// A job without its items, and what they add up to.
package struct JobSummary: Hashable, Sendable {
    /// Without its items.
    package var record: JobRecord
    /// How many items are in each state; states that none is in are absent.
    package var items: [JobState: Int]
    /// Of the items of known size; nil while there are none.
    package var bytesTotal: Int64?
    package var itemsUnknown: Int
    package var bytesFromCache: Int64
    package var bytesFromUpstream: Int64
}

/// A part of the list of jobs.
package struct JobPage: Hashable, Sendable {
    package var items: [JobSummary]
    package var nextCursor: String?
}

/// A part of a job's items.
package struct JobItemPage: Hashable, Sendable {
    package var items: [JobItemRecord]
    package var nextCursor: String?
}

/// What a client gave so that a repeated request makes no second job.
package struct IdempotencyKey: Hashable, Sendable {
    package var key: String
    /// A digest of the request's body, in any one notation.
    package var bodyHash: String

    package init(key: String, bodyHash: String) {
        self.key = key
        self.bodyHash = bodyHash
    }
}

/// What became of a job that was to be inserted.
package enum JobInsertion: Hashable, Sendable {
    /// With the jobs whose place it took.
    case inserted(superseded: [String] = [])
    /// The idempotency key was used before, for that job.
    case repeated(jobID: String, isSameBody: Bool)
}
