import CacheEngine
import CacheTestKit
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
            let taken = AheadSocket(client)?.send(ByteBuffer(string: "head"), hasMore: true)
            let waiting = try Self.unsentBytes(client)
            context.writeAndFlush(NIOAny(ByteBuffer(string: "body")), promise: nil)
            return (taken, waiting, try Self.unsentBytes(client))
        }.get()
        #expect(taken == 4 && waiting == 4)
        #expect(after == 0)
        try await client.close()
        try await listener.close()
    }

    @Test("A channel without a socket has nothing to send ahead on")
    func aChannelWithoutASocketHasNone() throws {
        let channel = EmbeddedChannel(handler: Speaker())
        #expect(AheadSocket(channel) == nil)
        #expect(try channel.finish(acceptAlreadyClosed: true).isClean)
    }

    @Test("Nothing is sent ahead on a closed channel, whose descriptor may belong to another connection")
    func nothingIsSentOnAClosedChannel() async throws {
        let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .bind(host: "127.0.0.1", port: 0).get()
        let client = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(to: try #require(listener.localAddress)).get()
        let taken = try await client.eventLoop.submit {
            let socket = AheadSocket(client)
            client.close(promise: nil)
            return socket?.send(ByteBuffer(string: "head"), hasMore: true)
        }.get()
        #expect(taken == 0)
        try await listener.close()
    }

    @Test("A repeated read that is aborted counts the bytes that have left")
    func anAbortedReadCountsWhatHasLeft() async throws {
        try await TestService.run { (service) async throws in
            let size = 1_900_000
            service.upstream.serve("/a.mp4", LoopbackAsset(size: Int64(size)))
            _ = try await service.call("GET", "/o/media/a.mp4")
            let client = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .channelOption(.socketOption(.so_rcvbuf), value: 16 << 10)
                // With small segments the kernel's buffers do not hold the whole body.
                .channelOption(.tcpOption(.init(rawValue: TCP_MAXSEG)), value: 1000)
                .connect(host: "127.0.0.1", port: service.port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                            wrappingChannelSynchronously: channel,
                            configuration: .init(backPressureStrategy: .init(lowWatermark: 1, highWatermark: 1)))
                    }
                }
            let read = 600_000
            try await client.executeThenClose { inbound, outbound in
                var (received, chunks) = (0, inbound.makeAsyncIterator())
                for range in ["0-9", "0-\(size - 1)"] {
                    let head = "GET /o/media/a.mp4 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=\(range)\r\n\r\n"
                    try await outbound.write(ByteBuffer(string: head))
                    received += try #require(try await chunks.next()).readableBytes
                }
                while received < read { received += try #require(try await chunks.next()).readableBytes }
            }
            let line = await service.log.line { $0["aborted"] == "true" }
            let bytes = try #require(line?["bytes"].flatMap { Int($0) })
            // Less than a region is missing, and the heads were read too.
            #expect(bytes > read - (256 << 10) - 2000 && bytes < size, "\(bytes)")
            #expect(try await service.cache.statistics.snapshot().all.servedFromCacheBytes == Int64(10 + bytes))
        }
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
