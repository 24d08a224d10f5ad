import CacheTestKit
import Glibc
import Testing

@testable import CurlUpstream

struct ReceiveBufferTests {
    /// A TCP connection to a loopback upstream.
    private final class Connection {
        let upstream: LoopbackUpstream
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)

        init() throws {
            upstream = try LoopbackUpstream()
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            address.sin_port = UInt16(upstream.port).bigEndian
            let length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, length) == 0 }
            }
            try #require(isConnected)
        }

        deinit { close(client) }

        /// The size of the client's receive buffer, in bytes.
        var bytes: Int32 {
            get {
                var (value, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
                getsockopt(client, SOL_SOCKET, SO_RCVBUF, &value, &length)
                return value
            }
            set {
                var value = newValue / 2  // the kernel doubles it
                setsockopt(client, SOL_SOCKET, SO_RCVBUF, &value, socklen_t(MemoryLayout<Int32>.size))
            }
        }
    }

    @Test("The buffer of a new connection is bounded to its initial size")
    func aNewConnectionIsBounded() throws {
        let connection = try Connection()
        var buffer = ReceiveBuffer(of: connection.client)
        buffer.bound()
        #expect(connection.bytes == 128 << 10)
    }

    @Test("A buffer that has grown keeps its size, because the upstream may already use its window")
    func aGrownBufferIsNotBounded() throws {
        let connection = try Connection()
        connection.bytes = 256 << 10
        var buffer = ReceiveBuffer(of: connection.client)
        buffer.bound()
        #expect(connection.bytes == 256 << 10)
    }
}
