import CacheCore
import Synchronization

/// Runs `body` with a time limit. After `limit` the body is cancelled and `.upstreamTimedOut(timeout)` is thrown. If
/// the caller is cancelled first, the result is the one with which `body` responds to its cancellation.
func withDeadline<Value: Sendable>(
    _ limit: Duration, _ timeout: CacheError.Timeout, clock: any Clock<Duration>,
    body: @escaping @Sendable () async throws(CacheError) -> Value
) async throws(CacheError) -> Value {
    let outcome = await withTaskGroup(of: Result<Value, CacheError>?.self) { group in
        // The body starts on the calling thread; this saves a wake-up of another one.
        let isOver = Flag()
        group.addImmediateTask {
            defer { isOver.value.store(true, ordering: .relaxed) }
            do throws(CacheError) { return .success(try await body()) } catch { return .failure(error) }
        }
        // A body that did not wait needs no timer.
        if isOver.value.load(ordering: .relaxed) { return await group.next() ?? nil }
        group.addTask {
            // A cancelled sleep means that `body` finished first: this is not a timeout.
            guard (try? await clock.sleep(for: limit)) != nil else {
                return .failure(CacheError(.cancelled, "The read was cancelled."))
            }
            return nil
        }
        let first = await group.next() ?? nil
        group.cancelAll()
        return first
    }
    guard let outcome else {
        throw CacheError(.upstreamTimedOut(timeout), "No first byte was available within \(limit.inSeconds) s.")
    }
    return try outcome.get()
}

/// A value that two tasks share.
private final class Flag: Sendable {
    let value = Atomic(false)
}
