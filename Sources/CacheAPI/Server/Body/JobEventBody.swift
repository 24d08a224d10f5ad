import CacheCore
import CacheEngine
import Hummingbird
import NIOCore
import ServiceLifecycle

/// The events of a job as a stream of server-sent events (HTML §9.2): `state` when the state changes, else `progress`.
struct JobEventBody: Sendable {
    /// The inputs of the writing loop.
    private enum Turn: Sendable {
        case job(JobSnapshot)
        /// Time for a comment that keeps the connection open.
        case silence
    }

    /// The interval of comments. They keep proxies from closing a connection without events.
    private static let silence = Duration.seconds(15)

    let events: AsyncStream<JobSnapshot>
    /// The last event that a reconnecting client has seen (`Last-Event-ID`); nil for a new client.
    let seen: Int64?
    /// Nil without a connection (tests).
    let presence: DisconnectSignal?
    let clock: any Clock<Duration>

    /// Sends events until the job has ended, the client disconnects, or the service shuts down.
    ///
    /// Three tasks feed one stream: the job's events, the comments, and the disconnect signal, which ends it. If the
    /// client reads slowly, older elements are dropped: each event carries the whole job.
    func send(to writer: inout any ResponseBodyWriter) async throws {
        let (turns, turn) = AsyncStream<Turn>.makeStream(bufferingPolicy: .bufferingNewest(64))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await job in events.cancelOnGracefulShutdown() { turn.yield(.job(job)) }
                turn.finish()
            }
            group.addTask {
                while (try? await clock.sleep(for: Self.silence)) != nil { turn.yield(.silence) }  // until cancelled
            }
            if let presence {
                group.addTask {
                    await presence.gone()
                    turn.finish()
                }
            }
            defer { group.cancelAll() }
            var last: JobState?
            for await next in turns {
                switch next {
                case .silence: try await writer.write(ByteBuffer(string: ":\n\n"))
                case .job(let job):
                    defer { last = job.record.state }
                    if let seen, job.version <= seen, !job.record.state.isFinished { continue }
                    try await writer.write(ByteBuffer(string: Self.text(of: job, after: last)))
                    if job.record.state.isFinished { return }
                }
            }
        }
    }

    /// One event: its name, the job's version as its identifier, and the job's document in one line. `last` is the
    /// state in the previous event, nil for the first.
    static func text(of job: JobSnapshot, after last: JobState?) -> String {
        let name = job.record.state == last ? "progress" : "state"
        return "event: \(name)\nid: \(job.version)\ndata: \(job.json.text)\n\n"
    }
}
