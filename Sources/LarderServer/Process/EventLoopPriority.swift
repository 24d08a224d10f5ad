import Glibc
import NIOCore

/// The scheduling priority of event loops. They answer health checks and send content with little work; other threads of
/// the service parse bodies, update the catalog and build lists. Without a higher priority, a loop waits for a processor
/// as long as any of them.
enum EventLoopPriority {
    /// The nice value (sched(7)) of an event loop; other threads have 0.
    private static let niceness: Int32 = -10

    /// Raises the priority of all loops. It stays unchanged if the process has no right to raise it (CAP_SYS_NICE or
    /// RLIMIT_NICE).
    static func raise(_ group: any EventLoopGroup) {
        for loop in group.makeIterator() {
            // On Linux, 0 is the calling thread.
            loop.execute { _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness) }
        }
    }
}
