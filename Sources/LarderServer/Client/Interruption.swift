import CacheCore
import Glibc
import Synchronization

/// Interruption of a command by Ctrl-C or SIGTERM.
enum Interruption {
    private static let flag = Atomic(false)

    /// Whether a signal arrived after ``catchSignals()``.
    static var isRaised: Bool { flag.load(ordering: .relaxed) }

    /// From now on, the first signal sets a flag instead of ending the program. A second one ends it, in case that the
    /// command does not check the flag.
    static func catchSignals() {
        flag.store(false, ordering: .relaxed)  // initialises the flag outside the signal handler
        for number in [SIGINT, SIGTERM] {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in Interruption.flag.store(true, ordering: .relaxed) }
            action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
            sigaction(number, &action, nil)
        }
    }

    /// Blocks for the duration. Throws if the user interrupts the command meanwhile.
    static func pause(for duration: Duration) throws(ClientError) {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            guard !isRaised else { throw .interrupted }
            poll(nil, 0, 50)
        }
    }
}
