import CacheCore
import CacheEngine
import NIOCore

/// A read with its first bytes at hand: whatever goes wrong before them is still told by a status.
struct ContentOpening: Sendable {
    let read: ContentRead
    let body: ContentBody
    let first: ByteBuffer?

    init(_ read: ContentRead, _ context: APIContext) async throws(ReadFailure) {
        self.read = read
        body = ContentBody(read, note: context.note, stopwatch: context.stopwatch)
        do {
            first = read.plan.body.isEmpty ? nil : try await body.first()
        } catch {
            var outcome = read.outcome
            outcome.requestClass = .error
            (outcome.isStored, outcome.timeToLive, outcome.detail) = (false, nil, error.code.name)
            throw ReadFailure(error, outcome: outcome)
        }
    }
}

/// Does `work` as long as the client is there; then cancels it and throws `.cancelled`.
func whileClientStays<Value: Sendable>(
    _ presence: ClientPresence?, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    guard let presence else { return try await work() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        // It begins on this thread: no other one has to wake for it.
        group.addImmediateTask { try await work() }
        group.addTask {
            await presence.gone()
            return nil
        }
        defer { group.cancelAll() }
        guard case .some(.some(let value)) = try await group.next() else {
            throw CacheError(.cancelled, "The client has gone.")
        }
        return value
    }
}
