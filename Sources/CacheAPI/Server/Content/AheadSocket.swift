import Glibc
import NIOCore

extension ChannelHandlerContext {
    /// Passes bytes to the kernel with the note that more follow at once (send(2), `MSG_MORE`). A response head then
    /// leaves in one segment with the first bytes of the body; a segment costs the same with a head or with 64 KiB.
    ///
    /// Returns the number of bytes that the kernel accepted; write the rest to the channel. Call it only while the
    /// channel's outbound buffer is empty, because these bytes overtake buffered ones.
    func sendAhead(_ bytes: ByteBuffer) -> Int {
        let taken = try? pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { socket in
            bytes.withUnsafeReadableBytes {
                send(socket, $0.baseAddress, $0.count, CInt(MSG_MORE) | CInt(MSG_NOSIGNAL))
            }
        }
        // An error is not handled here: the write that follows meets it too and reports it.
        return max(0, taken ?? 0)
    }
}
