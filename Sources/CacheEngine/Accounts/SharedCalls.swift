import CacheCore

/// Runs one call for all tasks that need its result at the same time.
final class SharedCalls<Value: Sendable>: Sendable {
    private typealias Outcome = Result<Value, CacheError>

    private struct State {
        /// Those who wait for the calls in progress, by the key of the call.
        var waiting: [String: [Int: CheckedContinuation<Outcome?, Never>]] = [:]
        var lastID = 0
    }

    /// Guards the calls in progress.
    private let state = OrderedMutex(.leaf, State())

    /// The result of the call in progress with this key, otherwise of `body`. If the task of the call is cancelled, one
    /// of those who wait makes a call of its own. Throws `.cancelled` if this task is cancelled.
    func run(
        _ key: String, _ body: () async throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        while true {
            let isFirst = state.withLock { state in
                guard state.waiting[key] == nil else { return false }
                state.waiting[key] = [:]
                return true
            }
            if isFirst {
                let outcome: Outcome
                do throws(CacheError) { outcome = .success(try await body()) } catch { outcome = .failure(error) }
                let waiting = state.withLock { $0.waiting.removeValue(forKey: key) } ?? [:]
                for continuation in waiting.values { continuation.resume(returning: outcome) }
                return try outcome.get()
            }
            let outcome = await wait(key)
            guard !Task.isCancelled else { throw CacheError(.cancelled, "The call was cancelled.") }
            // Nil: the call had ended before the wait began.
            guard let outcome else { continue }
            if case .failure(let error) = outcome, error.code == .cancelled { continue }
            return try outcome.get()
        }
    }

    /// The outcome of the call in progress; nil if there is none, or if this task is cancelled.
    private func wait(_ key: String) async -> Outcome? {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isWaiting = state.withLock { state in
                    guard !Task.isCancelled, state.waiting[key] != nil else { return false }
                    state.waiting[key]?[id] = continuation
                    return true
                }
                if !isWaiting { continuation.resume(returning: nil) }
            }
        } onCancel: {
            state.withLock { $0.waiting[key]?.removeValue(forKey: id) }?.resume(returning: nil)
        }
    }
}
