import CacheAPI
import CacheCore
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// A response parsed from the bytes of a connection.
struct RawResponse: Sendable {
    var status: Int
    var headers: HeaderList
    var body: [UInt8]

    var text: String { String(decoding: body, as: UTF8.self) }
    func json() throws -> JSON { try JSONParser.parse(body) }
}

/// HTTP client on one TCP connection without a client library: tests see every byte.
final class RawConnection: Sendable {
    /// Channel handler that passes received bytes and the end of the connection on to the client.
    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let bytes: AsyncStream<ByteBuffer>.Continuation

        private let ending: Ending

        init(_ bytes: AsyncStream<ByteBuffer>.Continuation, _ ending: Ending) {
            self.bytes = bytes
            self.ending = ending
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { bytes.yield(unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { bytes.finish() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            ending.isBroken.store(true, ordering: .relaxed)
            context.close(promise: nil)
        }
    }

    /// Records whether the connection ended in a reset.
    private final class Ending: Sendable {
        let isBroken = Atomic(false)
    }

    private let channel: any Channel
    private let inbox: Inbox
    private let ending = Ending()

    /// Buffer of received bytes that are not consumed yet; used by one test task.
    private actor Inbox {
        private var iterator: AsyncStream<ByteBuffer>.Iterator
        private var bytes: [UInt8] = []

        init(_ stream: AsyncStream<ByteBuffer>) { iterator = stream.makeAsyncIterator() }

        /// Waits for more bytes; false at the end of the connection.
        func more() async -> Bool {
            var local = iterator
            let next = await local.next(isolation: #isolation)
            iterator = local
            guard let next else { return false }
            bytes += next.readableBytesView
            return true
        }

        func take(_ count: Int) async -> [UInt8]? {
            while bytes.count < count { guard await more() else { return nil } }
            defer { bytes.removeFirst(count) }
            return Array(bytes.prefix(count))
        }

        func take(through mark: [UInt8]) async -> [UInt8]? {
            while true {
                if let end = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }) {
                    return await take(end + mark.count)
                }
                guard await more() else { return nil }
            }
        }

        func rest() async -> [UInt8] {
            while await more() {}
            defer { bytes = [] }
            return bytes
        }
    }

    /// - Parameter tls: Nil for plain TCP.
    init(port: Int, tls: NIOSSLContext? = nil) async throws {
        let (stream, continuation) = AsyncStream<ByteBuffer>.makeStream()
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { [ending] channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: nil))
                    }
                    try channel.pipeline.syncOperations.addHandler(Collector(continuation, ending))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        inbox = Inbox(stream)
    }

    func send(_ text: String) async throws {
        try await unlessClosed { try await self.channel.writeAndFlush(ByteBuffer(string: text)) }
    }

    /// Ignores errors of a closed channel, because the server may respond and close before the client has finished.
    private func unlessClosed(_ work: () async throws -> Void) async throws {
        do {
            try await work()
        } catch let error as ChannelError where error == .ioOnClosedChannel || error == .alreadyClosed {}
    }

    func request(_ method: String, _ target: String, _ headers: HeaderList = [:], body: String? = nil) async throws {
        var head = "\(method) \(target) HTTP/1.1\r\n"
        if headers["Host"] == nil { head += "Host: localhost\r\n" }
        for field in headers.fields { head += "\(field.name): \(field.value)\r\n" }
        if let body { head += "Content-Length: \(body.utf8.count)\r\n" }
        try await send(head + "\r\n" + (body ?? ""))
    }

    /// The next complete response; nil if the connection ends before its end.
    func response(toHead isHead: Bool = false) async throws -> RawResponse? {
        guard var response = await head() else { return nil }
        if isHead || [204, 304].contains(response.status) { return response }
        if response.headers["Transfer-Encoding"] == "chunked" {
            while let line = await inbox.take(through: Array("\r\n".utf8)) {
                guard let size = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16),
                    let chunk = await inbox.take(size + 2)
                else { return nil }
                if size == 0 { return response }
                response.body += chunk.dropLast(2)
            }
            return nil
        }
        guard let length = response.headers["Content-Length"].flatMap({ Int($0) }) else { return response }
        guard let body = await inbox.take(length) else { return nil }
        response.body = body
        return response
    }

    /// The head of the next response.
    func head() async -> RawResponse? {
        guard let bytes = await inbox.take(through: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n")
        let words = lines[0].split(separator: " ")
        var headers: HeaderList = [:]
        for line in lines.dropFirst() {
            let halves = line.split(separator: ":", maxSplits: 1)
            headers.append(String(halves[0]), halves.count > 1 ? String(halves[1].drop { $0 == " " }) : "")
        }
        return RawResponse(status: words.count > 1 ? Int(words[1]) ?? 0 : 0, headers: headers, body: [])
    }

    func bytes(_ count: Int) async -> [UInt8]? { await inbox.take(count) }
    func text(through mark: String) async -> String? {
        await inbox.take(through: Array(mark.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }
    /// All bytes until the end of the connection.
    func rest() async -> [UInt8] { await inbox.rest() }
    /// Whether the connection ended in a reset; valid after ``rest()``.
    var isBroken: Bool { ending.isBroken.load(ordering: .relaxed) }
    /// Closes the sending side and continues to receive.
    func endSending() async throws { try await channel.close(mode: .output) }
    /// Enables or disables automatic reads.
    func read(_ isReading: Bool) async throws {
        try await channel.setOption(ChannelOptions.autoRead, value: isReading).get()
    }
    /// Reads available bytes once while automatic reads are disabled.
    func readOnce() { channel.read() }
    func hangUp() async throws {
        try await unlessClosed { try await self.channel.close() }
    }
}
