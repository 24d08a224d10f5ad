import CacheCore
import CacheEngine

/// The state of one event stream that its writing task shares with the feed: signals, progress and end.
final class EventFollower: Sendable {
    /// The reasons for a write.
    enum Signal: Int, Sendable {
        /// Time for a comment that keeps the connection open.
        case silence
        /// There are new events.
        case events
    }

    private struct State {
        /// The signal that the writing task has not consumed. A later signal changes it only to `events`.
        var pending: Signal? = .events
        var isOver = false
        /// The time of the oldest signal whose events are not written completely; nil if there is none.
        var writingSince: Duration?
        /// The time of the oldest signal after it.
        var pendingSince: Duration?
        /// The time of the last consumed signal.
        var lastSignal: Duration
        /// The time when the follower became late.
        var lateSince: Duration?

        /// The writing task consumes the pending signal.
        mutating func consume(at now: Duration) {
            writingSince = pendingSince ?? now
            (pending, pendingSince, lastSignal) = (nil, nil, now)
        }
    }

    /// The interval of comments. They keep proxies from closing a connection without events.
    private static let silence = Duration.seconds(15)
    /// The age of the oldest event not taken at which a follower is late. After twice this time its connection is
    /// closed.
    private static let patience = Duration.seconds(10)

    let topics: Set<CacheEvent.Topic>
    /// Whether the stream consists of the events of the log.
    let readsLog: Bool
    /// Nil: the stream needs none (tests).
    private let permission: StreamPermission?
    /// Closes the connection.
    private let disconnect: @Sendable () -> Void
    private let uptime: @Sendable () -> Duration
    private let state: AsyncCondition<State>

    init(
        topics: Set<CacheEvent.Topic>, readsLog: Bool, permission: StreamPermission?,
        uptime: @escaping @Sendable () -> Duration, disconnect: @escaping @Sendable () -> Void
    ) {
        self.topics = topics
        self.readsLog = readsLog
        self.permission = permission
        self.uptime = uptime
        self.disconnect = disconnect
        let now = uptime()
        state = AsyncCondition(State(pendingSince: now, lastSignal: now))
    }

    // MARK: The writing task

    /// Waits for the next signal; the first one comes at once. Nil after ``end()``, or if the task is cancelled.
    func next() async -> Signal? {
        await withTaskCancellationHandler {
            await state.value { [uptime] state -> Signal?? in
                if state.isOver { return .some(nil) }
                guard let signal = state.pending else { return nil }
                state.consume(at: uptime())
                return signal
            }
        } onCancel: {
            end()
        }
    }

    /// The events of the last signal are written.
    func wroteAll() { state.change { $0.writingSince = nil } }

    /// A part of a backlog is written that the client has requested itself. It does not count as late.
    func wroteBacklog() {
        let now = uptime()
        state.change { $0.writingSince = now }
    }

    /// Whether the stream must end with `reset`.
    var isLate: Bool { state.state.lateSince != nil }

    // MARK: The feed

    /// Reports a signal. Several signals before the next write are one.
    func wake(_ signal: Signal, at now: Duration) {
        state.change { state in
            guard !state.isOver else { return }
            if state.pending != .events { state.pending = signal }
            state.pendingSince = state.pendingSince ?? now
        }
    }

    /// Ends the stream. A running write is not interrupted.
    func end() { state.change { $0.isOver = true } }

    /// Ends the stream without its permission, marks a late follower, and requests a comment after a time without
    /// signals. Closes the connection of a follower that is late and takes nothing.
    func check(at now: Duration) {
        if !(permission?.isValid ?? true) { end() }
        let (isStuck, isSilent) = state.change { state -> (Bool, Bool) in
            let oldest = state.writingSince ?? state.pendingSince
            if let oldest, now - oldest > Self.patience { state.lateSince = state.lateSince ?? now }
            let isStuck = state.lateSince.map { now - $0 > Self.patience } ?? false
            return (isStuck, state.pending == nil && now - state.lastSignal >= Self.silence)
        }
        if isStuck { return disconnect() }
        if isSilent { wake(.silence, at: now) }
    }
}
