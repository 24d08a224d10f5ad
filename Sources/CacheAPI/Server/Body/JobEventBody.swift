import CacheCore
import CacheEngine
import Hummingbird
import NIOCore
import ServiceLifecycle

/// A job's events as a server-sent event stream: `state` when the state changes, `progress` in between.
struct JobEventBody: Sendable {
    private enum Turn: Sendable {
        case job(JobSnapshot)
        case silence
    }

    /// How long a stream stays silent before a comment keeps its connection open.
    private static let silence = Duration.seconds(15)

    let events: AsyncStream<JobSnapshot>
    /// The last event a returning client has seen.
    let seen: Int64?
    let presence: ClientPresence?
    let clock: any Clock<Duration>

    /// Sends until the job has ended, the client leaves, or the service shuts down.
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

    /// One event (HTML §9.2): the job's document in one line.
    static func text(of job: JobSnapshot, after last: JobState?) -> String {
        let name = job.record.state == last ? "progress" : "state"
        return "event: \(name)\nid: \(job.version)\ndata: \(job.json.text)\n\n"
    }
}
