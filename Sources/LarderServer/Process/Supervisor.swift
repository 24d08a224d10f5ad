import CacheCore
import Glibc
import NIOCore
import ServiceLifecycle

/// The process that started the service and receives its state, such as systemd (`sd_notify(3)`).
struct Supervisor: Sendable {
    /// A change of the service's state.
    enum Notice: Equatable {
        /// The service accepts connections, or has reloaded its configuration.
        case ready(status: String)
        /// The service reloads its configuration; `at` is the time of CLOCK_MONOTONIC.
        case reloading(at: Duration)
        /// The service finishes its requests and ends.
        case stopping(status: String)
        /// The event loops run; sent in each interval of the watchdog.
        case alive

        /// The lines of the datagram.
        var text: String {
            switch self {
            case .ready(let status): "READY=1\nSTATUS=\(status)"
            case .reloading(let time):
                "RELOADING=1\nMONOTONIC_USEC=\(Self.microseconds(time))\nSTATUS=Reloading the configuration"
            // The notice is repeated during a shutdown, so that systemd does not end it at TimeoutStopSec.
            case .stopping(let status): "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=\(status)"
            case .alive: "WATCHDOG=1"
            }
        }

        private static func microseconds(_ time: Duration) -> Int64 {
            time.components.seconds * 1_000_000 + time.components.attoseconds / 1_000_000_000_000
        }
    }

    /// The path of a datagram socket; `@` begins an abstract name. Nil: no process receives the state.
    private let socket: String?
    /// The time within which the supervisor expects ``Notice/alive``; nil: it has no watchdog.
    let watchdog: Duration?

    /// Reads the variables `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    ///
    /// - Parameter process: The number of this process; a watchdog of another process is ignored.
    init(environment: [String: String], process: Int32) {
        socket = environment["NOTIFY_SOCKET"].flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
        let isMine = environment["WATCHDOG_PID"].map { $0 == String(process) } ?? true
        let limit = environment["WATCHDOG_USEC"].flatMap { Int64($0) }.flatMap { $0 > 0 ? $0 : nil }
        watchdog = isMine && socket != nil ? limit.map { .microseconds($0) } : nil
    }

    /// Sends the state. A supervisor that does not receive it within a second is ignored.
    func notify(_ notice: Notice) {
        guard let socket, let (address, length) = Self.address(of: socket) else { return }
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let bytes = Array(notice.text.utf8)
        _ = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
            }
        }
    }

    /// The time of CLOCK_MONOTONIC; it orders reloads for systemd.
    static func monotonicTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// The address of a socket with its length; nil if the path is too long. Zero begins an abstract name (unix(7)).
    private static func address(of socket: String) -> (sockaddr_un, socklen_t)? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var path = Array(socket.utf8)
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        let isAbstract = path[0] == UInt8(ascii: "@")
        if isAbstract { path[0] = 0 } else { path.append(0) }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        return (address, socklen_t(MemoryLayout<sa_family_t>.size + path.count))
    }
}

/// Tells the supervisor regularly that all event loops run. It is the last service that is shut down.
struct WatchdogService: Service {
    let supervisor: Supervisor
    let group: any EventLoopGroup
    let clock: any Clock<Duration>

    func run() async throws {
        guard let limit = supervisor.watchdog else {
            try? await gracefulShutdown()  // fails only when cancelled
            return
        }
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                for loop in group.makeIterator() {
                    try? await loop.submit {}.get()  // fails only when the loops end
                }
                supervisor.notify(.alive)
                try? await clock.sleep(for: limit / 2)  // fails only when cancelled
            }
        }
    }
}
