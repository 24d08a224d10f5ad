import CacheCore
import Synchronization

/// The parts that all followers of events share: the pace of their writes, and the encoded events.
final class EventFeed: Sendable {
    /// An event for all its followers.
    enum Key: Hashable, Sendable {
        /// An entry of the event log, by its identifier.
        case entry(Int64)
        /// A second of the live statistics, by its start in milliseconds.
        case second(Int64)
        /// A state of a job.
        case job(id: String, version: Int64, isState: Bool)
    }

    /// The events whose text is kept.
    private static let capacity = 8192

    private let uptime: @Sendable () -> Duration
    private let pace = Mutex(WritePace(interval: .milliseconds(4)))
    /// Guards the texts. The lock is held while an event is encoded, so that each event is encoded once.
    private let texts = Mutex(BoundedTable<Key, String>(capacity: EventFeed.capacity))

    /// - Parameter uptime: The time since any start.
    init(uptime: @escaping @Sendable () -> Duration) { self.uptime = uptime }

    /// The delay before a follower may write.
    func delay() -> Duration {
        let now = uptime()
        return pace.withLock { $0.delay(at: now) }
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

/// Pure schedule that spreads writes: one per interval. Without a queue a write has no delay.
struct WritePace: Sendable {
    let interval: Duration
    /// The time of the next free slot.
    private var next = Duration.zero

    init(interval: Duration) { self.interval = interval }

    /// Assigns the next slot and returns the delay until its time.
    mutating func delay(at now: Duration) -> Duration {
        let slot = max(next, now)
        next = slot + interval
        return slot - now
    }
}
