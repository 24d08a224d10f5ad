import CacheCore
import CacheEngine

/// The events of one job: `state` when the state changes, else `progress`.
struct JobEventRenderer: EventRenderer {
    /// The last event that a reconnecting client has seen (`Last-Event-ID`); nil for a new client.
    let seen: Int64?
    private var last: JobState?
    private(set) var isOver = false

    init(seen: Int64?) { self.seen = seen }

    mutating func text(of job: JobSnapshot, _ feed: EventFeed) -> String {
        defer { last = job.record.state }
        isOver = job.record.state.isFinished
        if let seen, job.version <= seen, !isOver { return "" }
        let key = EventFeed.Key.job(id: job.record.id, version: job.version, isState: job.record.state != last)
        return feed.text(of: key) { Self.text(of: job, after: last) }
    }

    /// One event: its name, the job's version as its identifier, and the job's document in one line. `last` is the
    /// state in the previous event, nil for the first.
    static func text(of job: JobSnapshot, after last: JobState?) -> String {
        let name = job.record.state == last ? "progress" : "state"
        return "event: \(name)\nid: \(job.version)\ndata: \(job.json.text)\n\n"
    }
}

/// The seconds of the live statistics as events `second`; the identifier is the second of the Unix epoch.
struct LiveSecondRenderer: EventRenderer {
    let live: LiveStatistics
    /// The start of the last second sent.
    var last: Timestamp
    let isOver = false

    mutating func text(of signal: Void, _ feed: EventFeed) -> String {
        let seconds = live.seconds(after: last)
        if let latest = seconds.last { last = latest.at }
        return seconds.map { second in
            feed.text(of: .second(second.at.milliseconds)) {
                "event: second\nid: \(second.at.milliseconds / 1000)\ndata: \(second.json.text)\n\n"
            }
        }.joined()
    }
}

/// The events of the log after the last one sent, in parts of about 64 KiB.
///
/// A follower that has received the present once, and is 1 MiB or more than the kept events behind later, gets `reset`
/// as its last event.
struct EventLogRenderer: EventRenderer {
    /// The length at which a part ends.
    private static let partBytes = 64 << 10
    /// The unsent bytes at which a follower is late.
    private static let lateBytes = 1 << 20

    let log: EventLog
    let topics: Set<CacheEvent.Topic>
    /// The identifier of the last event that the client has seen; nil for a new client.
    var last: Int64?
    private(set) var isOver = false
    /// Whether the follower has received the present once.
    private var isCurrent = false
    /// Whether the last part was not the end of the text.
    private var hasMore = false

    init(log: EventLog, topics: Set<CacheEvent.Topic>, last: Int64?) {
        self.log = log
        self.topics = topics
        self.last = last
    }

    var reset: String { "event: reset\ndata: {\"lastId\":\(last ?? log.lastID)}\n\n" }

    mutating func text(of signal: Void, _ feed: EventFeed) -> String { part(feed) }

    mutating func more(_ feed: EventFeed) -> String { hasMore ? part(feed) : "" }

    private mutating func part(_ feed: EventFeed) -> String {
        let start = last ?? log.lastID
        last = start
        let (events, isComplete, lastID) = log.events(after: start, topics: topics)
        // The client must read the lists again: events that it has not seen are lost.
        var text = isComplete ? "" : reset
        guard isComplete || !isCurrent else { return end(start) }
        var unsent = 0
        hasMore = false
        for event in events {
            let entry = feed.text(of: .entry(event.id)) {
                "id: \(event.id)\nevent: \(event.content.topic.rawValue)\ndata: \(event.json.text)\n\n"
            }
            unsent += entry.utf8.count
            guard !isCurrent || unsent <= Self.lateBytes else { return end(start) }
            if text.utf8.count < Self.partBytes {
                text += entry
                last = event.id
            } else {
                hasMore = true
                if !isCurrent { break }
            }
        }
        if !hasMore {
            last = lastID
            isCurrent = true
        }
        return text
    }

    /// The last text of a late follower.
    private mutating func end(_ start: Int64) -> String {
        (isOver, last) = (true, start)
        return reset
    }
}
