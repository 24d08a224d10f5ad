import NIOCore
import NIOEmbedded
import Testing

@testable import CacheAPI

@Suite struct AcceptedConnectionsTests {
    @Test("A connection that is accepted during a stop is set up before the listener is closed")
    func acceptedDuringStop() throws {
        let loop = EmbeddedEventLoop()
        let connections = AcceptedConnections(limit: 10) {}
        let listener = EmbeddedChannel(handler: AcceptedConnections.Handler(connections), loop: loop)
        try listener.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let accepted: any Channel = EmbeddedChannel(loop: loop)

        connections.stop()
        try listener.writeInbound(accepted)
        loop.run()

        #expect(listener.isActive)
        connections.settled(accepted)
        loop.run()
        #expect(!listener.isActive)
    }
}
