import Foundation
import Glibc

/// The socket calls of the loopback upstream.
enum LoopbackSocket {
    struct Failure: Error { let call: String, code: Int32 }

    #if canImport(Glibc)
        private static let stream = Int32(SOCK_STREAM.rawValue)
    #else
        private static let stream = SOCK_STREAM
    #endif

    /// Returns a socket that listens on an ephemeral port of 127.0.0.1, and the port.
    static func listening() throws -> (Int32, Int) {
        let listener = socket(AF_INET, stream, 0)
        guard listener >= 0 else { throw Failure(call: "socket", code: errno) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let outcome = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                guard bind(listener, generic, size) == 0, listen(listener, 512) == 0 else { return false }
                return getsockname(listener, generic, &size) == 0
            }
        }
        guard outcome else {
            let code = errno
            close(listener)
            throw Failure(call: "bind", code: code)
        }
        return (listener, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// Returns the next connection; nil after a shutdown of the listener.
    static func accepted(by listener: Int32) -> Int32? {
        while true {
            let connection = accept(listener, nil, nil)
            if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
            guard connection >= 0 else { return nil }
            var yes: Int32 = 1
            setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
            return connection
        }
    }

    /// Sends all bytes. Returns false if the peer has closed the connection.
    static func send(_ bytes: [UInt8], to socket: Int32) -> Bool {
        bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count, let base = buffer.baseAddress {
                let count = Glibc.send(socket, base + sent, buffer.count - sent, Int32(MSG_NOSIGNAL))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }
    }

    /// Returns received bytes; nil at the end of the connection.
    static func receive(from socket: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            return count > 0 ? Array(buffer[..<count]) : nil
        }
    }

    /// Turns the next close into a reset.
    static func setReset(_ socket: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
