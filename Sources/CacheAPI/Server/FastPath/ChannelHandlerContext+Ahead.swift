import Glibc
import NIOCore

extension ChannelHandlerContext {
    /// Gives the kernel bytes that more follow at once, so that they leave with those in one segment (send(2), MSG_MORE): a
    /// segment costs the same whether it carries a head or 64 KiB. Answers how many it took; the rest is to be written.
    ///
    /// Only where nothing waits on the channel to be written: these bytes pass whatever does.
    func sendAhead(_ bytes: ByteBuffer) -> Int {
        let taken = try? pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { socket in
            bytes.withUnsafeReadableBytes {
                send(socket, $0.baseAddress, $0.count, CInt(MSG_MORE) | CInt(MSG_NOSIGNAL))
            }
        }
        // Whatever stands in the way stands in that of the write, which says so.
        return max(0, taken ?? 0)
    }
}
