import Glibc
import Testing

@testable import CurlUpstream

struct ReceiveBufferTests {
    /// A TCP connection over loopback.
    private final class Connection {
        let client, server: Int32

        init() throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(listener) }
            client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let client = client
            let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, length) == 0 && listen(listener, 1) == 0
                        && getsockname(listener, $0, &length) == 0 && connect(client, $0, length) == 0
                }
            }
            server = accept(listener, nil, nil)
            try #require(isConnected && server >= 0)
        }

        deinit {
            close(client)
            close(server)
        }

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
