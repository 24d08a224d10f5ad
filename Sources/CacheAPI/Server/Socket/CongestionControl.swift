import Glibc
import NIOCore

/// Disables the pacing of BBR (tcp(7)) for connections between equal addresses, such as those of a proxy on the same
/// machine.
///
/// These connections cross no network that needs pacing, and each pause costs a timer, in a virtual machine an exit to
/// the host.
///
/// A connection that has started with pacing keeps it (`sk_pacing_status`), even if its congestion control changes
/// later. Therefore:
/// 1. The listener gets a congestion control without pacing, which accepted connections inherit.
/// 2. Connections from other addresses get the kernel's default as soon as they are accepted.
struct CongestionControl: Sendable {
    /// The value of `TCP_CONGESTION` for setsockopt(2): 16 bytes (`TCP_CA_NAME_MAX`), padded with zeros.
    private typealias Name = (UInt64, UInt64)

    /// The kernel's default if it is a BBR variant, else nil: nothing is changed.
    private let own: String?
    /// The congestion control without pacing. Every Linux kernel has it and allows it to all processes.
    private static let unpaced = "reno"

    /// - Parameter own: `net.ipv4.tcp_congestion_control`; nil if it is unknown.
    init(own: String?) { self.own = own.flatMap { $0.hasPrefix("bbr") && $0.utf8.count < 16 ? $0 : nil } }

    /// The instance for the settings of this machine.
    ///
    /// It changes nothing if `tcp_allowed_congestion_control` lacks the kernel's default, because step 2 would then
    /// fail.
    static func ofThisMachine() -> CongestionControl {
        let own = Sysctl.words("ipv4/tcp_congestion_control").first
        let allowed = Sysctl.words("ipv4/tcp_allowed_congestion_control")
        return CongestionControl(own: own.flatMap { allowed.contains($0) ? String($0) : nil })
    }

    /// Disables pacing for connections that `listener` accepts from now on. Errors are ignored.
    func spare(_ listener: any Channel) async {
        guard own != nil else { return }
        // If the kernel rejects the option, connections are paced, which only costs time.
        try? await Self.choose(Self.unpaced, on: listener)?.get()
    }

    /// Restores the kernel's default for an accepted connection from another address.
    func fit(_ connection: any Channel) {
        guard let own, let here = connection.localAddress?.ipAddress else { return }
        if here != connection.remoteAddress?.ipAddress { Self.choose(own, on: connection)?.whenFailure { _ in } }
    }

    /// Sets the congestion control of a socket; nil if the channel has no socket options.
    private static func choose(_ name: String, on channel: any Channel) -> EventLoopFuture<Void>? {
        var bytes: Name = (0, 0)
        withUnsafeMutableBytes(of: &bytes) { $0.copyBytes(from: name.utf8) }
        return (channel as? any SocketOptionProvider)?
            .unsafeSetSocketOption(level: .tcp, name: .init(rawValue: TCP_CONGESTION), value: bytes)
    }
}
