import Glibc

/// Bounds the kernel's receive buffer of a connection while its transfer is flow-controlled. A buffer that has grown
/// holds megabytes that no reader may ever need.
///
/// The kernel doubles the buffer whenever it is drained within a round trip, which happens at once with a near
/// upstream. Over a long path the buffer must grow, or it would limit the throughput to one window per round trip;
/// there it is not bounded.
struct ReceiveBuffer {
    private let socket: Int32
    private var isBounded = false

    /// The value for SO_RCVBUF (socket(7)). The kernel doubles it, to its own initial size. A window below the maximum
    /// segment size of the loopback interface would stall.
    private static let boundedBytes: Int32 = 64 << 10
    /// Maximum round-trip time of a near upstream, in microseconds.
    private static let nearMicroseconds: UInt32 = 1000
    /// SO_BUF_LOCK (Linux 5.14 and later): clearing it re-enables the kernel's autotuning.
    private static let bufferLock: Int32 = 72
    /// Offset of `tcpi_rtt` in `struct tcp_info` (tcp(7)), in bytes.
    private static let roundTripOffset = 68

    init(of socket: Int32) { self.socket = socket }

    /// Fixes the buffer at its initial size, if the upstream is near and the kernel can undo that.
    ///
    /// A buffer that an earlier transfer on the connection has grown stays as it is. The upstream may send as much as
    /// the last window allowed it, and the kernel would drop what a smaller buffer cannot hold; the upstream would send
    /// that again only after its retransmission timeout of at least 200 ms (RFC 9293 §3.8.6: do not shrink the window).
    mutating func bound() {
        guard !isBounded, isSmall, isNear, set(Self.bufferLock, to: 0), set(SO_RCVBUF, to: Self.boundedBytes)
        else { return }
        isBounded = true
    }

    /// Re-enables autotuning. An earlier transfer on the connection may have bounded the buffer.
    mutating func release() {
        _ = set(Self.bufferLock, to: 0)
        isBounded = false
    }

    /// Like `release`, but only if this transfer has bounded the buffer.
    mutating func releaseIfBounded() { if isBounded { release() } }

    /// Whether the buffer is not larger than a bounded one; false if its size is unknown.
    private var isSmall: Bool {
        var (bytes, length) = (Int32.max, socklen_t(MemoryLayout<Int32>.size))
        guard getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, &length) == 0 else { return false }
        return bytes <= 2 * Self.boundedBytes
    }

    private func set(_ option: Int32, to value: Int32) -> Bool {
        var value = value
        return setsockopt(socket, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    /// Whether the measured round-trip time is short; false if it is unknown.
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
