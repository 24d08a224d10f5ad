import Glibc
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import CacheAPI

/// Bytes passed to the kernel ahead of the write that completes their segment.
@Suite(.timeLimit(.minutes(5))) struct SendingAheadTests {
    /// The ioctl SIOCOUTQNSD of linux/sockios.h: the number of bytes in the kernel that are not sent yet.
    private static let unsent: UInt = 0x894B

    @Test("Bytes sent ahead wait for the following write")
    func theyWaitForWhatFollows() async throws {
        let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { $0.pipeline.addHandler(Speaker(), name: "speaker") }
            .connect(to: try #require(listener.localAddress)).get()
        let (taken, waiting, after) = try await client.eventLoop.submit {
            let context = try client.pipeline.syncOperations.context(name: "speaker")
            let taken = context.sendAhead(ByteBuffer(string: "head"))
            let waiting = try Self.unsentBytes(client)
            context.writeAndFlush(NIOAny(ByteBuffer(string: "body")), promise: nil)
            return (taken, waiting, try Self.unsentBytes(client))
        }.get()
        #expect(taken == 4 && waiting == 4)
        #expect(after == 0)
        try await client.close()
        try await listener.close()
    }

    @Test("Without a socket all bytes are left to be written")
    func whereThereIsNoSocketAllIsLeftToBeWritten() throws {
        let channel = EmbeddedChannel(handler: Speaker())
        let context = try channel.pipeline.syncOperations.context(handlerType: Speaker.self)
        #expect(context.sendAhead(ByteBuffer(string: "head")) == 0)
        #expect(try channel.finish(acceptAlreadyClosed: true).isClean)
    }

    /// Handler without any function; its context sends the bytes.
    private final class Speaker: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
    }

    private static func unsentBytes(_ channel: any Channel) throws -> CInt? {
        try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: CInt.self) { socket in
            var count: CInt = -1
            return ioctl(socket, unsent, &count) == 0 ? count : nil
        } ?? nil
    }
}
