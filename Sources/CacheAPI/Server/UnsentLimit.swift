import NIOCore

/// How much of a connection's body the kernel takes beyond what is on its way.
///
/// Little, where bytes are fetched as the client takes them: what a client that stops reading never gets is not fetched
/// either. As much as it likes, where they are on disk.
final class UnsentLimit {
    private var isSmall = false
    /// TCP_NOTSENT_LOWAT, which is 25 on Linux (tcp(7)).
    private static let option = ChannelOptions.tcpOption(.init(rawValue: 25))
    private static let small = 128 << 10

    func set(isSmall: Bool, on channel: any Channel) {
        guard isSmall != self.isSmall else { return }
        self.isSmall = isSmall
        // A kernel that does not know it holds more unsent: nothing that would be worth an error.
        try? channel.syncOptions?.setOption(Self.option, value: isSmall ? Self.small : 0)
    }
}

@available(*, unavailable)
extension UnsentLimit: Sendable {}
