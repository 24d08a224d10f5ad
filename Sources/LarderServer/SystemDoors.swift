import CLinux
import CacheCore
import Glibc
import Logging

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
    /// client answer with an error instead of a signal that ends the process. Answers how many files may be open.
    static func prepare() -> OpenFileBudget {
        umask(0o077)  // the store is nobody else's
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        return OpenFileBudget(limit: raiseOpenFiles())
    }

    /// The processor cores that this process may run on; nil where the system does not tell.
    static var cores: Int? {
        let count = larder_usable_cores()
        return count > 0 ? Int(count) : nil
    }

    private static func raiseOpenFiles() -> Int {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return 1024 }  // the least that systems start with
        let before = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        if before < limit.rlim_max, setrlimit(resource, &limit) != 0 { limit.rlim_cur = before }
        return Int(clamping: limit.rlim_cur)
    }
}

/// How the open files that the process may have are shared out; what is left over is for the upstream and the catalog.
struct OpenFileBudget: Hashable {
    let limit: Int

    /// Files of assets that stay open.
    var assetFiles: Int { min(max(limit / 4, 64), 16384) }

    /// Connections of clients; more wait until one ends.
    var connections: Int { max(limit * 2 / 5, 64) }

    /// For the log.
    var metadata: Logger.Metadata {
        ["limit": "\(limit)", "assetFiles": "\(assetFiles)", "connections": "\(connections)"]
    }
}
