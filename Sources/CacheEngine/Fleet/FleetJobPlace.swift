import CacheCore
import CacheStore

/// The position of a page in the list of all jobs of a fleet: behind a job of the fleet, and behind one of this node.
struct FleetJobPlace: Hashable, Sendable {
    /// The last job of the fleet.
    struct Last: Hashable, Sendable {
        var createdAt: Timestamp
        var id: String

        init(_ job: JobSnapshot) { (createdAt, id) = (job.record.createdAt, job.record.id) }

        init(createdAt: Timestamp, id: String) { (self.createdAt, self.id) = (createdAt, id) }

        /// Whether a job comes later in the list, which begins with the newest.
        func precedes(_ job: JobSnapshot) -> Bool { (createdAt, id) > (job.record.createdAt, job.record.id) }
    }

    private static let list = "fleetJobs"

    /// Nil: none was shown yet.
    var last: Last?
    /// The position in the jobs of this node; nil: none was shown yet.
    var ownCursor: String?
    /// Whether this node has further jobs of its own.
    var hasOwn = true

    /// Nil: the first page. Throws `invalidField("cursor")`.
    init(_ text: String?) throws(CacheError) {
        guard let text else { return }
        let cursor = try PageCursor(text, list: Self.list)
        let parts = cursor.tie.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else {
            throw CacheError(.invalidField("cursor"), "The cursor is not a nextCursor of this list.")
        }
        if !parts[0].isEmpty { last = Last(createdAt: Timestamp(milliseconds: cursor.value), id: parts[0]) }
        ownCursor = parts[1].isEmpty ? nil : parts[1]
        hasOwn = parts[2] == "1"
    }

    /// The cursor of the page behind this position.
    var text: String {
        PageCursor(
            list: Self.list, value: last?.createdAt.milliseconds ?? 0,
            tie: "\(last?.id ?? ""),\(ownCursor ?? ""),\(hasOwn ? 1 : 0)"
        ).text
    }
}
