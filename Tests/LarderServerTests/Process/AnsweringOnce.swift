import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Listener on a free loopback port: reads one request, sends one canned response and disconnects.
final class AnsweringOnce: Sendable {
    /// The socket cannot listen.
    struct Refusal: Error {}

    let port: Int
    private let descriptor: Int32
    private let asked = Mutex("")
    private let done = DispatchSemaphore(value: 0)

    init(with answer: String) throws {
        #if canImport(Glibc)
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, length) == 0 && listen(descriptor, 1) == 0
                    && getsockname(descriptor, generic, &length) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard isListening else { throw Refusal() }
        Thread.detachNewThread { self.serve(answer) }
    }

    /// Waits until the response is sent, and returns the request.
    func question() -> String {
        done.wait()
        done.signal()
        return asked.withLock { $0 }
    }

    private func serve(_ answer: String) {
        let client = accept(descriptor, nil, nil)
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(client, &buffer, buffer.count, 0)
        asked.withLock { $0 = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self) }
        let bytes = Array(answer.utf8)
        _ = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        close(client)
        close(descriptor)
        done.signal()
    }
}
