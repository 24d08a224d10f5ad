import CacheCore
import CacheEngine
import NIOCore

/// The events of the log together with ended requests, in the order of their identifiers.
///
/// At most ``perSecond`` requests are sent in a second, the newest ones. An event with the type `omitted` states the number
/// of the others.
struct RequestEventRenderer: EventRenderer {
    static let perSecond = 1000

    /// The requests that were sent in the present second.
    struct RateLimit: Sendable {
        private var second = Int64.min
        private var sent = 0

        /// The number of requests that may be sent at a time, at most `count`.
        mutating func claim(_ count: Int, at now: Duration) -> Int {
            if second != now.components.seconds { (second, sent) = (now.components.seconds, 0) }
            let granted = min(count, RequestEventRenderer.perSecond - sent)
            sent += granted
            return granted
        }
    }

    let topics: Set<CacheEvent.Topic>
    let filter: RequestFilter
    let showsClients: Bool
    let history: RequestHistory
    /// The identifier of the last event that the client has seen; nil for a new client.
    private var last: Int64?
    /// The number of all requests when the last part was made; nil before the first.
    private var total: Int64?
    private var rate = RateLimit()
    private(set) var isOver = false
    private(set) var isCurrent = false

    init(
        topics: Set<CacheEvent.Topic>, filter: RequestFilter, showsClients: Bool, history: RequestHistory, last: Int64?
    ) {
        self.topics = topics
        self.filter = filter
        self.showsClients = showsClients
        self.history = history
        self.last = last
    }

    /// Its bytes depend on the client.
    var readsLog: Bool { false }
    var reset: String { "event: reset\ndata: {\"lastId\":\(last ?? 0)}\n\n" }

    mutating func part(_ signal: EventFollower.Signal, _ feed: EventFeed) -> ByteBuffer {
        let present = feed.log.lastID
        let start = last ?? present
        let (events, isComplete, _) = feed.log.events(after: start, topics: topics.subtracting([.requests]))
        let found = history.part(after: start, upTo: present)
        last = start
        if isCurrent, !isComplete {
            isOver = true
            return ByteBuffer(string: reset)
        }
        let matching = found.entries.filter { filter.matches($0.line) }
        let kept = matching.suffix(rate.claim(matching.count, at: feed.uptime()))
        // Requests that the history has discarded before they were read are omitted, too.
        let lost = max(0, (total.map { found.total - $0 } ?? 0) - Int64(found.entries.count))
        let omitted = Int64(matching.count - kept.count) + (isCurrent ? lost : 0)
        var parts = events.filter { $0.id <= present }.map { ($0.id, feed.text(of: $0)) }
        parts += kept.map { ($0.id, text(of: .request($0, showsClient: showsClients))) }
        parts.sort { $0.0 < $1.0 }
        var bytes = isComplete ? ByteBuffer() : ByteBuffer(string: reset)
        for (_, text) in parts { bytes.writeString(text) }
        if omitted > 0 { bytes.writeString(text(of: .omitted(omitted, id: present, at: feed.log.now))) }
        (last, total, isCurrent) = (present, found.total, true)
        return bytes
    }

    private func text(of event: EventDocument) -> String {
        "id: \(event.id)\nevent: \(event.topic)\ndata: \(event.jsonText)\n\n"
    }
}
