import CLinux
import CacheCore
import Glibc
import Logging
import Synchronization

/// The machine's wall clock, for what is told to others.
struct SystemWallClock: WallClock {
    func now() -> Timestamp { Timestamp(milliseconds: Self.nanoseconds(CLOCK_REALTIME) / 1_000_000) }

    /// The time on one of the machine's clocks.
    static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// The machine's time of day for ages and records: setting the wall clock makes it jump neither way (``SteadyTime``).
final class SteadyWallClock: WallClock {
    private let read: @Sendable () -> (wall: Int64, uptime: Int64)
    private let lead: Atomic<Int64>
    private let time: Mutex<SteadyTime>

    /// `read`: what time of day it is, and how long the machine has been up, its sleep included; in nanoseconds.
    init(
        read: @escaping @Sendable () -> (wall: Int64, uptime: Int64) = {
            (SystemWallClock.nanoseconds(CLOCK_REALTIME), SystemWallClock.nanoseconds(CLOCK_BOOTTIME))
        }
    ) {
        let (wall, uptime) = read()
        let time = SteadyTime(wall: wall, uptime: uptime)
        self.read = read
        lead = Atomic(time.lead)
        self.time = Mutex(time)
    }

    /// Without a lock, unless the clock was set.
    func now() -> Timestamp {
        let (wall, uptime) = read()
        guard SteadyTime.isSet(wall: wall, uptime: uptime, lead: lead.load(ordering: .relaxed)) else {
            return Timestamp(milliseconds: wall / 1_000_000)
        }
        let now = time.withLock { time in
            let now = time.now(wall: wall, uptime: uptime)
            lead.store(time.lead, ordering: .relaxed)
            return now
        }
        return Timestamp(milliseconds: now / 1_000_000)
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
    /// Raises the number of open files to what is allowed, keeps new files to this user, has a full disk or a gone client
    /// answer with an error instead of a signal that ends the process, and has threads share heaps. Answers how many files may
    /// be open.
    static func prepare() -> OpenFileBudget {
        umask(0o077)  // the store is nobody else's
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        // As many as threads that run at a time; eight times that, which glibc takes, keep what was freed apart.
        if let cores { larder_limit_heaps(Int32(clamping: cores)) }
        return OpenFileBudget(limit: raiseOpenFiles())
    }

    static func ignoreHangUp() { signal(SIGHUP, SIG_IGN) }

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

/// Divides the limit on open files between assets, clients and the rest: the catalog, the event loops, the upstream.
struct OpenFileBudget: Hashable {
    /// With fewer the service does not start.
    static let least = 128

    let limit: Int

    /// Files of assets that stay open.
    var assetFiles: Int { min(limit / 4, 16384) }

    /// Files for all but assets and clients.
    var reserve: Int { min(256, limit / 2) }

    /// Connections of clients: the configured number, by default two fifths of the limit.
    func connections(wished: Int?) -> Int {
        // Beside those that are served there are reserved ones, half as many and at most 64, and an eighth that is being closed.
        let room = limit - assetFiles - reserve - 8
        return max(1, min(wished ?? limit * 2 / 5, max(room * 8 / 13, (room - 64) * 8 / 9)))
    }

    /// Transfers at once; below 512 open files a part of the configured number.
    func transfers(wished: Int) -> Int { min(wished, max(4, reserve / 4)) }

    /// Throws if the limit is too small to serve anything.
    func check() throws(SettingsError) {
        guard limit >= Self.least else {
            throw SettingsError(
                "open files",
                "the limit is \(limit), and at least \(Self.least) are needed: raise it with ulimit -n, or LimitNOFILE= of the systemd unit"
            )
        }
    }

    /// For the log.
    func metadata(connections: Int) -> Logger.Metadata {
        ["limit": "\(limit)", "assetFiles": "\(assetFiles)", "connections": "\(connections)"]
    }
}
