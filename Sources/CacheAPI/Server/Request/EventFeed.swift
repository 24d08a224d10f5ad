import CacheCore
import CacheEngine
import NIOCore
import ServiceLifecycle

/// The parts that all followers of events share: the signal for new events, the checks of the streams, and the encoded
/// events.
///
/// The event log signals the feed only. The feed wakes its followers in turns, so that several events share a write, and
/// all followers at the same position share its bytes.
final class EventFeed: Service {
    /// An event for all its followers.
    enum Key: Hashable, Sendable {
        /// An entry of the event log, by its identifier.
        case entry(Int64)
        /// A second of the live statistics, by its start in milliseconds.
        case second(Int64)
        /// A state of a job.
        case job(id: String, version: Int64, isState: Bool)
    }

    /// The position of a follower in the log, with the last event of the turn.
    private struct Position: Hashable {
        let topics: Set<CacheEvent.Topic>
        let after: Int64
        let upTo: Int64
    }

    private struct Followers {
        var open: [ObjectIdentifier: EventFollower] = [:]
        /// Whether the service shuts down: all streams end.
        var isOver = false
        /// The last event of the last turn.
        var present: Int64
        /// The number of requests at the last check.
        var requestTotal: Int64 = 0
    }

    /// The events whose text is kept, and the parts of streams.
    private static let (textCapacity, partCapacity) = (4096, 64)
    /// The minimum interval of turns, and the time for each follower in it.
    private static let (interval, intervalPerFollower) = (Duration.milliseconds(100), Duration.milliseconds(1))
    /// The followers that are woken at the same time. The pauses between them leave the event loops to other requests.
    private static let wokenTogether = 25
    /// The interval of the checks of all streams.
    private static let checkInterval = Duration.milliseconds(250)
    /// The length at which a part ends.
    private static let partBytes = 64 << 10

    let log: EventLog
    /// The requests of the topic `requests`.
    private let requests: RequestHistory
    /// Reports that the service shuts down, to other responses that can last.
    let shutdown = AsyncEvent()
    private let clock: any Clock<Duration>
    /// The time since the creation of the feed.
    let uptime: @Sendable () -> Duration
    private let followers: OrderedMutex<Followers>
    /// Guards the texts. The lock is held while an event is encoded, so that each event is encoded once.
    private let texts = OrderedMutex(.leaf, BoundedTable<Key, String>(capacity: EventFeed.textCapacity))
    private let parts = OrderedMutex(.leaf, BoundedTable<Position, EventPart>(capacity: EventFeed.partCapacity))

    /// - Parameter requests: Nil: there is no topic `requests` (tests).
    init(log: EventLog, clock: any Clock<Duration>, requests: RequestHistory? = nil) {
        self.log = log
        self.requests = requests ?? RequestHistory(events: log)
        self.clock = clock
        uptime = clock.stopwatch()
        followers = OrderedMutex(.leaf, Followers(present: log.lastID))
    }

    /// Wakes and checks the followers until the graceful shutdown, and ends their streams then.
    func run() async {
        await cancelWhenGracefulShutdown {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    // Events that arrive during a turn are one change.
                    for await _ in self.log.changes() {
                        guard (try? await self.wake(self.turn())) != nil else { return }  // cancelled
                    }
                }
                group.addTask {
                    // Until cancelled.
                    while (try? await self.clock.sleep(for: Self.checkInterval)) != nil { self.check() }
                }
            }
        }
        let open = followers.withLock { followers in
            followers.isOver = true
            return followers.open.values
        }
        for follower in open { follower.end() }
        shutdown.open()
    }

    /// Wakes followers over the interval of a turn; it grows with their number.
    private func wake(_ followers: [EventFollower]) async throws {
        let interval = max(Self.interval, Self.intervalPerFollower * followers.count)
        let steps = max(1, (followers.count + Self.wokenTogether - 1) / Self.wokenTogether)
        for step in 0..<steps {
            for follower in followers.dropFirst(step * Self.wokenTogether).prefix(Self.wokenTogether) {
                follower.wake(.events, at: uptime())
            }
            try await clock.sleep(for: interval / steps)
        }
    }

    func add(_ follower: EventFollower) {
        let isOver = followers.withLock { followers in
            followers.open[ObjectIdentifier(follower)] = follower
            return followers.isOver
        }
        if isOver { follower.end() }
    }

    func remove(_ follower: EventFollower) {
        followers.withLock { _ = $0.open.removeValue(forKey: ObjectIdentifier(follower)) }
    }

    /// Begins a turn: returns the followers of the topics with events since the last turn.
    ///
    /// The events are encoded here, not on the event loops of the followers.
    func turn() -> [EventFollower] {
        let (open, present) = followers.withLock { ($0.open.values.map(\.self), $0.present) }
        let followed = open.reduce(into: Set<CacheEvent.Topic>()) { $0.formUnion($1.topics) }
        let (events, _, last) = log.events(after: present, topics: followed)
        let readers = open.filter(\.readsLog).reduce(into: Set<CacheEvent.Topic>()) { $0.formUnion($1.topics) }
        for event in events where readers.contains(event.content.topic) { _ = text(of: event) }
        followers.withLock { $0.present = last }
        let changed = Set(events.map(\.content.topic))
        return open.filter { !$0.topics.isDisjoint(with: changed) }
    }

    /// Checks the permission and the progress of each follower, and wakes those of ended requests: requests do not signal
    /// the feed.
    private func check() {
        let total = requests.total
        let (open, hasRequests) = followers.withLock { followers in
            defer { followers.requestTotal = total }
            return (followers.open.values.map(\.self), followers.requestTotal != total)
        }
        for follower in open {
            follower.check(at: uptime())
            if hasRequests, follower.topics.contains(.requests) { follower.wake(.events, at: uptime()) }
        }
    }

    /// The next part of the events after `start`. Followers at the same position share its bytes.
    ///
    /// - Parameter isCurrent: The part ends with the last turn. Otherwise it ends with the present: a new follower is
    ///   perhaps not woken by a turn that runs at the same time.
    func part(of topics: Set<CacheEvent.Topic>, after start: Int64, isCurrent: Bool) -> EventPart {
        let present = isCurrent ? followers.withLock { $0.present } : log.lastID
        let position = Position(topics: topics, after: start, upTo: max(start, present))
        if let part = parts.withLock({ $0[position] }) { return part }
        let (found, isComplete, _) = log.events(after: start, topics: topics)
        var part = EventPart(last: position.upTo, isComplete: isComplete)
        for event in found where event.id <= position.upTo {
            let text = text(of: event)
            part.unsentBytes += text.utf8.count
            if part.bytes.readableBytes >= Self.partBytes { part.hasMore = true } else { part.bytes.writeString(text) }
            if !part.hasMore { part.lastSent = event.id }
        }
        if part.hasMore { part.last = part.lastSent }
        parts.withLock { $0[position] = part }
        return part
    }

    func text(of event: CacheEvent) -> String {
        text(of: .entry(event.id)) {
            "id: \(event.id)\nevent: \(event.content.topic.rawValue)\ndata: \(EventDocument(event).jsonText)\n\n"
        }
    }

    /// The text of an event; `make` encodes it for its first follower.
    func text(of key: Key, _ make: () -> String) -> String {
        texts.withLock { texts in
            if let text = texts[key] { return text }
            let text = make()
            texts[key] = text
            return text
        }
    }
}

/// Consecutive events of the log as bytes.
struct EventPart: Sendable {
    var bytes = ByteBuffer()
    /// The position of a follower that has received the part.
    var last: Int64
    /// Whether further events follow up to the last turn.
    var hasMore = false
    /// Whether no event was discarded before it was read.
    var isComplete: Bool
    /// The bytes of all events from this part on, up to the last turn.
    var unsentBytes = 0
    /// The last event in `bytes`.
    fileprivate var lastSent: Int64 = 0

    fileprivate init(last: Int64, isComplete: Bool) {
        self.last = last
        self.isComplete = isComplete
    }
}
