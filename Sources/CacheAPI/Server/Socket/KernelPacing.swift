import Glibc
import NIOCore

/// Spares connections whose ends have the same address, as those of proxies beside the service, the pacing of BBR (tcp(7)):
/// there is no network that needs it, and each pause is a timer, in a virtual machine a trip to its host.
///
/// Pacing stays with a connection that began with it (`sk_pacing_status`), whatever it is given later. So the listener
/// has a congestion control that does not pace, which connections inherit, and those from elsewhere are given the
/// kernel's own as they are accepted.
struct KernelPacing: Sendable {
    /// As setsockopt(2) takes names; shorter ones end with zeros (TCP_CA_NAME_MAX).
    private typealias Name = (UInt64, UInt64)

    /// That of the kernel's settings; nil where it does not pace.
    private let own: String?
    /// Every Linux kernel has it and lets every process choose it.
    private static let unpaced = "reno"

    /// - Parameter own: `net.ipv4.tcp_congestion_control`; nil where the kernel does not tell it.
    init(own: String?) { self.own = own.flatMap { $0.hasPrefix("bbr") && $0.utf8.count < 16 ? $0 : nil } }

    /// Nothing is changed where connections could not be given the kernel's own again: an administrator may leave it out of
    /// what processes may choose.
    static func ofThisMachine() -> KernelPacing {
        let own = KernelSetting.words("ipv4/tcp_congestion_control").first
        let allowed = KernelSetting.words("ipv4/tcp_allowed_congestion_control")
        return KernelPacing(own: own.flatMap { allowed.contains($0) ? String($0) : nil })
    }

    /// The connections that `listener` accepts from now on begin without pacing; those before stay as they are.
    func spare(_ listener: any Channel) async {
        guard own != nil else { return }
        // A kernel that refuses paces on: nothing that would be worth an error.
        try? await Self.choose(Self.unpaced, on: listener)?.get()
    }

    /// Called for each connection once it is accepted.
    func fit(_ connection: any Channel) {
        guard let own, let here = connection.localAddress?.ipAddress else { return }
        if here != connection.remoteAddress?.ipAddress { Self.choose(own, on: connection)?.whenFailure { _ in } }
    }

    private static func choose(_ name: String, on channel: any Channel) -> EventLoopFuture<Void>? {
        var bytes: Name = (0, 0)
        withUnsafeMutableBytes(of: &bytes) { $0.copyBytes(from: name.utf8) }
        return (channel as? any SocketOptionProvider)?
            .unsafeSetSocketOption(level: .tcp, name: .init(rawValue: TCP_CONGESTION), value: bytes)
    }
}
