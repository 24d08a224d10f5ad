import CacheCore
import CacheEngine
import Hummingbird
import NIOCore
import ServiceLifecycle

/// Converts the elements of a stream to the text of server-sent events (HTML §9.2).
protocol EventRenderer: Sendable {
    associatedtype Element: Sendable

    /// Whether no further event can follow.
    var isOver: Bool { get }

    /// The text of the events that follow from `element`; empty without one.
    mutating func text(of element: Element) -> String
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
    /// The interval of checks of the permission.
    private static var checkInterval: Duration { .milliseconds(250) }

    let elements: AsyncStream<Renderer.Element>
    let renderer: Renderer
    /// Nil without a connection (tests).
    let presence: DisconnectSignal?
    /// Nil: the stream needs none (tests).
    let permission: StreamPermission?
    let clock: any Clock<Duration>

    /// Sends events until the stream or the renderer has ended, the permission ends, the client disconnects, or the
    /// service shuts down.
    ///
    /// Four tasks feed one stream: the elements, the comments, the checks of the permission, and the disconnect signal.
    /// The last two end it. If the client reads slowly, older elements are dropped: a renderer must produce the same state from later ones.
    func send(to writer: inout any ResponseBodyWriter) async throws {
        let (turns, turn) = AsyncStream<Turn>.makeStream(bufferingPolicy: .bufferingNewest(64))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await element in elements.cancelOnGracefulShutdown() { turn.yield(.element(element)) }
                turn.finish()
            }
            group.addTask {
                while (try? await clock.sleep(for: Self.silence)) != nil { turn.yield(.silence) }  // until cancelled
            }
            if let permission {
                group.addTask {
                    while permission.isValid {
                        guard (try? await clock.sleep(for: Self.checkInterval)) != nil else { return }  // cancelled
                    }
                    turn.finish()
                }
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
                switch next {
                case .silence: try await writer.write(ByteBuffer(string: ":\n\n"))
                case .element(let element):
                    let text = renderer.text(of: element)
                    // The first comment sends the head of the response: clients wait for it.
                    if !text.isEmpty || isFirst {
                        try await writer.write(ByteBuffer(string: text.isEmpty ? ":\n\n" : text))
                    }
                    isFirst = false
                    if renderer.isOver { return }
                }
            }
        }
    }
}

extension Response {
    /// A response with server-sent events.
    static func events<Renderer: EventRenderer>(
        _ elements: AsyncStream<Renderer.Element>, _ renderer: Renderer, _ context: APIContext,
        clock: any Clock<Duration>
    ) -> Response {
        let body = EventStreamBody(
            elements: elements, renderer: renderer, presence: context.presence, permission: context.permission,
            clock: clock)
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await body.send(to: &writer)
                try await writer.finish(nil)
            })
    }
}

/// The events of one job: `state` when the state changes, else `progress`.
struct JobEventRenderer: EventRenderer {
    /// The last event that a reconnecting client has seen (`Last-Event-ID`); nil for a new client.
    let seen: Int64?
    private var last: JobState?
    private(set) var isOver = false

    init(seen: Int64?) { self.seen = seen }

    mutating func text(of job: JobSnapshot) -> String {
        defer { last = job.record.state }
        isOver = job.record.state.isFinished
        if let seen, job.version <= seen, !isOver { return "" }
        return Self.text(of: job, after: last)
    }

    /// One event: its name, the job's version as its identifier, and the job's document in one line. `last` is the
    /// state in the previous event, nil for the first.
    static func text(of job: JobSnapshot, after last: JobState?) -> String {
        let name = job.record.state == last ? "progress" : "state"
        return "event: \(name)\nid: \(job.version)\ndata: \(job.json.text)\n\n"
    }
}

/// The seconds of the live statistics as events `second`; the identifier is the second of the Unix epoch.
struct LiveSecondRenderer: EventRenderer {
    let live: LiveStatistics
    /// The start of the last second sent.
    var last: Timestamp
    let isOver = false

    mutating func text(of signal: Void) -> String {
        let seconds = live.seconds(after: last)
        if let latest = seconds.last { last = latest.at }
        return seconds.map { "event: second\nid: \($0.at.milliseconds / 1000)\ndata: \($0.json.text)\n\n" }.joined()
    }
}

/// The events of the log after the last one sent.
struct EventLogRenderer: EventRenderer {
    let log: EventLog
    let topics: Set<CacheEvent.Topic>
    /// The identifier of the last event that the client has seen; nil for a new client.
    var last: Int64?
    let isOver = false

    mutating func text(of signal: Void) -> String {
        let start = last ?? log.lastID
        let (events, isComplete, lastID) = log.events(after: start, topics: topics)
        last = lastID
        // The client must read the lists again: events that it has not seen are lost.
        let reset = isComplete ? "" : "event: reset\ndata: {\"lastId\":\(start)}\n\n"
        return reset
            + events.map { "id: \($0.id)\nevent: \($0.content.topic.rawValue)\ndata: \($0.json.text)\n\n" }.joined()
    }
}
