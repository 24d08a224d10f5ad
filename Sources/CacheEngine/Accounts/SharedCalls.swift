import CacheCore

/// Runs one call for all tasks that need its result at the same time.
final class SharedCalls<Value: Sendable>: Sendable {
    private typealias Outcome = Result<Value, CacheError>

    /// The outcomes of the calls in progress by the keys of the calls; nil until a call has ended.
    private let calls = OrderedMutex(.leaf, [String: AsyncCondition<Outcome?>]())

    /// The result of the call in progress with this key, otherwise of `body`. If the task of the call is cancelled, one
    /// of those who wait makes a call of its own. Throws `.cancelled` if this task is cancelled.
    func run(
        _ key: String, _ body: () async throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        while true {
            let own = AsyncCondition<Outcome?>(nil)
            let earlier = calls.withLock { calls -> AsyncCondition<Outcome?>? in
                if let call = calls[key] { return call }
                calls[key] = own
                return nil
            }
            guard let earlier else {
                let outcome: Outcome
                do throws(CacheError) { outcome = .success(try await body()) } catch { outcome = .failure(error) }
                calls.withLock { $0[key] = nil }
                own.change { $0 = outcome }
                return try outcome.get()
            }
            let outcome = await earlier.valueUnlessCancelled { (outcome: inout Outcome?) in outcome }
            guard let outcome, !Task.isCancelled else { throw CacheError(.cancelled, "The call was cancelled.") }
            if case .failure(let error) = outcome, error.code == .cancelled { continue }
            return try outcome.get()
        }
    }
}
