import Glibc

/// The scheduling priority of threads that serve readers with little work: event loops and transfer workers. Other
/// threads parse bodies, update the catalog, run items of jobs and build lists. Without a higher priority, those of
/// readers wait for a processor as long as any of them.
package enum ThreadPriority {
    /// The nice value (sched(7)) of a raised thread; others have 0.
    private static let niceness: Int32 = -10

    /// Raises the priority of the calling thread. It stays unchanged if the process has no right to raise it
    /// (CAP_SYS_NICE or RLIMIT_NICE).
    package static func raise() {
        // On Linux, 0 is the calling thread.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness)
    }
}
