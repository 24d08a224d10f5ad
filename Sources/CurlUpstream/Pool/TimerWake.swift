import CacheCore

/// The time at which worker 0 looks at the timers that the workers share: those of the queue and of the probes. Whoever
/// changes such a timer states when it is due; the worker is woken if it would sleep longer. Thread-safe.
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
