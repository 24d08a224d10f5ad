import CacheCore
import CacheEngine
import HTTPTypes
import NIOCore

/// Converts new events to the bytes of server-sent events (HTML §9.2).
protocol EventRenderer: Sendable {
    /// The topics whose events cause a write.
    var topics: Set<CacheEvent.Topic> { get }

    /// Whether the bytes are those of the events in the log.
    var readsLog: Bool { get }

    /// Whether no further event can follow.
    var isOver: Bool { get }

    /// Whether the last part was not the end of the new events.
    var hasMore: Bool { get }

    /// Whether the client has received the present once.
    var isCurrent: Bool { get }

    /// The next part of the new events; empty without any.
    mutating func part(_ signal: EventFollower.Signal, _ feed: EventFeed) async -> ByteBuffer

    /// The event for a follower that is late, the last one of its stream.
    var reset: String { get }
}

extension EventRenderer {
    var hasMore: Bool { false }
    var isCurrent: Bool { true }
    var reset: String { "event: reset\ndata: {}\n\n" }
}

/// A response body of server-sent events.
struct EventStreamBody<Renderer: EventRenderer>: Sendable {
    let renderer: Renderer
    let follower: EventFollower
    let feed: EventFeed
    let disconnection: AsyncEvent

    /// Sends events until the renderer has ended, the permission ends, the client is late or disconnects, or the service
    /// shuts down.
    func send(to writer: ResponseWriter) async throws {
        feed.add(follower)
        defer { feed.remove(follower) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await disconnection.wait()
                follower.end()
            }
            defer { group.cancelAll() }
            try await sendSignalled(to: writer)
        }
    }

    private func sendSignalled(to writer: ResponseWriter) async throws {
        var (renderer, isFirst) = (renderer, true)
        while let signal = await follower.next() {
            repeat {
                let wasCurrent = renderer.isCurrent
                var bytes = await renderer.part(signal, feed)
                // The first comment sends the head of the response: clients wait for it.
                if bytes.readableBytes == 0, isFirst || signal == .silence { bytes.writeString(":\n\n") }
                isFirst = false
                if bytes.readableBytes > 0 { try await writer.write(bytes) }
                if renderer.isOver { return }
                guard !follower.isLate else { return try await writer.write(ByteBuffer(string: renderer.reset)) }
                if !wasCurrent { follower.wroteBacklog() }
            } while renderer.hasMore
            follower.wroteAll()
        }
    }
}

extension Response {
    /// A response with server-sent events. Throws `.overloaded` above the limits on followers, and `.rateLimited` above
    /// that of the client's address.
    static func events<Renderer: EventRenderer>(
        _ renderer: Renderer, _ context: APIContext
    ) throws(CacheError) -> Response {
        guard let budgets = context.budgets else { throw CacheError(.internal, "The request has no budget.") }
        let stream = try budgets.addresses.claim(.streams, by: context.client?.limitedAddress)
        let claim = budgets.followers.claim(for: context.permission?.reader)
        switch claim.grow(by: 1) {
        case nil: break
        case .share:
            throw CacheError(.overloaded, "This token has a tenth of limits.followers; close a stream or repeat later.")
        case .total: throw CacheError(.overloaded, "The followers reach limits.followers; repeat later.")
        }
        let feed = budgets.feed
        let body = EventStreamBody(
            renderer: renderer,
            follower: EventFollower(
                topics: renderer.topics, readsLog: renderer.readsLog, permission: context.permission,
                uptime: feed.uptime,
                disconnect: { [channel = context.connection.channel] in channel.close(promise: nil) }),
            feed: feed, disconnection: context.disconnection)
        return Response(
            status: .ok,
            // nginx would hold events back (`proxy_buffering`).
            headers: [.contentType: "text/event-stream", .cacheControl: "no-store", .xAccelBuffering: "no"],
            body: .stream { writer in
                defer {
                    claim.giveBack()
                    stream?.giveBack()
                }
                try await body.send(to: writer)
            })
    }
}
