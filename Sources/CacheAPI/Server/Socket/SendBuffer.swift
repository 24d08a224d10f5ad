import CacheCore
import CacheEngine
import NIOCore

/// How much of a connection's body the kernel takes ahead of its client.
///
/// Little, where bytes are fetched as the client takes them: what a client that stops reading never gets is not fetched
/// either. As much as it likes, where they are on disk; more than that, where the body is large and there is room.
final class SendBuffer {
    private let room: SendRoom
    private var isSmall = false
    /// Where the buffer is larger than the kernel would make it.
    private var place: Places.Place?
    /// TCP_NOTSENT_LOWAT, which is 25 on Linux (tcp(7)).
    private static let unsent = ChannelOptions.tcpOption(.init(rawValue: 25))
    private static let mostUnsent = 32 << 10

    init(in room: SendRoom) { self.room = room }

    func fit(to read: ContentRead, on channel: any Channel) {
        fit(toBytesOnDisk: read.isWhollyCached ? read.plan.contentLength ?? 0 : nil, on: channel)
    }

    /// `count` bytes of a body that is on disk; nil: some of it is still to be fetched.
    ///
    /// A kernel that does not know an option does without it: nothing that would be worth an error.
    func fit(toBytesOnDisk count: Int64?, on channel: any Channel) {
        if isSmall != (count == nil) {
            isSmall.toggle()
            try? channel.syncOptions?.setOption(Self.unsent, value: isSmall ? Self.mostUnsent : 0)
        }
        guard let count, count >= SendRoom.leastBody, place == nil else { return }
        place = room.places.take()
        if place != nil { try? channel.syncOptions?.setOption(.socketOption(.so_sndbuf), value: .init(room.bytes)) }
    }
}

@available(*, unavailable)
extension SendBuffer: Sendable {}
