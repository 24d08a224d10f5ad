import CacheCore
import CacheEngine
import NIOCore

/// Adjusts the send buffer of one connection to each body.
///
/// - A body that is still being fetched gets a small limit on unsent bytes, so that little is fetched for a stalled
///   client.
/// - A cached body gets the kernel's default.
/// - A cached body of ``SendBufferBudget/leastBody`` and more gets a larger buffer if the budget has a permit. The
///   connection keeps buffer and permit until it is closed.
final class SendBufferTuning {
    private let budget: SendBufferBudget
    /// Whether the limit on unsent bytes is set.
    private var isSmall = false
    /// The permit for a large buffer; nil if the buffer has the kernel's size.
    private var place: AdmissionLimiter.Permit?
    /// `TCP_NOTSENT_LOWAT`; it is 25 on Linux (tcp(7)).
    private static let unsent = ChannelOptions.tcpOption(.init(rawValue: 25))
    /// The limit on unsent bytes for a body that is being fetched.
    private static let mostUnsent = 32 << 10

    init(in budget: SendBufferBudget) { self.budget = budget }

    /// Adjusts the buffer to the body of `read`.
    func fit(to read: ContentRead, on channel: any Channel) {
        fit(toBytesOnDisk: read.isWhollyCached ? read.plan.contentLength ?? 0 : nil, on: channel)
    }

    /// Adjusts the buffer to a cached body of `count` bytes. Nil means that part of the body is still to be fetched.
    ///
    /// Errors are ignored: without an option the connection works with the kernel's default.
    func fit(toBytesOnDisk count: Int64?, on channel: any Channel) {
        if isSmall != (count == nil) {
            isSmall.toggle()
            try? channel.syncOptions?.setOption(Self.unsent, value: isSmall ? Self.mostUnsent : 0)
        }
        guard let count, count >= SendBufferBudget.leastBody, place == nil else { return }
        place = budget.places.take()
        if place != nil { try? channel.syncOptions?.setOption(.socketOption(.so_sndbuf), value: .init(budget.bytes)) }
    }
}

@available(*, unavailable)
extension SendBufferTuning: Sendable {}
