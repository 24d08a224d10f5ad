/// A state behind a lock, on which tasks wait until a condition holds: a condition variable that blocks no thread
/// (C. A. R. Hoare, "Monitors: An Operating System Structuring Concept", 1974).
///
/// Each change evaluates the conditions of the waiting tasks in the order of their arrival. They run under the lock and
/// may change the state, such as consume a signal. Tasks are resumed outside the lock.
package final class AsyncCondition<State: Sendable>: Sendable {
    private struct Waiter: Sendable {
        /// Returns the function that resumes the task; nil: its condition does not hold.
        let resumption: @Sendable (inout State) -> (@Sendable () -> Void)?
        /// Resumes a cancelled task.
        let cancel: @Sendable () -> Void
    }

    private struct Guarded {
        var state: State
        var waiters: [Int: Waiter] = [:]
        /// The last key of `waiters`.
        var lastWaiter = 0

        mutating func nextWaiter() -> Int {
            lastWaiter += 1
            return lastWaiter
        }

        /// Removes the waiters with a condition that holds; returns the functions that resume their tasks.
        mutating func resumptions() -> [@Sendable () -> Void] {
            guard !waiters.isEmpty else { return [] }
            return waiters.sorted { $0.key < $1.key }.compactMap { number, waiter in
                guard let resumption = waiter.resumption(&state) else { return nil }
                waiters[number] = nil
                return resumption
            }
        }
    }

    private let guarded: OrderedMutex<Guarded>

    package init(_ state: State, rank: LockRank = .leaf) { guarded = OrderedMutex(rank, Guarded(state: state)) }

    package var state: State { guarded.withLock { $0.state } }

    /// Changes the state, and resumes the tasks with a condition that holds now.
    @discardableResult
    package func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, resumptions) = guarded.withLock { guarded in
            let result = body(&guarded.state)
            return (result, guarded.resumptions())
        }
        for resume in resumptions { resume() }
        return result
    }

    /// Suspends until `condition` returns a value, and returns it. Cancellation of the task has no effect.
    package func value<Value: Sendable>(
        when condition: @escaping @Sendable (inout State) -> Value?
    ) async -> Value {
        await withCheckedContinuation { continuation in
            wait(nil, condition, resume: { continuation.resume(returning: $0) }, cancel: {})
        }
    }

    /// Suspends until `condition` returns a value, and returns it; nil: the task was cancelled before.
    ///
    /// Registration and cancellation can race. If the cancellation comes first, it finds no waiter, and the registration
    /// sees it under the lock. Otherwise the cancellation removes the waiter under the lock, so that no change resumes
    /// it a second time.
    package func valueUnlessCancelled<Value: Sendable>(
        when condition: @escaping @Sendable (inout State) -> Value?
    ) async -> Value? {
        let number = guarded.withLock { $0.nextWaiter() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                wait(
                    number, condition, resume: { continuation.resume(returning: $0) },
                    cancel: { continuation.resume(returning: nil) })
            }
        } onCancel: {
            guarded.withLock { $0.waiters.removeValue(forKey: number) }?.cancel()
        }
    }

    /// Registers a waiter, unless its condition holds or the task of `number` is cancelled. `number`: the key of a task
    /// that can be cancelled.
    private func wait<Value: Sendable>(
        _ number: Int?, _ condition: @escaping @Sendable (inout State) -> Value?,
        resume: @escaping @Sendable (Value) -> Void, cancel: @escaping @Sendable () -> Void
    ) {
        let resumption: @Sendable (inout State) -> (@Sendable () -> Void)? = { state in
            guard let value = condition(&state) else { return nil }
            return { resume(value) }
        }
        let resumeNow: (@Sendable () -> Void)? = guarded.withLock { guarded in
            if let resumeNow = resumption(&guarded.state) { return resumeNow }
            if number != nil, Task.isCancelled { return cancel }
            guarded.waiters[number ?? guarded.nextWaiter()] = Waiter(resumption: resumption, cancel: cancel)
            return nil
        }
        resumeNow?()
    }
}
