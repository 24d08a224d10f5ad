import Glibc

/// Bounds the kernel's receive buffer of a connection while its transfer is flow-controlled: a buffer that has grown takes
/// megabytes that no reader may ever want.
///
/// The kernel doubles the buffer whenever it is drained within a round trip, which a near upstream achieves at once. Over a
/// long path it must grow, or throughput would be bounded by a window for each round trip: it is left alone there.
struct ReceiveBuffer {
    private let socket: Int32
    private var isBounded = false

    /// What SO_RCVBUF is set to (socket(7)): the kernel takes twice that, its own first size. A window smaller than the
    /// largest segment of the loopback would stall.
    private static let boundedBytes: Int32 = 64 << 10
    /// A longer round trip, in microseconds, is that of a long path.
    private static let nearMicroseconds: UInt32 = 1000
    /// SO_BUF_LOCK, since Linux 5.14: clearing it lets the kernel size the buffer again.
    private static let bufferLock: Int32 = 72
    /// The place of `tcpi_rtt` in `struct tcp_info` (tcp(7)).
    private static let roundTripOffset = 68

    init(of socket: Int32) { self.socket = socket }

    /// Keeps the buffer at its first size, if the upstream is near and the kernel can take that back.
    mutating func bound() {
        guard !isBounded, isNear, set(Self.bufferLock, to: 0), set(SO_RCVBUF, to: Self.boundedBytes) else { return }
        isBounded = true
    }

    /// Lets the kernel size the buffer. An earlier transfer on the connection may have bounded it.
    mutating func release() {
        _ = set(Self.bufferLock, to: 0)
        isBounded = false
    }

    /// As `release`, where this transfer has bounded it.
    mutating func releaseIfBounded() { if isBounded { release() } }

    private func set(_ option: Int32, to value: Int32) -> Bool {
        var value = value
        return setsockopt(socket, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    private var isNear: Bool {
        var info = [UInt8](repeating: 0, count: 104)
        var length = socklen_t(info.count)
        guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0,
            Int(length) >= Self.roundTripOffset + 4
        else { return false }
        let roundTrip = info.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: Self.roundTripOffset, as: UInt32.self) }
        return roundTrip <= Self.nearMicroseconds
    }
}
