import CacheCore
import CacheEngine
import DequeModule
import Synchronization

/// The last ended requests, in memory: at most ``capacity`` entries with at most ``textLimit`` bytes of texts.
///
/// The entries are distributed over rings in turn, each with a lock of its own, which is held for one insertion. So no
/// lock is shared by all requests, and the rings together hold the last ones.
final class RequestHistory: Sendable {
    /// A request with its identifier in the sequence of events.
    struct Entry: Sendable {
        let id: Int64
        let line: AccessLog.Line

        /// The size of the texts that the entry keeps in memory. Parts that entries share count for each.
        fileprivate var textBytes: Int {
            let id = if case .text(let text) = line.requestID { text.utf8.count } else { 0 }
            let trace = line.traceID?.utf8.count ?? 0
            return line.request.textBytes + (line.client?.utf8.count ?? 0) + id + trace + 64
        }
    }

    /// The entries after a position.
    struct Part: Sendable {
        /// Oldest first.
        var entries: [Entry]
        /// The number of all requests up to the last identifier.
        var total: Int64
        /// The last identifier that is no longer kept; nil: all are kept.
        var lastDiscarded: Int64?
    }

    private struct Ring {
        var entries: Deque<Entry> = []
        var textBytes = 0
        var total: Int64 = 0
        var lastDiscarded: Int64?

        /// Returns the last discarded entry, so that the caller releases it outside of the lock.
        mutating func append(_ entry: Entry) -> Entry? {
            entries.append(entry)
            textBytes += entry.textBytes
            total += 1
            var discarded: Entry?
            while entries.count > RequestHistory.capacity / RequestHistory.ringCount
                || textBytes > RequestHistory.textLimit / RequestHistory.ringCount, let first = entries.popFirst()
            {
                textBytes -= first.textBytes
                lastDiscarded = first.id
                discarded = first
            }
            return discarded
        }
    }

    private final class Shard: Sendable {
        let ring = OrderedMutex(.leaf, Ring())
    }

    static let capacity = 10_000
    static let textLimit = 16 << 20
    private static let ringCount = 16

    private let events: EventLog
    private let shards = (0..<RequestHistory.ringCount).map { _ in Shard() }
    private let turn = Atomic<UInt>(0)

    /// - Parameter events: The source of identifiers.
    init(events: EventLog) { self.events = events }

    /// Adds a request that has ended.
    func add(_ line: AccessLog.Line) {
        let shard = shards[Int(turn.wrappingAdd(1, ordering: .relaxed).newValue % UInt(Self.ringCount))]
        // The identifier is taken under the lock: see `part`.
        _ = shard.ring.withLock { $0.append(Entry(id: events.takeID(), line: line)) }
    }

    /// The number of all requests so far.
    var total: Int64 { shards.reduce(0) { $0 + $1.ring.withLock { $0.total } } }

    /// The kept entries with identifiers after `id` and up to `last`.
    ///
    /// It contains all of them, if `last` was read from the events before the call: an identifier is taken under the lock
    /// of its ring, so that its entry is in the ring when this call holds that lock.
    func part(after id: Int64 = .min, upTo last: Int64) -> Part {
        var part = Part(entries: [], total: 0)
        for shard in shards {
            let ring = shard.ring.withLock { $0 }
            part.total += ring.total
            if let discarded = ring.lastDiscarded { part.lastDiscarded = max(part.lastDiscarded ?? .min, discarded) }
            for entry in ring.entries.reversed() {
                guard entry.id <= last else {
                    part.total -= 1
                    continue
                }
                guard entry.id > id else { break }
                part.entries.append(entry)
            }
        }
        part.entries.sort { $0.id < $1.id }
        return part
    }
}
