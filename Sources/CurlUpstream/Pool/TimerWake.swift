import CacheCore

/// The time of worker 0's next look at the shared timers: those of the queue and of the probes. After each change of such
/// a timer `schedule` is told when it is due, and wakes the worker if it would sleep longer. Thread-safe.
final class TimerWake: Sendable {
    private enum Phase {
        /// The worker looks at the timers before it sleeps.
        case awake
        /// Nil: until it is woken.
        case asleep(until: Instant?)
    }

    private let phase = OrderedMutex(.leaf, Phase.awake)
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// The worker calls this after each sleep.
    func woke() { phase.withLock { $0 = .awake } }

    /// The worker calls this before it looks at the timers, with nil, and then with the time until which it sleeps. A
    /// change in between wakes it.
    func sleeps(until due: Instant?) { phase.withLock { $0 = .asleep(until: due) } }

    /// A timer is due at `due`; nil: it is not.
    func schedule(_ due: Instant?) {
        guard let due else { return }
        let isLate = phase.withLock { phase in
            guard case .asleep(let until) = phase, until.map({ due < $0 }) ?? true else { return false }
            phase = .asleep(until: due)
            return true
        }
        if isLate { wake() }
    }
}
