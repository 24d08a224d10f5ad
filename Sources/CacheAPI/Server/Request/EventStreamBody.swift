import CacheCore
import CacheEngine
import Hummingbird
import NIOCore
import ServiceLifecycle
import Synchronization

/// Converts the elements of a stream to the text of server-sent events (HTML §9.2).
protocol EventRenderer: Sendable {
    associatedtype Element: Sendable

    /// Whether no further event can follow.
    var isOver: Bool { get }

    /// The text of the events that follow from `element`; empty without one.
    mutating func text(of element: Element, _ feed: EventFeed) -> String

    /// The next part of a long text; empty at its end.
    mutating func more(_ feed: EventFeed) -> String

    /// The event for a follower that is late, the last one of its stream.
    var reset: String { get }
}

extension EventRenderer {
    mutating func more(_ feed: EventFeed) -> String { "" }

    var reset: String { "event: reset\ndata: {}\n\n" }
}

/// A response body of server-sent events.
struct EventStreamBody<Renderer: EventRenderer>: Sendable {
    /// The inputs of the writing loop.
    private enum Turn: Sendable {
        case element(Renderer.Element)
        /// Time for a comment that keeps the connection open.
        case silence
    }

    /// The interval of comments. They keep proxies from closing a connection without events.
    private static var silence: Duration { .seconds(15) }
    /// The interval of checks of the permission and of the running write.
    private static var checkInterval: Duration { .milliseconds(250) }
    /// The time that one write may take. A follower that needs longer gets `reset`; after twice this time its
    /// connection is closed.
    private static var patience: Duration { .seconds(10) }

    let elements: AsyncStream<Renderer.Element>
    let renderer: Renderer
    let feed: EventFeed
    /// Nil without a connection (tests).
    let presence: DisconnectSignal?
    /// Nil: the stream needs none (tests).
    let permission: StreamPermission?
    /// Closes the connection.
    let disconnect: @Sendable () -> Void
    let clock: any Clock<Duration>

    /// Sends events until the stream or the renderer has ended, the permission ends, the client is late or disconnects,
    /// or the service shuts down.
    ///
    /// Four tasks feed one stream: the elements, the comments, the checks, and the disconnect signal. The last two end
    /// it. Each element waits for a slot of the feed, so that a burst of events causes few writes. If the client reads
    /// slowly, older elements are dropped: a renderer must produce the same state from later ones.
    func send(to writer: inout any ResponseBodyWriter) async throws {
        let (turns, turn) = AsyncStream<Turn>.makeStream(bufferingPolicy: .bufferingNewest(64))
        let write = TimedWrite(uptime: clock.stopwatch())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await element in elements.cancelOnGracefulShutdown() {
                    let delay = feed.delay()
                    if delay > .zero, (try? await clock.sleep(for: delay)) == nil { break }  // cancelled
                    turn.yield(.element(element))
                }
                turn.finish()
            }
            group.addTask {
                while (try? await clock.sleep(for: Self.silence)) != nil { turn.yield(.silence) }  // until cancelled
            }
            group.addTask {
                while permission?.isValid ?? true {
                    guard (try? await clock.sleep(for: Self.checkInterval)) != nil else { return }  // cancelled
                    if write.duration > Self.patience * 2 { return disconnect() }
                }
                turn.finish()
            }
            if let presence {
                group.addTask {
                    await presence.gone()
                    turn.finish()
                }
            }
            defer { group.cancelAll() }
            var (renderer, isFirst) = (renderer, true)
            for await next in turns {
                guard permission?.isValid ?? true else { return }
                var text = ":\n\n"
                if case .element(let element) = next {
                    text = renderer.text(of: element, feed)
                    // The first comment sends the head of the response: clients wait for it.
                    if text.isEmpty, isFirst { text = ":\n\n" }
                    isFirst = false
                }
                while !text.isEmpty {
                    let duration = try await write.write(text, to: &writer)
                    if renderer.isOver { return }
                    guard duration < Self.patience else {
                        _ = try await write.write(renderer.reset, to: &writer)
                        return
                    }
                    guard permission?.isValid ?? true else { return }
                    text = renderer.more(feed)
                }
                if renderer.isOver { return }
            }
        }
    }
}

/// The running write of one follower.
private final class TimedWrite: Sendable {
    private let uptime: @Sendable () -> Duration
    /// The start of the running write; nil between two writes.
    private let start = Mutex<Duration?>(nil)

    init(uptime: @escaping @Sendable () -> Duration) { self.uptime = uptime }

    /// The time since the start of the running write; zero between two writes.
    var duration: Duration { start.withLock { $0 }.map { uptime() - $0 } ?? .zero }

    /// Writes a text when the client accepts it. Returns the time of the wait.
    func write(_ text: String, to writer: inout any ResponseBodyWriter) async throws -> Duration {
        let begin = uptime()
        start.withLock { $0 = begin }
        defer { start.withLock { $0 = nil } }
        try await writer.write(ByteBuffer(string: text))
        return uptime() - begin
    }
}

extension Response {
    /// A response with server-sent events. Throws `.overloaded` above the limits on followers.
    static func events<Renderer: EventRenderer>(
        _ elements: AsyncStream<Renderer.Element>, _ renderer: Renderer, _ context: APIContext,
        clock: any Clock<Duration>
    ) throws(CacheError) -> Response {
        guard let budgets = context.budgets else { throw CacheError(.internal, "The request has no budget.") }
        let claim = budgets.followers.claim(for: context.permission?.reader)
        switch claim.grow(by: 1) {
        case nil: break
        case .share:
            throw CacheError(.overloaded, "This token has a tenth of limits.followers; close a stream or repeat later.")
        case .total: throw CacheError(.overloaded, "The followers reach limits.followers; repeat later.")
        }
        let body = EventStreamBody(
            elements: elements, renderer: renderer, feed: budgets.feed, presence: context.presence,
            permission: context.permission, disconnect: context.disconnect, clock: clock)
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                defer { claim.giveBack() }
                try await body.send(to: &writer)
                try await writer.finish(nil)
            })
    }
}
