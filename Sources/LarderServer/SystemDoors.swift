import CacheCore
import Glibc

/// The machine's wall clock.
struct SystemWallClock: WallClock {
    func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}

/// The machine's random numbers.
struct SystemChance: Chance {
    func uniform() -> Double { Double.random(in: 0..<1) }

    func identifier() -> String {
        AssetID(high: UInt64.random(in: .min ... .max), low: UInt64.random(in: .min ... .max)).description
    }
}

/// What the process asks of the system before it serves.
enum ProcessLimits {
    /// Raises the number of open files to what is allowed, keeps new files to this user, and has a full disk or a gone
    /// client answer with an error instead of a signal that ends the process.
    static func prepare() {
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        umask(0o077)  // the store is nobody else's
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }
}
