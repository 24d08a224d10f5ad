package import CacheCore

/// One page of the job list.
package struct JobPage: Hashable, Sendable {
    package var items: [JobSnapshot]
    /// Nil on the last page.
    package var nextCursor: String?
}

/// One page of a job's items.
package struct JobItemPage: Hashable, Sendable {
    package var items: [JobItemRecord]
    /// Nil on the last page.
    package var nextCursor: String?
}

/// A client's idempotency key: a repeated request with the same key creates no second job.
package struct IdempotencyKey: Hashable, Sendable {
    package var key: String
    /// Digest of the request's body. Digests of equal bodies must be equal texts.
    package var bodyHash: String

    package init(key: String, bodyHash: String) {
        self.key = key
        self.bodyHash = bodyHash
    }
}

/// Result of inserting a job.
package enum JobInsertion: Hashable, Sendable {
    /// The job was inserted, and it cancelled these jobs.
    case inserted(superseded: [String] = [])
    /// The idempotency key was used before, for the job `jobID`.
    case repeated(jobID: String, isSameBody: Bool)
}
