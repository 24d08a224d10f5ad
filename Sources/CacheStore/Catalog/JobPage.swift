package import CacheCore

/// One page of the job list.
package struct JobPage: Hashable, Sendable {
    package var items: [JobSnapshot]
    /// Nil on the last page.
    package var nextCursor: String?

    package init(items: [JobSnapshot], nextCursor: String? = nil) {
        self.items = items
        self.nextCursor = nextCursor
    }
}

/// One page of a job's items.
package struct JobItemPage: Hashable, Sendable {
    /// The position of a page in the list.
    package struct Place: Sendable {
        private let list: String
        /// The index of the last item of the previous page; -1 for the first page.
        package let last: Int
        /// The page size.
        package let limit: Int

        /// The page size is limited to 1…1,000. Throws `invalidField("cursor")` if the cursor does not belong to the
        /// list of this job.
        package init(of job: String, limit: Int, cursor: String?) throws(CacheError) {
            list = "items.\(job)"
            last =
                try cursor.map { [list] text throws(CacheError) in Int(try PageCursor(text, list: list).value) } ?? -1
            self.limit = min(max(limit, 1), 1000)
        }

        fileprivate func cursor(after item: JobItemRecord) -> String {
            PageCursor(list: list, value: Int64(item.index)).text
        }
    }

    package var items: [JobItemRecord]
    /// Nil on the last page.
    package var nextCursor: String?

    /// A page of at most `place.limit` items. `items` has one more if there is a next page.
    package init(_ items: [JobItemRecord], at place: Place) {
        self.items = Array(items.prefix(place.limit))
        nextCursor = items.count > place.limit ? self.items.last.map(place.cursor) : nil
    }
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
