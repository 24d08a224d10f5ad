package import CacheCore
import DequeModule
import Synchronization

/// A change of state or a warning, as `/v1/events` reports it.
package struct CacheEvent: Sendable {
    package enum Topic: String, Sendable, CaseIterable {
        case jobs, fills, evictions, health, stats
        /// Ended requests; the log itself has none.
        case requests
    }

    /// The change of a job.
    package enum JobChange: String, Sendable {
        case state, progress
        /// The job will probably miss its deadline.
        case atRisk
    }

    /// The content of an event.
    package enum Content: Sendable {
        case job(JobSnapshot, JobChange)
        case fillStarted(FillEvent)
        case fillEnded(FillEvent, FillEvent.End)
        case evicted(EvictionRecord)
        /// A log entry of at least the level `warning`.
        case log(isError: Bool, message: String, metadata: [String: String])
        case readiness(isReady: Bool, reasons: [String])
        /// The circuit of an upstream address has opened.
        case circuitOpened(CircuitEvent)
        /// The disk has no space for fetched bytes.
        case diskFull(DiskEvent)
        /// The credentials of an origin end, and no others are there.
        case credentialsExpiring(CredentialsEvent)
        case second(LiveSecond)

        package var topic: Topic {
            switch self {
            case .job: .jobs
            case .fillStarted, .fillEnded: .fills
            case .evicted: .evictions
            case .log, .readiness, .circuitOpened, .diskFull, .credentialsExpiring: .health
            case .second: .stats
            }
        }
    }

    /// Ascending; it survives restarts, because the first one is derived from the time of the start.
    package let id: Int64
    package let at: Timestamp
    package let content: Content
}

/// A fill as events describe it.
package struct FillEvent: Sendable {
    /// The result of a fill.
    package struct End: Sendable {
        package var error: CacheError.Code?
        /// The received body bytes.
        package var bytes: Int64
        package var duration: Duration
    }

    package var number: UInt64
    package var assetID: AssetID
    package var key: String
    package var origin: String
    /// Nil if only the upstream knows the range; an upper bound of `Int64.max` is unknown.
    package var range: ByteRange?
}

/// The circuit of an upstream address that has opened.
package struct CircuitEvent: Hashable, Sendable {
    /// Nil: the address is one of absolute URLs.
    package var origin: String?
    /// The base URL; for absolute URLs scheme, host and port.
    package var address: String
    package var failuresInARow: Int
    /// The time without requests.
    package var pause: Duration
    /// The message of the last failure.
    package var error: String
}

/// The state of a disk that is full.
package struct DiskEvent: Hashable, Sendable {
    package var freeBytes: Int64
    /// The policy's `minFreeDiskBytes`.
    package var minFreeBytes: Int64
    /// The disk usage of the store.
    package var usedBytes: Int64
    /// Whether the disk has refused a write; otherwise its free space is below the minimum and nothing can be evicted.
    package var hasRefusedWrites: Bool
}

/// The credentials of an origin's account that end soon or have ended.
package struct CredentialsEvent: Hashable, Sendable {
    package var origin: String
    /// The kind of the account.
    package var kind: String
    package var expiresAt: Timestamp
    /// The message of the last refresh, if it failed.
    package var error: String?
}

/// The events of the recent past, in memory: a bounded number for each topic. Readers follow it by event identifier.
package final class EventLog: Sendable {
    /// The events kept for each topic.
    private static let limit = 1000

    private struct State {
        var events: [CacheEvent.Topic: Deque<CacheEvent>] = [:]
        /// The identifier of the last discarded event of each topic; absent: none was discarded.
        var discarded: [CacheEvent.Topic: Int64] = [:]
        var signals: [UInt64: AsyncStream<Void>.Continuation] = [:]
        var taps: [@Sendable (CacheEvent) -> Void] = []
        var lastToken: UInt64 = 0
    }

    private let wallClock: any WallClock
    /// Identifiers up to this one belong to earlier processes.
    private let firstID: Int64
    /// The last identifier.
    private let last: Atomic<Int64>
    private let state: OrderedMutex<State>

    package init(wallClock: any WallClock) {
        self.wallClock = wallClock
        // A process that makes fewer than 1,000 events per millisecond never reaches the first one of a later process.
        firstID = wallClock.now().milliseconds * 1000
        last = Atomic(firstID)
        state = OrderedMutex(.leaf, State())
    }

    /// Appends an event and wakes the followers.
    package func publish(_ content: CacheEvent.Content) {
        let (now, topic) = (wallClock.now(), content.topic)
        let (event, signals, taps) = state.withLock { state in
            let event = CacheEvent(id: takeID(), at: now, content: content)
            state.events[topic, default: []].append(event)
            if let count = state.events[topic]?.count, count > Self.limit {
                state.discarded[topic] = state.events[topic]?.removeFirst().id
            }
            return (event, Array(state.signals.values), state.taps)
        }
        for tap in taps { tap(event) }
        for signal in signals { signal.yield() }
    }

    /// Calls `body` with each later event, on the thread that publishes it, so that none is discarded before. It must not
    /// wait or publish.
    func tap(_ body: @escaping @Sendable (CacheEvent) -> Void) { state.withLock { $0.taps.append(body) } }

    /// The identifier of the last event.
    package var lastID: Int64 { last.load(ordering: .sequentiallyConsistent) }

    /// The next identifier. Ended requests have identifiers of the same sequence.
    package func takeID() -> Int64 { last.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue }

    package var now: Timestamp { wallClock.now() }

    /// Returns the kept events of `topics` after the event `id`, oldest first.
    ///
    /// - Parameter id: Nil: all kept events.
    /// - Returns: `isComplete` is false if events after `id` were discarded, or `id` is not of this process. `lastID` is
    ///   the identifier to continue with.
    package func events(
        after id: Int64?, topics: Set<CacheEvent.Topic>
    ) -> (events: [CacheEvent], isComplete: Bool, lastID: Int64) {
        state.withLock { state in
            let (last, present) = (id ?? firstID, lastID)
            let isKnown = (firstID...present).contains(last)
            let events = topics.flatMap { topic in
                (state.events[topic] ?? []).reversed().prefix { !isKnown || $0.id > last }
            }
            let isComplete = isKnown && topics.allSatisfy { state.discarded[$0] ?? .min <= last }
            return (events.sorted { $0.id < $1.id }, id == nil || isComplete, present)
        }
    }

    /// Yields at once and after new events, once for several of them. It ends when the consumer stops.
    package func changes() -> AsyncStream<Void> {
        let (stream, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = state.withLock { state in
            state.lastToken += 1
            state.signals[state.lastToken] = signal
            return state.lastToken
        }
        signal.yield()
        signal.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.signals.removeValue(forKey: token) }
        }
        return stream
    }
}
