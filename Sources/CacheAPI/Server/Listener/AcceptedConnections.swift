import CacheCore
import NIOCore

/// The connections of one listening socket. Above a limit further ones wait in the kernel's backlog. A stop lets the
/// accepted ones finish: NIO would cut those that are being set up when the socket is closed.
final class AcceptedConnections: Sendable {
    private struct State {
        var listener: (any Channel)?
        /// All open connections.
        var open: [ObjectIdentifier: any Channel] = [:]
        /// The number of connections that are being set up.
        var new = 0
        /// Whether a read of the listener was held back at the limit.
        var isHeld = false
        var isStopping = false
        var isClosed = false

        /// Whether the listener can be closed: no connection is being set up, and none will be.
        var isOver: Bool { isStopping && new == 0 }
        /// Whether the listener and all connections are closed.
        var hasEnded: Bool { isClosed && open.isEmpty }
    }

    /// The handler in the pipeline of the listening socket, in front of the one that sets connections up.
    final class Handler: ChannelDuplexHandler {
        typealias InboundIn = any Channel
        typealias OutboundIn = Never

        private let connections: AcceptedConnections

        init(_ connections: AcceptedConnections) { self.connections = connections }

        func handlerAdded(context: ChannelHandlerContext) {
            connections.state.withLock { $0.listener = context.channel }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            connections.add(unwrapInboundIn(data))
            context.fireChannelRead(data)
        }

        func read(context: ChannelHandlerContext) { if connections.mayRead() { context.read() } }

        func channelInactive(context: ChannelHandlerContext) {
            context.fireChannelInactive()
            connections.stop()
        }
    }

    private let limit: Int
    /// Called once the listener and all connections are closed; possibly several times.
    private let ended: @Sendable () -> Void
    private let state = OrderedMutex(.leaf, State())

    init(limit: Int, ended: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.ended = ended
    }

    /// Accepts no further connection. The open ones end after their responses.
    func stop() {
        let (open, listener) = state.withLock { state in
            state.isStopping = true
            return (state.open.values, state.listener)
        }
        for connection in open { Self.quiesce(connection) }
        guard let listener else { return closed() }
        // 1. A read from before the stop lets the loop accept further connections.
        // 2. A decision on this thread could precede them, and the close would follow: NIO would cut them.
        // 3. On the loop no connection is accepted between the decision and the close.
        listener.eventLoop.execute { [self] in
            if state.withLock(\.isOver) { closeListener() }
        }
    }

    /// Closes the listener and all connections, also those with a response in progress.
    func cut() {
        stop()
        for connection in state.withLock({ $0.open.values }) { connection.close(promise: nil) }
    }

    /// Reports the result of the set-up of an accepted connection.
    func settled(_ connection: any Channel) {
        let listener = state.withLock(\.listener)
        // NIO goes on with the connection on the loop of the listener, in a task that is in its queue by the next tick.
        connection.eventLoop.execute { [self] in
            guard let listener else { return }
            listener.eventLoop.execute { [self] in
                let (isStopping, isOver) = state.withLock { state in
                    state.new -= 1
                    return (state.isStopping, state.isOver)
                }
                if isStopping { Self.quiesce(connection) }
                if isOver { closeListener() }
            }
        }
    }

    private func add(_ connection: any Channel) {
        let id = ObjectIdentifier(connection)
        state.withLock { state in
            state.open[id] = connection
            state.new += 1
        }
        connection.closeFuture.whenComplete { [self] _ in
            let (held, hasEnded) = state.withLock { state in
                state.open[id] = nil
                defer { state.isHeld = false }
                return (state.isHeld ? state.listener : nil, state.hasEnded)
            }
            held?.read()
            if hasEnded { ended() }
        }
    }

    private func mayRead() -> Bool {
        state.withLock { state in
            guard !state.isStopping else { return false }
            state.isHeld = state.open.count >= limit
            return !state.isHeld
        }
    }

    private func closeListener() {
        guard let listener = state.withLock(\.listener) else { return closed() }
        // It may be closed already, after an error.
        listener.close().whenComplete { [self] _ in closed() }
    }

    private func closed() {
        let hasEnded = state.withLock { state in
            state.isClosed = true
            return state.hasEnded
        }
        if hasEnded { ended() }
    }

    /// Tells a connection that it is to end. Before its handlers exist the event has no effect.
    private static func quiesce(_ connection: any Channel) {
        connection.eventLoop.execute {
            connection.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }
}
