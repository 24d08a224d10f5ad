import Glibc
import NIOCore
import NIOPosix
import Testing

@testable import CacheAPI

@Suite(.timeLimit(.minutes(5))) struct CongestionControlTests {
    /// The default congestion control of the kernel.
    private static let own = Sysctl.words("ipv4/tcp_congestion_control").first.map { String($0) }
    private static let allowed = Sysctl.words("ipv4/tcp_allowed_congestion_control")

    @Test("Loopback connections use congestion control without pacing")
    func connectionsWithinTheMachineBeginWithoutPacing() async throws {
        #expect(try await control(under: CongestionControl(own: "bbr"), from: "127.0.0.1") == "reno")
    }

    @Test("Remote connections keep the congestion control of the kernel", .enabled(if: Self.allowed.contains("bbr")))
    func thoseFromElsewhereHaveTheKernelsOwn() async throws {
        #expect(try await control(under: CongestionControl(own: "bbr"), from: "127.0.0.2") == "bbr")
    }

    @Test("A kernel default without pacing is left unchanged", arguments: ["cubic", nil])
    func aKernelThatDoesNotPaceIsLeftToItself(_ name: String?) async throws {
        for address in ["127.0.0.1", "127.0.0.2"] {
            #expect(try await control(under: CongestionControl(own: name), from: address) == Self.own)
        }
    }

    /// The congestion control of a connection from `address` to a listener on 127.0.0.1.
    private func control(under pacing: CongestionControl, from address: String) async throws -> String? {
        let accepted = AsyncStream<any Channel>.makeStream()
        let group = MultiThreadedEventLoopGroup.singleton
        let listener = try await ServerBootstrap(group: group).childChannelInitializer { connection in
            pacing.fit(connection)
            accepted.continuation.yield(connection)
            return connection.eventLoop.makeSucceededVoidFuture()
        }.bind(host: "127.0.0.1", port: 0).get()
        await pacing.spare(listener)
        let client = try await ClientBootstrap(group: group).bind(to: try SocketAddress(ipAddress: address, port: 0))
            .connect(to: try #require(listener.localAddress)).get()
        let connection = try #require(await accepted.stream.first { _ in true })
        let options = try #require(connection as? any SocketOptionProvider)
        let name: (UInt64, UInt64) = try await options.unsafeGetSocketOption(
            level: .tcp, name: .init(rawValue: TCP_CONGESTION)
        ).get()
        try await client.close()
        try await listener.close()
        return withUnsafeBytes(of: name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
