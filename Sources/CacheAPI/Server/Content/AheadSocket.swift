import CacheCore
import CacheEngine
import Glibc
import NIOCore

/// The socket of a connection, for bytes that go to the kernel ahead of a write to the channel.
///
/// It tells how many bytes the kernel has accepted, also if the connection ends before the others, and needs neither a
/// promise nor a place in the channel's outbound buffer. Use it only while that buffer is empty, because these bytes
/// overtake buffered ones, and not with TLS.
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

    /// Passes bytes to the kernel (send(2)). Returns the number of bytes that it accepted; write the rest to the channel.
    ///
    /// - Parameter hasMore: More bytes follow at once (`MSG_MORE`). A response head then leaves in one segment with the
    ///   first bytes of the body; a segment costs the same with a head or with 64 KiB.
    func send(_ bytes: ByteBuffer, hasMore: Bool) -> Int {
        accepted { descriptor in
            bytes.withUnsafeReadableBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL) | (hasMore ? CInt(MSG_MORE) : 0))
            }
        }
    }

    /// Passes bytes of a file to the kernel (sendfile(2)). Returns the number of bytes that it accepted; write the rest to
    /// the channel.
    func send(_ piece: FilePiece) -> Int64 {
        Int64(
            accepted { descriptor in
                var offset = off_t(piece.range.lowerBound)
                return sendfile(descriptor, piece.descriptor, &offset, Int(piece.range.length))
            })
    }

    private func accepted(_ call: (CInt) -> Int) -> Int {
        // The descriptor of a closed channel may belong to another connection.
        guard channel.isActive else { return 0 }
        // An error is not handled here: the write that follows meets it too and reports it.
        return max(0, call(descriptor))
    }
}
