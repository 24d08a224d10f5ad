import Glibc
import NIOCore

/// The socket of a connection, for bytes that go to the kernel ahead of a write to the channel.
struct AheadSocket {
    private let channel: any Channel
    private let descriptor: CInt

    /// Nil without a socket (tests). It is made once for each connection, because it needs a dynamic cast, which costs
    /// more than the call. Call it on the channel's event loop.
    init?(_ channel: any Channel) {
        let found = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { $0 }
        guard let found else { return nil }
        (self.channel, descriptor) = (channel, found)
    }

    /// Passes bytes to the kernel with the note that more follow at once (send(2), `MSG_MORE`). A response head then
    /// leaves in one segment with the first bytes of the body; a segment costs the same with a head or with 64 KiB.
    ///
    /// Returns the number of bytes that the kernel accepted; write the rest to the channel. Call it only while the
    /// channel's outbound buffer is empty, because these bytes overtake buffered ones.
    func send(_ bytes: ByteBuffer) -> Int {
        // The descriptor of a closed channel may belong to another connection.
        guard channel.isActive else { return 0 }
        let taken = bytes.withUnsafeReadableBytes {
            Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_MORE) | CInt(MSG_NOSIGNAL))
        }
        // An error is not handled here: the write that follows meets it too and reports it.
        return max(0, taken)
    }
}
