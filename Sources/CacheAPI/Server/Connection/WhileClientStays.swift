import CacheCore

/// Runs `work` until it ends or the client has disconnected. In the latter case cancels `work` and throws `.cancelled`.
func whileClientStays<Value: Sendable>(
    _ disconnection: AsyncEvent, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        // The task starts on this thread; this saves the wake-up of another one.
        group.addImmediateTask { try await work() }
        group.addTask {
            await disconnection.wait()
            return nil
        }
        defer { group.cancelAll() }
        guard case .some(.some(let value)) = try await group.next() else {
            throw CacheError(.cancelled, "The client disconnected.")
        }
        return value
    }
}
