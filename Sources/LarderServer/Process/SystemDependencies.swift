import CLinux
import CacheCore
import Glibc
import Logging
import Synchronization

/// The system's wall clock, for timestamps in responses and logs.
struct SystemWallClock: WallClock {
    func now() -> Timestamp { Timestamp(milliseconds: Self.nanoseconds(CLOCK_REALTIME) / 1_000_000) }

    /// The time of a clock in nanoseconds.
    static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// The time of day for ages and records. It does not jump when the system clock is set (``SlewedTime``). Thread-safe.
final class SlewedClock: WallClock {
    /// Reads the system clocks; nanoseconds.
    private let read: @Sendable () -> (wall: Int64, uptime: Int64)
    /// A copy of `SlewedTime.lead`, so that the common case needs no lock.
    private let lead: Atomic<Int64>
    /// Guards the slew state; used only after the clock was set.
    private let time: OrderedMutex<SlewedTime>

    /// `read` returns the time of day and the uptime including suspend, in nanoseconds.
    init(
        read: @escaping @Sendable () -> (wall: Int64, uptime: Int64) = {
            (SystemWallClock.nanoseconds(CLOCK_REALTIME), SystemWallClock.nanoseconds(CLOCK_BOOTTIME))
        }
    ) {
        let (wall, uptime) = read()
        let time = SlewedTime(wall: wall, uptime: uptime)
        self.read = read
        lead = Atomic(time.lead)
        self.time = OrderedMutex(.system, time)
    }

    /// Takes no lock unless the clock was set.
    func now() -> Timestamp {
        let (wall, uptime) = read()
        guard SlewedTime.isSet(wall: wall, uptime: uptime, lead: lead.load(ordering: .relaxed)) else {
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

/// The system's random number generator.
struct SystemRandomSource: RandomSource {
    /// Random numbers that are not used yet. One system call per number would cost more than the rest of a request.
    private final class Reserve: Sendable {
        private let numbers = OrderedMutex<[UInt64]>(.system, [])

        func take() -> UInt64 {
            numbers.withLock { numbers in
                if numbers.isEmpty {
                    numbers = [UInt64](unsafeUninitializedCapacity: 32) { space, count in
                        guard let start = space.baseAddress else { return }
                        arc4random_buf(start, space.count * MemoryLayout<UInt64>.size)
                        count = space.count
                    }
                }
                return numbers.removeLast()
            }
        }
    }

    private let reserve = Reserve()

    /// Uniformly distributed in 0..<1.
    func uniform() -> Double { Double.random(in: 0..<1) }

    /// 128 random bits in hexadecimal digits.
    func identifier() -> String {
        AssetID(high: reserve.take(), low: reserve.take()).description
    }
}

/// Process-wide resource limits and signal settings.
enum ProcessLimits {
    /// Prepares the process; call it once, before the service starts. Returns the budget of open files.
    /// - The limit on open files is raised to the hard limit.
    /// - New files are accessible to this user only.
    /// - SIGPIPE and SIGXFSZ are ignored, so that a closed connection or a full disk is an error of the system call.
    /// - glibc's heaps are limited to one per core.
    static func prepare() -> OpenFileBudget {
        umask(0o077)  // files of the store are private to this user
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        // Threads beyond the number of cores share heaps. glibc's default, eight per core, keeps freed memory in too
        // many heaps.
        if let cores { larder_limit_heaps(Int32(clamping: cores)) }
        return OpenFileBudget(limit: raiseOpenFiles())
    }

    /// Ignores SIGHUP until the service handles it.
    static func ignoreHangUp() { signal(SIGHUP, SIG_IGN) }

    /// The number of cores that this process may use; nil if unknown.
    static var cores: Int? {
        let count = larder_usable_cores()
        return count > 0 ? Int(count) : nil
    }

    /// Raises the soft limit of RLIMIT_NOFILE to the hard limit; returns the effective limit.
    private static func raiseOpenFiles() -> Int {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return 1024 }  // the common default
        let before = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        if before < limit.rlim_max, setrlimit(resource, &limit) != 0 { limit.rlim_cur = before }
        return Int(clamping: limit.rlim_cur)
    }
}

/// Division of the limit on open files between assets, clients and the rest (catalog, event loops, upstreams).
struct OpenFileBudget: Hashable {
    /// Minimum limit for a start.
    static let least = 128

    /// The limit on open files of this process.
    let limit: Int

    /// File descriptors that the store keeps open for assets.
    var assetFiles: Int { min(limit / 4, 16384) }

    /// File descriptors for everything except assets and clients.
    var reserve: Int { min(max(256, limit / 8), limit / 2) }

    /// Maximum client connections: the configured number, by default two fifths of the limit, reduced to the available
    /// descriptors. Each socket of the listener accepts that many.
    func connections(wished: Int?, sockets: Int = 1) -> Int {
        // In addition to served connections, descriptors are needed for reserved ones (half as many, at most 64) and
        // for closing ones (one eighth).
        let room = (limit - assetFiles - reserve - 8) / sockets
        return max(1, min(wished ?? limit * 2 / 5, max(room * 8 / 13, (room - 64) * 8 / 9)))
    }

    /// Maximum concurrent transfers: the configured number, but at most a quarter of `reserve`, because a transfer needs
    /// a socket and sometimes a file, and paused transfers keep theirs.
    func transfers(wished: Int) -> Int { min(wished, max(4, reserve / 4)) }

    /// Throws if the limit is below the minimum.
    func check() throws(SettingsError) {
        guard limit >= Self.least else {
            throw SettingsError(
                "open files",
                "the limit is \(limit), and at least \(Self.least) are needed: raise it with ulimit -n, or LimitNOFILE= of the systemd unit"
            )
        }
    }

    /// Metadata of the log message `open files`.
    func metadata(connections: Int) -> Logger.Metadata {
        ["limit": "\(limit)", "assetFiles": "\(assetFiles)", "connections": "\(connections)"]
    }
}
