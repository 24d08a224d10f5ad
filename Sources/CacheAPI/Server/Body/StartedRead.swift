import CacheCore
import CacheEngine
import NIOCore

/// A content read with its first bytes. A failure before them still gets its own status.
struct StartedRead: Sendable {
    let read: ContentRead
    let body: ContentBody
    /// Nil for an empty body.
    let first: ByteBuffer?

    /// Waits for the first bytes. A failure is thrown with the read's outcome: an error, not stored, with the error
    /// code as its detail.
    init(_ read: ContentRead, _ context: APIContext) async throws(ReadFailure) {
        self.read = read
        body = ContentBody(read, note: context.note, stopwatch: context.stopwatch)
        do {
            first = read.plan.body.isEmpty ? nil : try await body.first()
        } catch {
            var outcome = read.outcome
            outcome.requestClass = .error
            (outcome.isStored, outcome.timeToLive, outcome.detail) = (false, nil, error.code.name)
            var failure = ReadFailure(error, outcome: outcome)
            failure.isCounted = true
            throw failure
        }
    }
}

/// Runs `work` until it ends or the client disconnects. In the latter case cancels `work` and throws `.cancelled`.
///
/// - Parameter presence: Nil without a connection: `work` runs without this check.
func whileClientStays<Value: Sendable>(
    _ presence: DisconnectSignal?, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    guard let presence else { return try await work() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        // The task starts on this thread, which saves the wake-up of another one.
        group.addImmediateTask { try await work() }
        group.addTask {
            await presence.gone()
            return nil
        }
        defer { group.cancelAll() }
        guard case .some(.some(let value)) = try await group.next() else {
            throw CacheError(.cancelled, "The client disconnected.")
        }
        return value
    }
}
