import CacheCore
import CacheTestKit
import Foundation
import Glibc
import Testing

@testable import CacheAPI

/// The file of a Unix socket, and the service behind it.
@Suite(.timeLimit(.minutes(5))) struct UnixSocketTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private var path: String { directory.path("larder.sock") }

    /// A socket that listens at the path.
    private func listen() throws -> Int32 {
        let made = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(made, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(code == 0 && Glibc.listen(made, 1) == 0)
        return made
    }

    @Test("The file of an ended process is removed")
    func staleFilesAreRemoved() throws {
        close(try listen())
        #expect(FileManager.default.fileExists(atPath: path))
        let file = UnixSocketFile(path: path)
        try file.claim()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("The file of a listener stays")
    func filesOfListenersStay() throws {
        let other = try listen()
        defer { close(other) }
        let error = #expect(throws: CacheError.self) { try UnixSocketFile(path: path).claim() }
        #expect(error?.code == .invalidField("listen.address"))
        let connection = try #require(UnixSocketFile.connect(to: path))
        close(connection)
    }

    @Test("A file that is no socket stays")
    func otherFilesStay() throws {
        try Data().write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: CacheError.self) { try UnixSocketFile(path: path).claim() }
        #expect(error?.code == .invalidField("listen.address"))
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test("Two processes do not create sockets in one directory at the same time")
    func theDirectoryIsLocked() throws {
        let first = UnixSocketFile(path: path)
        try first.claim()
        #expect(throws: CacheError.self) { try UnixSocketFile(path: directory.path("other.sock")).claim() }
        let made = try listen()
        defer { close(made) }
        try first.opened(mode: 0o600)
        try UnixSocketFile(path: directory.path("other.sock")).claim()
    }

    @Test("Only the own file is removed at the end")
    func onlyTheOwnFileIsRemoved() throws {
        let first = UnixSocketFile(path: path)
        try first.claim()
        close(try listen())
        try first.opened(mode: 0o600)
        let second = UnixSocketFile(path: path)
        try second.claim()
        let made = try listen()
        defer { close(made) }
        try second.opened(mode: 0o600)
        first.remove()
        #expect(FileManager.default.fileExists(atPath: path))
        second.remove()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("The service answers requests over a Unix socket and removes its file")
    func theServiceListens() async throws {
        let path = path
        try await TestService.run(settings: { $0.listener = .unix(path: path, mode: 0o620) }) { service in
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o620)
            service.upstream.serve("/a", LoopbackAsset(size: 1000))
            let response = try Self.ask(
                "GET /o/media/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", at: path)
            #expect(response.hasPrefix("HTTP/1.1 200 OK\r\n"))
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// Sends the request and returns the response up to the end of the connection. Blocks its thread.
    private static func ask(_ request: String, at path: String) throws -> String {
        let socket = try #require(UnixSocketFile.connect(to: path))
        defer { close(socket) }
        let bytes = Array(request.utf8)
        try #require(send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
        var (text, buffer): ([UInt8], [UInt8]) = ([], Array(repeating: 0, count: 4096))
        while case let count = recv(socket, &buffer, buffer.count, 0), count > 0 { text += buffer[..<count] }
        return String(decoding: text, as: UTF8.self)
    }
}
