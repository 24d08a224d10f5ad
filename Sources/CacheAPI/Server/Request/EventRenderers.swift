import CacheCore
import CacheEngine
import NIOCore

/// The events of one job: `state` when the state changes, else `progress`.
struct JobEventRenderer: EventRenderer {
    let id: String
    let jobs: PrefetchJobs
    /// The last event that a reconnecting client has seen (`Last-Event-ID`); nil for a new client.
    let seen: Int64?
    /// The last examined event of the log; nil at the start.
    private var position: Int64?
    private var last: (state: JobState, version: Int64)?
    private(set) var isOver = false

    init(id: String, jobs: PrefetchJobs, seen: Int64?) {
        self.id = id
        self.jobs = jobs
        self.seen = seen
    }

    var topics: Set<CacheEvent.Topic> { [.jobs] }
    var readsLog: Bool { false }

    /// The present state of the job comes from the event log. It is read at the start, after a silence, and if events were
    /// discarded. A job that cannot be read ends the stream; the client's next request reports the error.
    mutating func part(_ signal: EventFollower.Signal, _ feed: EventFeed) async -> ByteBuffer {
        let (events, isComplete, present) = feed.log.events(after: position ?? feed.log.lastID, topics: topics)
        var job = events.last { $0.job?.record.id == id }?.job
        if position == nil || !isComplete || signal == .silence {
            job = try? await jobs.job(id)
            isOver = job == nil
        }
        position = present
        return job.map { ByteBuffer(string: text(of: $0, feed)) } ?? ByteBuffer()
    }

    private mutating func text(of job: JobSnapshot, _ feed: EventFeed) -> String {
        var job = job
        isOver = job.record.state.isFinished
        guard isOver || job.version > last?.version ?? .min else { return "" }
        // A finished job may come from the catalog, which may state a lower version: versions of one stream always
        // increase.
        if let last { job.version = max(job.version, last.version + 1) }
        defer { last = (job.record.state, job.version) }
        if let seen, job.version <= seen, !isOver { return "" }
        let key = EventFeed.Key.job(
            id: job.record.id, version: job.version, isState: job.record.state != last?.state)
        return feed.text(of: key) { Self.text(of: job, after: last?.state) }
    }

    /// One event: its name, the job's version as its identifier, and the job's document in one line. `last` is the
    /// state in the previous event, nil for the first.
    static func text(of job: JobSnapshot, after last: JobState?) -> String {
        let name = job.record.state == last ? "progress" : "state"
        return "event: \(name)\nid: \(job.version)\ndata: \(JobDocument(job).jsonText)\n\n"
    }
}

extension CacheEvent {
    fileprivate var job: JobSnapshot? { if case .job(let job, _) = content { job } else { nil } }
}

/// The seconds of the live statistics as events `second`; the identifier is the second of the Unix epoch.
struct LiveSecondRenderer: EventRenderer {
    let live: LiveStatistics
    /// The start of the last second sent.
    var last: Timestamp
    let isOver = false

    var topics: Set<CacheEvent.Topic> { [.stats] }
    var readsLog: Bool { false }

    mutating func part(_ signal: EventFollower.Signal, _ feed: EventFeed) -> ByteBuffer {
        let seconds = live.seconds(after: last)
        if let latest = seconds.last { last = latest.at }
        var bytes = ByteBuffer()
        for second in seconds {
            bytes.writeString(
                feed.text(of: .second(second.at.milliseconds)) {
                    "event: second\nid: \(second.at.milliseconds / 1000)\ndata: \(LiveSecondDocument(second).jsonText)\n\n"
                })
        }
        return bytes
    }
}

/// The events of the log after the last one sent, in parts of about 64 KiB.
///
/// A follower that has received the present once, and is 1 MiB or more than the kept events behind later, gets `reset`
/// as its last event.
struct EventLogRenderer: EventRenderer {
    /// The unsent bytes at which a follower is late.
    private static let lateBytes = 1 << 20

    let topics: Set<CacheEvent.Topic>
    /// The identifier of the last event that the client has seen; nil for a new client.
    private var last: Int64?
    private(set) var isOver = false
    private(set) var hasMore = false
    private(set) var isCurrent = false

    init(topics: Set<CacheEvent.Topic>, last: Int64?) {
        self.topics = topics
        self.last = last
    }

    var readsLog: Bool { true }
    var reset: String { "event: reset\ndata: {\"lastId\":\(last ?? 0)}\n\n" }

    mutating func part(_ signal: EventFollower.Signal, _ feed: EventFeed) -> ByteBuffer {
        let start = last ?? feed.log.lastID
        last = start
        let part = feed.part(of: topics, after: start, isCurrent: isCurrent)
        if isCurrent, !part.isComplete || part.unsentBytes > Self.lateBytes {
            isOver = true
            return ByteBuffer(string: reset)
        }
        // The client must read the lists again: events that it has not seen are lost.
        var bytes = part.isComplete ? part.bytes : ByteBuffer(string: reset)
        if !part.isComplete { bytes.writeImmutableBuffer(part.bytes) }
        (last, hasMore) = (part.last, part.hasMore)
        if !hasMore { isCurrent = true }
        return bytes
    }
}
